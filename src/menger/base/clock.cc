#include "menger/base/clock.h"

#include <algorithm>
#include <limits>

namespace menger {

int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double MonotonicSeconds() { return static_cast<double>(MonotonicNanoseconds()) * 1e-9; }

Deadline Deadline::After(std::chrono::nanoseconds duration) {
  const int64_t now = MonotonicNanoseconds();
  const int64_t wait = std::max<int64_t>(duration.count(), 0);
  const int64_t last = std::numeric_limits<int64_t>::max();
  return {wait > last - now ? last : now + wait, nullptr};
}

std::chrono::nanoseconds Deadline::remaining() const {
  if (flag_ != nullptr && flag_->load(std::memory_order_acquire)) return {};
  return std::chrono::nanoseconds(std::max<int64_t>(at_ - MonotonicNanoseconds(), 0));
}

}  // namespace menger
