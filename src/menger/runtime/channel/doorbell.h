#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "menger/base/adaptive_spin.h"
#include "menger/base/clock.h"

namespace menger {

// Who may sleep at a node's doorbell: its own thread, or a thread in Get that does its work
// meanwhile.
enum class DoorbellRole : std::uint32_t { kNode = 0, kGetter = 1 };

// What a node sleeps on: one word that many processes and threads ring after they have put
// something into their rings.
//
// Only the role that listens (the node's thread, until somebody else says Listen) is woken. So a
// getter does the node's work by itself, without the node's thread running as well for each bell:
//
//     std::uint32_t seen = bell.Listen(DoorbellRole::kGetter);
//     while (drain all rings, and the result is not there) {
//       bell.Wait(DoorbellRole::kGetter, seen, deadline);
//       seen = bell.value();
//     }
//     bell.Listen(DoorbellRole::kNode);
//     drain all rings once more
//
// `seen` is always read before the rings are drained, and nobody skips the drain because somebody
// else is at it: that one may have just passed the ring in question. One getter at a time (the
// caller's lock sees to it). Nothing is lost, because all words are sequentially consistent, so all
// of them see one order of these steps:
//  - Ring advances the word, then reads who listens, then whether that role sleeps. A waiter says
//    that it sleeps, then reads the word. Whichever comes first: either Ring sees the sleeper, or
//    the waiter sees the word and does not sleep. (The kernel compares the word once more.)
//  - Who begins to listen says so, then reads the word, then drains. A Ring that has still seen the
//    former listener advanced the word before that read, so what it rang for is found by the drain.
// The node's thread that is asleep while a getter listens need not be woken when it listens again,
// for the getter has drained after that.
//
// It occupies one cache line and is valid as zero bytes, in memory that workers can write. A worker
// that scribbles over it causes needless wakes or a wait until its deadline, nothing worse.
class alignas(64) Doorbell {
 public:
  Doorbell() = default;
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  std::uint32_t value() const { return sequence_.load(std::memory_order_seq_cst); }

  // After publishing. Any thread of any process; no system call if nobody sleeps.
  void Ring() {
    sequence_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t role = listener();
    if (asleep_[role].load(std::memory_order_seq_cst) != 0) Wake(role);
  }

  // From now on `role` is woken and nobody else. Returns the value to be waited past.
  std::uint32_t Listen(DoorbellRole role) {
    listener_.store(static_cast<std::uint32_t>(role), std::memory_order_seq_cst);
    return value();
  }

  // Waits until the role listens and the bell has been rung since its value was `seen`: a spin (see
  // AdaptiveSpin), then sleep. Who does not listen sleeps at once. Returns false when the deadline
  // has passed. One thread a role at a time.
  bool Wait(DoorbellRole role, std::uint32_t seen, const Deadline& deadline,
            SpinKind spin = SpinKind::kBrief);

 private:
  static constexpr std::uint32_t kRoles = 2;

  std::uint32_t listener() const { return listener_.load(std::memory_order_seq_cst) % kRoles; }
  bool Heard(std::uint32_t role, std::uint32_t seen) const {
    return value() != seen && listener() == role;
  }
  bool Sleep(std::uint32_t role, std::uint32_t seen, const Deadline& deadline);
  void Wake(std::uint32_t role);

  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<std::uint32_t> listener_{0};  // A DoorbellRole.
  // Flags, not counts: a count that somebody scribbled over would stay wrong.
  std::array<std::atomic<std::uint32_t>, kRoles> asleep_{};
  std::array<AdaptiveSpin, kRoles> spins_;
};

static_assert(sizeof(Doorbell) == 64);

}  // namespace menger
