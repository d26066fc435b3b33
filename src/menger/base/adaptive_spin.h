#pragma once

#include <immintrin.h>

#include <atomic>
#include <cstdint>

#include "menger/base/clock.h"

namespace menger {

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
  bool Wait(Reached reached, Sleep sleep) {
    const int64_t start = MonotonicNanoseconds();
    if (const int64_t end = start + SpinNanoseconds(); end != start) {
      do {
        for (int i = 0; i < 16; ++i) {
          if (reached()) {
            LearnFrom(0);
            return true;
          }
          _mm_pause();
        }
      } while (MonotonicNanoseconds() < end);
    }
    const bool result = sleep();
    LearnFromSleepSince(start);
    return result;
  }

  // Whoever wakes sleepers says so first: what counts for the next spins is when there was
  // something to wake for, not when the sleeper ran again. Else slow wakes would keep spins short,
  // and short spins waking.
  void Woken() { woken_at_.store(MonotonicNanoseconds(), std::memory_order_relaxed); }

 private:
  int64_t SpinNanoseconds() const;
  void LearnFromSleepSince(int64_t start);
  void LearnFrom(int64_t wait_nanoseconds);

  std::atomic<uint32_t> debt_{0};     // How much shorter to spin, after long waits.
  std::atomic<int64_t> woken_at_{0};  // Monotonic ns.
};

}  // namespace menger
