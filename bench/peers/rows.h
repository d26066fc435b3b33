#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace menger::bench {

// The time that this thread itself has run since, so that what others do meanwhile counts little.
class CpuWatch {
 public:
  double nanoseconds() const { return Now() - start_; }

 private:
  static double Now() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }
  const double start_ = Now();
};

// ---- Rows of a table.

using Measurement = std::function<double()>;

inline std::string Spread(std::vector<double>& values, int digits, const char* unit = "") {
  std::sort(values.begin(), values.end());
  return fmt::format("{:.{}g}{} ({:.{}g} to {:.{}g})", values[values.size() / 2], digits, unit,
                     values.front(), digits, values.back(), digits);
}

// A row: each side's median, and the median of what it was of the first's in the same round.
inline void Row(const std::string& what, int rounds, const std::vector<Measurement>& sides) {
  std::vector<std::vector<double>> values(sides.size());
  std::vector<std::vector<double>> ratios(sides.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      values[i].push_back(sides[i]());
      ratios[i].push_back(values[i].back() / values[0].back());
    }
  }
  std::string line = fmt::format("| {} | {} |", what, Spread(values[0], 4));
  for (std::size_t i = 1; i < sides.size(); ++i) {
    line += fmt::format(" {}, {} |", Spread(values[i], 4), Spread(ratios[i], 2, "x"));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

inline void Head(const std::vector<std::string>& names) {
  fmt::print("\n| {} |\n|{}\n", fmt::join(names, " | "),
             fmt::join(std::vector<std::string>(names.size(), " --- |"), ""));
}

}  // namespace menger::bench
