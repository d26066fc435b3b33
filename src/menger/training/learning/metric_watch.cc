#include "menger/training/learning/metric_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {

void CheckMetrics(const Metrics& metrics, std::span<const std::string> names) {
  const auto is_named = [](const auto& metric, const std::string& name) {
    return metric.first == name;
  };
  if (std::ranges::equal(metrics, names, is_named)) return;
  std::vector<std::string> reported;
  for (const auto& [name, value] : metrics) reported.push_back(name);
  throw Internal(
      "Learn reported the metrics [{}]; metric_names() are [{}], and both must be the "
      "same",
      fmt::join(reported, ", "), fmt::join(names, ", "));
}

MetricWatch::MetricWatch(std::string algorithm, std::vector<std::string> names)
    : algorithm_(std::move(algorithm)), names_(std::move(names)) {}

void MetricWatch::Look(const Metrics& metrics, bool updated, std::int64_t steps) {
  CheckMetrics(metrics, names_);
  if (!updated) return;
  saw_update_ = true;
  for (const auto& [name, value] : metrics) {
    if (!std::isnan(value) || !told_.insert(name).second) continue;
    LogWarning(
        "metric '{}' of algorithm '{}' is nan in the update after {} steps: it must be a number; "
        "progress.csv leaves it out. This is said once",
        name, algorithm_, steps);
  }
}

}  // namespace menger
