#include "menger/base/epoch_counter.h"

#include "menger/base/error.h"
#include "menger/base/futex.h"

namespace menger {

bool EpochCounter::SlowWait(uint32_t epoch, std::chrono::nanoseconds timeout, SpinKind spin) {
  if (timeout <= std::chrono::nanoseconds::zero()) return HasReached(value(), epoch);
  const Deadline deadline = Deadline::After(timeout);
  return spin_.Wait([&] { return HasReached(value(), epoch); },
                    [&] { return Sleep(epoch, deadline); }, spin);
}

bool EpochCounter::Sleep(uint32_t epoch, const Deadline& deadline) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool reached = false;
  for (;;) {
    const uint32_t now = epoch_.load(std::memory_order_seq_cst);
    reached = HasReached(now, epoch);
    if (reached || deadline.expired()) break;
    FutexWait(epoch_, now, deadline);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return reached;
}

void EpochCounter::WakeAll() {
  spin_.Woken();
  FutexWake(epoch_);
}

void EpochCounter::ThrowDeadlineExceeded(uint32_t epoch, std::chrono::nanoseconds timeout) const {
  throw DeadlineExceeded("epoch {} was not reached within {} ms; the counter is at {}", epoch,
                         std::chrono::duration<double, std::milli>(timeout).count(), value());
}

}  // namespace menger
