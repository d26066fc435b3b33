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
  constexpr std::chrono::hours kForEver(24 * 365);
  // Whoever adds what remains to the time may do so somewhat later.
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  if (duration >= kForEver) return {kNever, nullptr};
  return {MonotonicNanoseconds() + std::max<int64_t>(duration.count(), 0), nullptr};
}

std::chrono::nanoseconds Deadline::remaining() const {
  if (flag_ != nullptr && flag_->load(std::memory_order_acquire)) return {};
  return std::chrono::nanoseconds(std::max<int64_t>(at_ - MonotonicNanoseconds(), 0));
}

}  // namespace menger
