#pragma once

#include <algorithm>
#include <string>

namespace menger {

// How a value changes over a run: it stays ("constant") or falls in a straight line to 0 at the end
// ("linear").
inline double Scheduled(double initial, const std::string& schedule, double progress) {
  return schedule == "linear" ? initial * std::max(0.0, 1.0 - progress) : initial;
}

}  // namespace menger
