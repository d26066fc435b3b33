#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace menger {

// The steady clock of this machine; never jumps, means nothing on another machine or after a
// restart.
int64_t MonotonicNanoseconds();
double MonotonicSeconds();

// A point in time by which a wait must end. A value: cheap to copy, safe to share.
class Deadline {
 public:
  // Durations of a year and more mean for ever, for which nobody looks at the clock; negative ones
  // mean now.
  static Deadline After(std::chrono::nanoseconds duration);

  // The same, but past as soon as the flag is set: by whoever knows that nobody wants any longer
  // what is waited for. Waits that heed it look once in `slice`. The flag outlives all copies.
  Deadline OrWhen(const std::atomic<bool>& flag) const { return {at_, &flag}; }

  std::chrono::nanoseconds remaining() const;  // Never negative.
  bool expired() const { return remaining().count() == 0; }
  // How long to wait until `expired` is asked again: what remains, but no more than a second where
  // there is a flag.
  std::chrono::nanoseconds slice() const {
    return flag_ == nullptr ? remaining() : std::min(remaining(), std::chrono::nanoseconds(kLook));
  }
  int64_t at() const { return at_; }  // In MonotonicNanoseconds, whatever the flag.

 private:
  static constexpr std::chrono::seconds kLook{1};

  Deadline(int64_t at, const std::atomic<bool>* flag) : at_(at), flag_(flag) {}

  int64_t at_;
  const std::atomic<bool>* flag_;  // Null: there is none.
};

// Measures elapsed time from its making or its last Restart.
class Stopwatch {
 public:
  Stopwatch() : start_(MonotonicNanoseconds()) {}

  double seconds() const { return static_cast<double>(nanoseconds()) * 1e-9; }
  int64_t nanoseconds() const { return MonotonicNanoseconds() - start_; }
  void Restart() { start_ = MonotonicNanoseconds(); }

 private:
  int64_t start_;
};

}  // namespace menger
