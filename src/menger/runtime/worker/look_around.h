#pragma once

#include <algorithm>
#include <chrono>

namespace menger {

// How long to sleep where somebody rings when there is something to do: no wait is endless, but
// each is longer than the one before it, so that a thousand who do nothing cost nothing.
class LookAround {
 public:
  std::chrono::nanoseconds Next() {
    const std::chrono::nanoseconds now = next_;
    next_ = std::min<std::chrono::nanoseconds>(8 * next_, kLongest);
    return now;
  }
  // There was something to do.
  void Reset() { next_ = kFirst; }

 private:
  static constexpr std::chrono::nanoseconds kFirst = std::chrono::milliseconds(100);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::minutes(1);

  std::chrono::nanoseconds next_ = kFirst;
};

}  // namespace menger
