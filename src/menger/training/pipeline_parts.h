#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/environments/environment.h"
#include "menger/parameters/parameter_source.h"
#include "menger/replay/client/replay_client.h"
#include "menger/replay/replay_store.h"
#include "menger/training/experiment.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/roles/collector_role.h"
#include "menger/training/roles/inference_board.h"
#include "menger/training/roles/inference_role.h"
#include "menger/training/roles/learner_role.h"
#include "menger/training/roles/remote_policy.h"
#include "menger/training/roles/run_counts.h"
#include "menger/training/training_parts.h"

// What the roles of a pipeline are made from, wherever they are: they meet in a table of replay,
// whose rate limiter holds the training intensity.

namespace menger {

// What the table's rate limiter is to hold.
struct PipelinePace {
  double samples_per_insert = 1;  // Of items, for the recipe's training intensity.
  std::int64_t items_min = 1;     // Before learning begins.
  double buffer = 0;              // Samples that there may be more or fewer.
};
PipelinePace PaceFor(const Experiment& experiment, const ReplayAlgorithm& algorithm);

ReplayLearnerContext PipelineContext(const Experiment& experiment);
ReplayStoreOptions PipelineStore(const Experiment& experiment, const ReplayAlgorithm& algorithm);

// What a learner is told of the run.
Pace PaceOf(const Experiment& experiment, const PipelinePace& pace, const RunCounts& counts,
            ReplayClient& replay, int table, const ReplayTrainer& trainer);

// The shares of a resolved recipe's collectors, by index. Their threads and the learner's are
// pinned side by side where all of them go round.
std::vector<CollectorShare> SharesOf(const Experiment& experiment);

// How a share is collected: of a resolved recipe, so nothing is measured. `attempt`: as
// CollectorSeed's.
CollectorPlan PlanOf(const Experiment& experiment, const EnvironmentEntry& environment,
                     ReplayAlgorithm& algorithm, const CollectorShare& share, std::int64_t attempt);

// What a collector borrows.
struct CollectorContext {
  const ParameterSource& parameters;
  ReplayClient& replay;
  int table = 0;
  RunMemory& memory;
  // Where another role acts for it; see RemotePolicy.
  RemotePolicy::ShowSlab show = {};
  std::function<void()> while_asking = {};
};

// One that plays by versions of the parameters, or as inference acts for it, until all have
// collected what the recipe says. Borrows the algorithm, too.
std::unique_ptr<CollectorRole> MakeCollectorRole(const Experiment& experiment,
                                                 const EnvironmentEntry& environment,
                                                 ReplayAlgorithm& algorithm,
                                                 const CollectorContext& context,
                                                 const CollectorShare& share, std::int64_t attempt);

// One that acts for all collectors of the recipe by versions of `parameters`. Borrows the
// algorithm, the parameters and the board. Its draws are those of attempt 0: what a collector that
// was made anew meets differs by its environments alone.
std::unique_ptr<InferenceRole> MakeInferenceRole(const Experiment& experiment,
                                                 ReplayAlgorithm& algorithm,
                                                 const ParameterSource& parameters,
                                                 InferenceBoard& board,
                                                 InferenceRole::FindSlab find);

// One whose updates are paced so. Borrows all.
std::unique_ptr<LearnerRole> MakeLearnerRole(const Experiment& experiment,
                                             ReplayAlgorithm& algorithm, UpdateRule& update,
                                             ReplayTrainer& trainer, ReplayClient& replay,
                                             int table, RunCounts& counts,
                                             std::function<void()> published);

}  // namespace menger
