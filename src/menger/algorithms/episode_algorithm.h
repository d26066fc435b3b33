#pragma once

#include <cstdint>
#include <memory>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/learning_cycle.h"
#include "menger/environments/worker_environments.h"
#include "menger/runtime/calls/runtime_options.h"

namespace menger {

// Who plays the episodes, and with what luck.
struct WorkerPlan {
  EnvironmentRequest environment;
  std::uint64_t seed = 0;  // Of environments and of whatever else is drawn to collect.
  RuntimeOptions runtime;
};

// Learns from whole episodes, which actors of a runtime play: they make their own environments.
class EpisodeAlgorithm : public Algorithm {
 public:
  DataRule data_rule() const final { return DataRule::kEpisodes; }

  // Starts a runtime with its workers; the cycle borrows the algorithm. Throws NotFound where
  // workers cannot make the environment, InvalidArgument for options that do not fit together.
  virtual std::unique_ptr<LearningCycle> MakeCycle(const WorkerPlan& plan) = 0;
};

}  // namespace menger
