#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/archive.h"
#include "menger/collectors/collector.h"
#include "menger/networks/update_rule.h"

namespace menger {

// What a training loop does again and again: collect experience, then learn from it. Whatever shape
// the experience has, the loop stays the same. One thread.
class LearningCycle {
 public:
  virtual ~LearningCycle() = default;

  // Collects what the next Learn learns from, with the newest published parameters; no more than
  // `steps_max` steps and what completes a step of all environments, where steps can be counted
  // beforehand. Throws what
  // environments and policies throw, DeadlineExceeded where a worker hangs: the cycle is then
  // unusable, and where it hangs cannot be destroyed either.
  virtual void Collect(std::int64_t steps_max) = 0;

  // Learns from it. `progress` in [0, 1] is the share of the run's steps collected before. Reports
  // metric_names(), in that order. Publishing is the caller's.
  virtual Metrics Learn(UpdateRule& update, double progress) = 0;
  virtual std::vector<std::string> metric_names() const = 0;

  // Whether the last Learn made an update. Where not, metrics of updates are NaN; else NaN says
  // that something is wrong.
  virtual bool updated() const { return true; }

  // Of the last Collect: environment steps that count, and the episodes that ended.
  virtual std::int64_t steps() const = 0;
  virtual std::span<const EpisodeResult> episodes() const = 0;

  // What environments said about episodes that ended since the last call.
  virtual std::vector<EnvironmentMetric> TakeMetrics() { return {}; }

  // Steps of the Collect that is going on, roughly, or 0; any thread, for who waits.
  virtual std::int64_t steps_under_way() const { return 0; }

  // Of the threads that collect, since construction. NaN: not known.
  virtual CollectorTimes times() const {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return {.simulation = kUnknown, .inference = kUnknown, .waiting = kUnknown};
  }

  // Between two rounds: what is neither the algorithm's nor the update rule's, of collecting and of
  // learning. A cycle that has loaded both goes on bit for bit.
  virtual void SaveCollection(ArchiveWriter& /*archive*/) const {}
  virtual void LoadCollection(ArchiveReader& /*archive*/) {}
  virtual void SaveLearning(ArchiveWriter& /*archive*/) const {}
  virtual void LoadLearning(ArchiveReader& /*archive*/) {}
};

}  // namespace menger
