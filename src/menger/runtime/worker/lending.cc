#include "menger/runtime/worker/lending.h"

#include <ctime>

#include "menger/base/clock.h"

namespace menger {
namespace {

// A process that computes less than this part of the time does nothing but wait.
constexpr std::int64_t kIdlePart = 10;

std::int64_t Computed() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Lending::ThreadWait::ThreadWait(Lending& lending)
    : lending_(lending),
      call_((++lending.threads_, lending.call_.load())),
      looked_at_(MonotonicNanoseconds()),
      computed_(Computed()) {}

void Lending::ThreadWait::Look(Tell block) {
  if (lends_ || call_ == 0) return;
  const std::int64_t now = MonotonicNanoseconds();
  const std::int64_t computed = Computed();
  const bool idle = (computed - computed_) * kIdlePart < now - looked_at_;
  looked_at_ = now;
  computed_ = computed;
  if (!idle) return;
  const std::lock_guard lock(lending_.mutex_);
  if (lending_.call_.load() != call_) return;
  lends_ = true;
  ++lending_.waits_;
  block();
}

void Lending::ThreadWait::End(Tell unblock) {
  if (!lends_) return;
  const std::lock_guard lock(lending_.mutex_);
  if (lending_.call_.load() == call_ && --lending_.waits_ == 0) unblock();
}

}  // namespace menger
