#pragma once

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
  // Durations too long for the clock mean its last moment (in about 292 years); negative ones mean
  // now.
  static Deadline After(std::chrono::nanoseconds duration);

  std::chrono::nanoseconds remaining() const;  // Never negative.
  bool expired() const { return remaining().count() == 0; }
  int64_t at() const { return at_; }  // In MonotonicNanoseconds.

 private:
  explicit Deadline(int64_t at) : at_(at) {}

  int64_t at_;
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
