#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "menger/base/adaptive_spin.h"
#include "menger/base/clock.h"

namespace menger {

// A counter that one side advances and others wait for: how collectors, workers and processes meet
// without a queue.
//
// It occupies one cache line and is valid as zero bytes, so it may be placed in shared memory
// (MAP_SHARED) and used by several processes. What was written before `Advance` is visible to
// whoever saw the new value. A wait spins briefly, for as long as recent spins have paid off and
// never on a single CPU, then sleeps in the kernel (a non-private futex); nobody waiting costs
// `Advance` no system call. The count wraps at 2^32: waits compare by distance, so nobody may lag
// by 2^31.
//
// Any number of threads and processes may advance and wait. A waiter that is killed while it sleeps
// leaves the counter usable; each later Advance then pays one system call. Timeouts are checked; no
// wait is endless.
class alignas(64) EpochCounter {
 public:
  EpochCounter() = default;
  EpochCounter(const EpochCounter&) = delete;
  EpochCounter& operator=(const EpochCounter&) = delete;

  uint32_t value() const { return epoch_.load(std::memory_order_acquire); }

  // Adds one, wakes all waiters, returns the new value.
  uint32_t Advance() {
    // Sequentially consistent on both words: either this sees the waiter, or the waiter sees the
    // new epoch.
    const uint32_t now = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (waiters_.load(std::memory_order_seq_cst) != 0) WakeAll();
    return now;
  }

  // Waits until the counter has reached `epoch`. TryWaitFor returns whether it has; WaitFor throws
  // DeadlineExceeded.
  bool TryWaitFor(uint32_t epoch, std::chrono::nanoseconds timeout,
                  SpinKind spin = SpinKind::kBrief) {
    return HasReached(value(), epoch) || SlowWait(epoch, timeout, spin);
  }
  void WaitFor(uint32_t epoch, std::chrono::nanoseconds timeout) {
    if (!TryWaitFor(epoch, timeout)) ThrowDeadlineExceeded(epoch, timeout);
  }

  // Waits until the counter has gone past `seen`; returns its value. Throws DeadlineExceeded.
  uint32_t WaitPast(uint32_t seen, std::chrono::nanoseconds timeout) {
    WaitFor(seen + 1, timeout);
    return value();
  }

  void ExpectLongWaits() { spin_.ExpectLongWaits(); }  // See AdaptiveSpin.

  static bool HasReached(uint32_t value, uint32_t epoch) {
    return static_cast<int32_t>(value - epoch) >= 0;
  }

 private:
  bool SlowWait(uint32_t epoch, std::chrono::nanoseconds timeout, SpinKind spin);
  bool Sleep(uint32_t epoch, const Deadline& deadline);
  void WakeAll();
  [[noreturn]] void ThrowDeadlineExceeded(uint32_t epoch, std::chrono::nanoseconds timeout) const;

  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> waiters_{0};  // Who sleeps or is about to.
  AdaptiveSpin spin_;
};

static_assert(sizeof(EpochCounter) == 64);

}  // namespace menger
