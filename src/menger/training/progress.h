#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

#include "menger/base/clock.h"

namespace menger {

// What a watching user wants to know.
struct ProgressState {
  std::int64_t steps = 0;
  std::int64_t steps_total = 0;
  double seconds_left = std::numeric_limits<double>::quiet_NaN();
  double steps_per_second = std::numeric_limits<double>::quiet_NaN();
  double return_mean = std::numeric_limits<double>::quiet_NaN();
  double evaluation_mean = std::numeric_limits<double>::quiet_NaN();  // Of the last evaluation.
  std::string roles = {};  // How those of a pipeline fare; empty: there are none.
};

// "steps 61440/100000 (61%), 182k steps/s, return 312.4, evaluation 500.0, 0:12 left"; what is not
// known yet is left out. Roles stand before the time.
std::string ProgressText(const ProgressState& state);

// The same behind a bar, in `width` characters: where that is less than all takes, the bar becomes
// shorter, then what matters least is left out: roles, the evaluation, the rate, the steps. The
// return and the time left stay.
std::string ProgressBar(const ProgressState& state, int width);

// A number with enough digits to tell it from others of the size of `scale`: four of them, and one
// behind the point at least.
std::string NumberText(double value, double scale);
inline std::string NumberText(double value) { return NumberText(value, value); }

std::string DurationText(double seconds);  // "0:12", "1:02:03"

// Shows progress on standard error: on a terminal one line that is drawn again and again, elsewhere
// a plain log line every few seconds. Any thread.
class ProgressReporter {
 public:
  // `interval_seconds` 0 means a tenth of a second on a terminal, five seconds elsewhere.
  explicit ProgressReporter(bool terminal, double interval_seconds = 0, bool silent = false);
  static ProgressReporter ForStandardError();
  static ProgressReporter Silent();  // Shows no progress, only what is said.
  ~ProgressReporter();               // Leaves the terminal at the start of a line.

  // Cheap when it is not time yet.
  void Update(const ProgressState& state);

  // A line that stays, above the bar.
  void Say(const std::string& line);

  // The same for a line that another program has written, which is left as it is.
  void Pass(const std::string& line);

  // Draws the state whether it is time or not, and goes to the next line.
  void Finish(const ProgressState& state);

 private:
  // With the mutex held.
  bool IsTime();
  void Draw(const ProgressState& state);

  const bool terminal_;
  const double interval_seconds_;
  const bool silent_ = false;

  std::mutex mutex_;  // Guards what follows.
  Stopwatch since_last_;
};

}  // namespace menger
