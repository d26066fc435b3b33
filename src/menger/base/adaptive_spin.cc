#include "menger/base/adaptive_spin.h"

#include <algorithm>

#include "menger/base/thread.h"

namespace menger {
namespace {

// About what a sleep and a wake cost (12 to 50 us on a virtual machine, more where the core sleeps,
// too): spinning longer than that can never be better than twice the best choice.
constexpr int64_t SpinNanosecondsMax(SpinKind kind) {
  return kind == SpinKind::kBrief ? 50'000 : 150'000;
}
}  // namespace

int64_t AdaptiveSpin::SpinNanoseconds(SpinKind kind) const {
  // Asked once: the mask of the whole process, not of a pinned caller.
  static const bool single_cpu = AvailableCpus() == 1;
  if (single_cpu) return 0;
  return SpinNanosecondsMax(kind) >> std::min(debt_.load(std::memory_order_relaxed), kDebtMax) / 4;
}

void AdaptiveSpin::LearnFromSleepSince(int64_t start, SpinKind kind) {
  const int64_t woken = woken_at_.load(std::memory_order_relaxed);
  LearnFrom((woken >= start ? woken : MonotonicNanoseconds()) - start, kind);
}

// Long waits shorten the spins to come and short ones lengthen them, one step each: a machine that
// is too busy for spinning soon pays little for trying, and one long wait among many short ones (a
// pool that idles while collection runs) costs nothing.
void AdaptiveSpin::LearnFrom(int64_t wait_nanoseconds, SpinKind kind) {
  const uint32_t debt = std::min(debt_.load(std::memory_order_relaxed), kDebtMax);
  if (wait_nanoseconds > SpinNanosecondsMax(kind)) {
    if (debt < kDebtMax) debt_.store(debt + 1, std::memory_order_relaxed);
  } else if (debt > 0) {
    debt_.store(debt - 1, std::memory_order_relaxed);
  }
}

}  // namespace menger
