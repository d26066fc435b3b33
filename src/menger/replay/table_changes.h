#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/mutex.h"

namespace menger {

// Whether tables may take items: a journal that falls behind, or has become too long, makes
// inserters wait, so that it never owes the disk more than it promised, nor takes more of it. One
// thread opens it or says why it never will again; any thread asks.
class JournalGate {
 public:
  bool open() const {
    return !held_.load(std::memory_order_relaxed) &&
           MonotonicNanoseconds() < open_until_.load(std::memory_order_relaxed);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  const std::string& why() const { return why_; }  // Once it has failed.

  std::int64_t open_until() const { return open_until_.load(std::memory_order_relaxed); }
  void OpenUntil(std::int64_t nanoseconds) {  // Of MonotonicNanoseconds.
    open_until_.store(nanoseconds, std::memory_order_relaxed);
  }
  // Shut from here on, until GoOn, whatever the time.
  void Hold(std::string why) {
    const MutexLock lock(why_held_mutex_);
    why_held_ = std::move(why);
    held_.store(true, std::memory_order_relaxed);
  }
  void GoOn() { held_.store(false, std::memory_order_relaxed); }
  // What an inserter waits for that found it shut.
  std::string WhyShut() const {
    const MutexLock lock(why_held_mutex_);
    if (held_.load(std::memory_order_relaxed)) return why_held_;
    return "the journal has not yet brought to the disk what was inserted before";
  }
  void Fail(std::string why) {
    if (failed()) return;
    why_ = std::move(why);
    OpenUntil(std::numeric_limits<std::int64_t>::min());
    failed_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<std::int64_t> open_until_ = std::numeric_limits<std::int64_t>::min();
  std::atomic<bool> held_ = false;
  std::atomic<bool> failed_ = false;
  std::string why_;  // Written before failed_ is set, never after.
  mutable Mutex why_held_mutex_;
  std::string why_held_ MENGER_GUARDED_BY(why_held_mutex_);
};

// Which slots of a table have changed since its journal last looked, each once. The table's mutex
// guards it.
class TableChanges {
 public:
  explicit TableChanges(const JournalGate& gate) : gate_(gate) {}

  const JournalGate& gate() const { return gate_; }

  void Add(std::uint32_t slot) {
    if (slot >= is_changed_.size()) is_changed_.resize(slot + slot / 2 + 1024);
    if (is_changed_[slot] != 0) return;
    is_changed_[slot] = 1;
    slots_.push_back(slot);
  }
  std::span<const std::uint32_t> slots() const { return slots_; }
  void Clear() {
    for (const std::uint32_t slot : slots_) is_changed_[slot] = 0;
    slots_.clear();
  }

 private:
  const JournalGate& gate_;
  std::vector<std::uint8_t> is_changed_;  // By slot.
  std::vector<std::uint32_t> slots_;
};

}  // namespace menger
