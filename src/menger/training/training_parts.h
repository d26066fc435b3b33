#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/learning_cycle.h"
#include "menger/collectors/calibration.h"
#include "menger/environments/environment.h"
#include "menger/networks/update_rule.h"
#include "menger/training/evaluation.h"
#include "menger/training/experiment.h"

namespace menger {

// What learns, whatever loop it is in.
struct LearningParts {
  std::unique_ptr<Algorithm> algorithm;
  std::unique_ptr<UpdateRule> update;
};

// Of a resolved experiment, with fresh parameters. Throws as MakeAlgorithm, and what saving throws
// where the algorithm cannot be saved (two entries of one name): what cannot be saved is not
// trained.
LearningParts MakeLearningParts(const Experiment& experiment, const EnvironmentEntry& environment);

// Their scopes of a checkpoint. Loading throws FailedPrecondition where a state is not of this
// architecture, or was not read.
void SaveLearningParts(const Algorithm& algorithm, const UpdateRule& update,
                       ArchiveWriter& checkpoint);
void LoadLearningParts(const std::string& name, Algorithm& algorithm, UpdateRule& update,
                       ArchiveReader& checkpoint);

// The components of a run. The cycle borrows the algorithm.
struct TrainingParts {
  std::unique_ptr<Algorithm> algorithm;
  std::unique_ptr<UpdateRule> update;
  std::unique_ptr<LearningCycle> cycle;
};

// Replaces what is `auto` of one collector of so many environments, which may have `cpus`, by what
// a short calibration shows, and logs that with its reason.
void ResolveCollector(Experiment& experiment, const EnvironmentEntry& environment,
                      std::int64_t environments, int cpus);

// The algorithm of a resolved experiment, with fresh parameters. Throws InvalidArgument if it does
// not fit the environment.
std::unique_ptr<Algorithm> MakeAlgorithm(const Experiment& experiment,
                                         const EnvironmentEntry& environment);

// Plans the collection of so many environments by one collector, which may have `cpus`: as the
// options say, or by measuring what they leave open.
CalibrationReport PlanCollection(const Experiment& experiment, const EnvironmentEntry& environment,
                                 Algorithm& algorithm, std::int64_t environments, int cpus,
                                 std::uint64_t seed);

// What environments and action noise draw from: the experiment's seed, until collection fails. Each
// attempt after that has a seed of its own, a function of the two: a resumed run neither repeats
// draws that were learned from nor meets the same failure again, and two resumes are still the
// same. Below 2^48, so that an environment's seed can be given to `menger rollout --seed`.
std::uint64_t CollectorSeed(std::int64_t seed, std::int64_t attempt);

// Everything that a loop needs. `attempt` is the checkpoint's (LoopCounters); 0 for a new run; once
// `given_up`, which any thread may ask, nobody waits for what does not come (MakeSlabConsumer).
// Throws what saving throws where the algorithm cannot be saved (two entries of one name), Internal
// where it does not learn from what its entry says.
TrainingParts MakeParts(
    const Experiment& experiment, const EnvironmentEntry& environment, std::int64_t attempt,
    const std::function<bool()>& given_up = [] { return false; });

// How many threads may play episodes at once in a resolved experiment.
int PlayingThreads(const Experiment& experiment);

// Policies that act greedily: for an evaluation on as many threads.
std::vector<std::unique_ptr<Policy>> GreedyPolicies(Algorithm& algorithm, std::uint64_t seed,
                                                    int count);

// How the experiment's policy is evaluated by the evaluation number `index`. Each has environment
// seeds of its own: seed + seed_offset + index x episodes, and up.
EvaluationPlan EvaluationPlanOf(const Experiment& experiment, const Algorithm& algorithm,
                                std::int64_t index);

}  // namespace menger
