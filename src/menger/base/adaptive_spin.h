#pragma once

#include <immintrin.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "menger/base/clock.h"

namespace menger {

enum class SpinKind : uint8_t {
  kBrief,  // Up to 50 us.
  // Up to 150 us, and after 5 us others may run between its looks. For two that answer each other
  // in turn: systems like to put those on one core, where a spin alone would keep the other from
  // what it is waited for. Not where there are more threads than cores, since who yields comes back
  // late.
  kYielding
};

// How a waiter decides how long to spin before it sleeps in the kernel: for as long as recent spins
// have paid off, and never on a single CPU.
//
// Valid as zero bytes and made of lock-free words, so it may lie in shared memory, beside the word
// that is waited for. What it holds are hints: another process that scribbles over them costs time
// and nothing else. Any number of threads.
class AdaptiveSpin {
 public:
  // Calls `reached` until it is true (and returns true), or spinning is no longer worth while; then
  // calls `sleep`, which must have a deadline, and returns what it says.
  template <typename Reached, typename Sleep>
  bool Wait(Reached reached, Sleep sleep, SpinKind kind = SpinKind::kBrief) {
    const int64_t start = MonotonicNanoseconds();
    if (const int64_t end = start + SpinNanoseconds(kind); end != start) {
      int64_t now = start;
      do {
        for (int i = 0; i < 16; ++i) {
          if (reached()) {
            LearnFrom(0, kind);
            return true;
          }
          _mm_pause();
        }
        if (kind == SpinKind::kYielding && now - start > kAloneNanoseconds) sched_yield();
        now = MonotonicNanoseconds();
      } while (now < end);
    }
    const bool result = sleep();
    LearnFromSleepSince(start, kind);
    return result;
  }

  // Whoever wakes sleepers says so first: what counts for the next spins is when there was
  // something to wake for, not when the sleeper ran again. Else slow wakes would keep spins short,
  // and short spins waking.
  void Woken() { woken_at_.store(MonotonicNanoseconds(), std::memory_order_relaxed); }

  // Waits are long until they are seen to be short: for words of which there are thousands, each of
  // which would have to learn it.
  void ExpectLongWaits() { debt_.store(kDebtMax, std::memory_order_relaxed); }

 private:
  // Each four halve the spin, until it is too short for a yield.
  static constexpr uint32_t kDebtMax = 20;
  static constexpr int64_t kAloneNanoseconds = 5'000;  // Before the first yield.

  int64_t SpinNanoseconds(SpinKind kind) const;
  void LearnFromSleepSince(int64_t start, SpinKind kind);
  void LearnFrom(int64_t wait_nanoseconds, SpinKind kind);

  std::atomic<uint32_t> debt_{0};     // How much shorter to spin, after long waits.
  std::atomic<int64_t> woken_at_{0};  // Monotonic ns.
};

}  // namespace menger
