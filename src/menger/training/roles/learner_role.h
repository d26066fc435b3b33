#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/networks/update_rule.h"
#include "menger/training/learning/loop_state.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/roles/role.h"

namespace menger {

// Where the run is, as a learner sees it.
struct Pace {
  static constexpr std::int64_t kAsReplayAllows = std::numeric_limits<std::int64_t>::max();

  std::int64_t steps = 0;  // Collected by all.
  double progress = 0;     // Of the run, in [0, 1]: for schedules.
  // Updates that may be made now. kAsReplayAllows: the table's rate limiter decides.
  std::int64_t updates_due = 0;
  bool over = false;  // No more steps will be collected.
};

// Learns from replay and publishes parameters: updates as often as the pace says, a version for
// each so many steps collected, of which there were `steps` before. `pace` is asked before each
// update, with how many it has made; `published` is told of each version. Its done() are the
// updates. Borrows what it is given.
class LearnerRole final : public Role {
 public:
  LearnerRole(
      ReplayAlgorithm& algorithm, UpdateRule& update, ReplayTrainer& trainer,
      std::function<Pace(std::int64_t updates)> pace, std::int64_t publish_every,
      std::int64_t steps = 0, std::function<void()> published = [] {});

  const std::string& name() const override { return name_; }
  Advanced Advance(const Deadline& deadline) override;  // One update, or a wait for a batch.
  std::int64_t done() const override { return updates_; }

  void Publish();  // Between two calls of Advance.
  // What collectors saw: enters the statistics with the next version. Any thread.
  void AddMoments(const BatchMoments& moments);
  // Of updates since somebody asked: their means, by the algorithm's names; empty if there was
  // none. Any thread.
  Metrics TakeMetrics();
  VersionLag TakeLag();  // Likewise, of the items of all batches.

 private:
  void PublishIfDue(const Pace& pace);

  const std::string name_ = "learner";
  ReplayAlgorithm& algorithm_;
  UpdateRule& update_;
  ReplayTrainer& trainer_;
  const std::function<Pace(std::int64_t updates)> pace_;
  const std::int64_t publish_every_;
  std::int64_t published_at_;  // Steps.
  const std::function<void()> published_;
  std::atomic<std::int64_t> updates_{0};

  std::mutex mutex_;
  MetricMeans metrics_;  // These three: guarded by mutex_.
  BatchMoments moments_;
  VersionLag lag_;
};

}  // namespace menger
