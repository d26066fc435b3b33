#pragma once

#include <cstdint>
#include <memory>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/environments/environment.h"
#include "menger/networks/update_rule.h"
#include "menger/training/experiment.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/roles/collector_role.h"
#include "menger/training/run_replay.h"

namespace menger {

// What the roles of a pipeline in one process are made of: they meet in a table of replay, whose
// rate limiter holds the training intensity.
struct PipelineParts {
  std::unique_ptr<ReplayAlgorithm> algorithm;
  std::unique_ptr<UpdateRule> update;
  std::unique_ptr<RunReplay> replay;
  std::unique_ptr<ReplayTrainer> trainer;
};

// What the table's rate limiter is to hold.
struct PipelinePace {
  double samples_per_insert = 1;  // Of items, for the recipe's training intensity.
  std::int64_t items_min = 1;     // Before learning begins.
  double buffer = 0;              // Samples that there may be more or fewer.
};
PipelinePace PaceFor(const Experiment& experiment, const ReplayAlgorithm& algorithm);

// Throws as MakeParts, and InvalidArgument for what a pipeline cannot do yet: normalised
// observations, a replay server.
PipelineParts MakePipeline(const Experiment& experiment, const EnvironmentEntry& environment);

// One that collects `steps`. `attempt`: as MakeParts.
std::unique_ptr<CollectorRole> MakeCollectorRole(const Experiment& experiment,
                                                 const EnvironmentEntry& environment,
                                                 PipelineParts& parts, std::int64_t attempt,
                                                 std::int64_t steps);

}  // namespace menger
