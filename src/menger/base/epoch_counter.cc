#include "menger/base/epoch_counter.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "menger/base/error.h"
#include "menger/base/thread.h"

namespace menger {
namespace {

// About what a sleep and a wake cost (12 to 50 us on a virtual machine): spinning longer than that
// can never be better than twice the best choice.
constexpr int64_t kSpinNanosecondsMax = 50'000;
constexpr uint32_t kSpinDebtMax = 16;  // Each four halve the spin.

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

uint32_t* FutexWord(std::atomic<uint32_t>& word) { return reinterpret_cast<uint32_t*>(&word); }

// Shared futexes (no FUTEX_PRIVATE_FLAG): the word may lie in memory that other processes map.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec relative{};
  relative.tv_sec = seconds.count();
  relative.tv_nsec = (timeout - seconds).count();
  // Every outcome (woken, changed already, timed out, interrupted) is handled by looking again.
  syscall(SYS_futex, FutexWord(word), FUTEX_WAIT, expected, &relative, nullptr, 0);
}

}  // namespace

bool EpochCounter::Spin(uint32_t epoch) const {
  // Asked once: the mask of the whole process, not of a pinned caller.
  static const bool single_cpu = AvailableCpus() == 1;
  if (single_cpu) return false;

  const uint32_t debt = std::min(spin_debt_.load(std::memory_order_relaxed), kSpinDebtMax);
  const int64_t end = MonotonicNanoseconds() + (kSpinNanosecondsMax >> debt / 4);
  do {
    for (int i = 0; i < 16; ++i) {
      if (HasReached(value(), epoch)) return true;
      _mm_pause();
    }
  } while (MonotonicNanoseconds() < end);
  return false;
}

// Long waits shorten the spins to come and short ones lengthen them, one step each: a machine that
// is too busy for spinning soon pays little for trying, and one long wait among many short ones (a
// pool that idles while collection runs) costs nothing. What counts is when the counter was
// advanced, not when the sleeper ran again: else slow wakes would keep spins short, and short spins
// waking.
void EpochCounter::LearnFrom(int64_t wait_nanoseconds) {
  const uint32_t debt = spin_debt_.load(std::memory_order_relaxed);
  if (wait_nanoseconds > kSpinNanosecondsMax) {
    if (debt < kSpinDebtMax) spin_debt_.store(debt + 1, std::memory_order_relaxed);
  } else if (debt > 0) {
    spin_debt_.store(debt - 1, std::memory_order_relaxed);
  }
}

bool EpochCounter::SlowWait(uint32_t epoch, std::chrono::nanoseconds timeout) {
  if (timeout <= std::chrono::nanoseconds::zero()) return HasReached(value(), epoch);
  const int64_t start = MonotonicNanoseconds();
  const Deadline deadline = Deadline::After(timeout);
  if (Spin(epoch)) {
    LearnFrom(0);
    return true;
  }
  const bool reached = Sleep(epoch, deadline);
  const int64_t woken = woken_at_.load(std::memory_order_relaxed);
  LearnFrom((woken >= start ? woken : MonotonicNanoseconds()) - start);
  return reached;
}

bool EpochCounter::Sleep(uint32_t epoch, const Deadline& deadline) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool reached = false;
  for (;;) {
    const uint32_t now = epoch_.load(std::memory_order_seq_cst);
    reached = HasReached(now, epoch);
    const std::chrono::nanoseconds remaining = deadline.remaining();
    if (reached || remaining.count() == 0) break;
    FutexWait(epoch_, now, remaining);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return reached;
}

void EpochCounter::WakeAll() {
  woken_at_.store(MonotonicNanoseconds(), std::memory_order_relaxed);
  syscall(SYS_futex, FutexWord(epoch_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void EpochCounter::ThrowDeadlineExceeded(uint32_t epoch, std::chrono::nanoseconds timeout) const {
  throw DeadlineExceeded("epoch {} was not reached within {} ms; the counter is at {}", epoch,
                         std::chrono::duration<double, std::milli>(timeout).count(), value());
}

}  // namespace menger
