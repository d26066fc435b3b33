#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"

namespace menger::bench {

// What a function reaches a second: the mean of some windows, and their standard deviation.
struct Rate {
  double mean = 0;
  double deviation = 0;
};

inline constexpr int kWindows = 4;

// As `ray microbenchmark` measures: calls `function` for a while to warm up, then for kWindows
// windows of `seconds`; `times` is how much one call counts for.
template <typename Function>
Rate MeasureRate(double seconds, double times, const Function& function) {
  int calls = 0;
  for (const Stopwatch watch; watch.seconds() < seconds / 2; ++calls) function();
  const int step = calls / 10 + 1;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kWindows; ++i) {
    const Stopwatch watch;
    double count = 0;
    for (; watch.seconds() < seconds; count += step) {
      for (int j = 0; j < step; ++j) function();
    }
    const double rate = times * count / watch.seconds();
    sum += rate;
    squares += rate * rate;
  }
  const double mean = sum / kWindows;
  return {mean, std::sqrt(std::max(0.0, squares / kWindows - mean * mean))};
}

// Nanoseconds of single events, in any order; `share` in [0, 1].
inline double Percentile(std::vector<double>& values, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// A line that bench/measure.py reads: `fields` is JSON without its braces.
inline void PrintResult(std::string_view fields) {
  fmt::print("RESULT {{{}}}\n", fields);
  std::fflush(stdout);
}

}  // namespace menger::bench
