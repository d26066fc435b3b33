#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"

namespace menger {

// Throws Internal, naming both, unless the metrics have these names in this order.
void CheckMetrics(const Metrics& metrics, std::span<const std::string> names);

// Looks at what an algorithm reports. One thread.
class MetricWatch {
 public:
  MetricWatch(std::string algorithm, std::vector<std::string> names);

  // As CheckMetrics. `updated`: whether there was an update to report of; then a metric that is NaN
  // is told of once, in a warning that names it and the step: nobody sees it in progress.csv, where
  // its cell is empty.
  void Look(const Metrics& metrics, bool updated, std::int64_t steps);

  // Whether there was an update since construction.
  bool saw_update() const { return saw_update_; }

  const std::vector<std::string>& names() const { return names_; }

 private:
  const std::string algorithm_;
  const std::vector<std::string> names_;
  std::set<std::string> told_;
  bool saw_update_ = false;
};

}  // namespace menger
