#pragma once

#include <array>
#include <cstdint>

#include "menger/base/clock.h"

namespace menger {

// Estimates where one thread's time goes, for next to nothing: the total is measured once a slab,
// and split as the rows that it looks at were. Those are all rows while they are coarse (20 us and
// up), every seventh while they are fine: seven, so that no horizon in use always shows it the same
// rows. One thread; others may use it after they have synchronised with it.
class PhaseClock {
 public:
  enum Phase { kSimulation, kInference, kWaiting };

  // Starts a row. The time up to each Lap belongs to the phase named there.
  void Begin() {
    looking_ = --countdown_ == 0;
    if (!looking_) return;
    weight_ = stride_;
    stride_ = last_ - begin_ >= kCoarseNanoseconds ? 1 : kFineStride;
    countdown_ = stride_;
    begin_ = last_ = MonotonicNanoseconds();
  }

  void Lap(Phase phase) {
    if (!looking_) return;
    const std::int64_t now = MonotonicNanoseconds();
    seen_[phase] += (now - last_) * weight_;
    last_ = now;
  }

  // The exact time of all rows of a slab, to be split.
  void AddRows(std::int64_t nanoseconds) { rows_ += nanoseconds; }

  // What is no row and belongs to one phase.
  void Add(Phase phase, std::int64_t nanoseconds) { exact_[phase] += nanoseconds; }

  double seconds(Phase phase) const {
    const std::int64_t seen = seen_[kSimulation] + seen_[kInference] + seen_[kWaiting];
    const double share =
        seen == 0 ? 0 : static_cast<double>(seen_[phase]) / static_cast<double>(seen);
    return (static_cast<double>(rows_) * share + static_cast<double>(exact_[phase])) * 1e-9;
  }

 private:
  static constexpr std::int64_t kCoarseNanoseconds = 20'000;
  static constexpr int kFineStride = 7;

  bool looking_ = false;
  int countdown_ = 1;
  int stride_ = 1;          // Rows until the next look; each look stands for as many.
  int weight_ = 1;          // Of the row that is under way.
  std::int64_t begin_ = 0;  // Of the last row looked at.
  std::int64_t last_ = 0;   // Its last lap.
  std::int64_t rows_ = 0;
  std::array<std::int64_t, 3> seen_{};  // Of the rows looked at, times their weights.
  std::array<std::int64_t, 3> exact_{};
};

}  // namespace menger
