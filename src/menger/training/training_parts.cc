#include "menger/training/training_parts.h"

#include <utility>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/episode_algorithm.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/base/random.h"
#include "menger/base/thread.h"
#include "menger/collectors/calibration.h"
#include "menger/training/slab_consumer.h"
#include "menger/training/slab_cycle.h"

namespace menger {
namespace {

// For errors: what decides how much memory a part of a run takes.
std::string NetworkText(const Experiment& experiment) {
  return fmt::format("the networks of {} (network.kind = {}, network.hidden = [{}])",
                     experiment.algorithm, experiment.network.kind,
                     fmt::join(experiment.network.hidden, ", "));
}
std::string CollectingText(const Experiment& experiment) {
  return fmt::format(
      "collecting with collector.environments = {}, collector.horizon = {} and a copy of {} for "
      "each worker",
      experiment.collector.environments, experiment.collector.horizon, NetworkText(experiment));
}
std::string ReplayText(const Experiment& experiment) {
  if (experiment.algorithm_entry().data_rule() != DataRule::kBatches) return "what is learned from";
  return fmt::format("replay (replay.capacity = {}, replay.bytes_max = {}, replay.batch_size = {})",
                     experiment.replay.capacity, experiment.replay.bytes_max,
                     experiment.replay.batch_size);
}

const char* TextOf(DataRule rule) {
  switch (rule) {
    case DataRule::kSlabs:
      return "slabs";
    case DataRule::kBatches:
      return "batches of replay";
    case DataRule::kEpisodes:
      return "episodes";
  }
  return "something unknown";
}

SharedWorkerPool LearnerThreads(const Experiment& experiment) {
  return static_cast<int>(experiment.learner_threads.value);
}

std::unique_ptr<Algorithm> MakeAlgorithmOn(const SharedWorkerPool& threads,
                                           const Experiment& experiment,
                                           const EnvironmentEntry& environment) {
  experiment.algorithm_entry().Check(environment.spec);
  (void)RangeOf(environment.spec, experiment.transforms);  // Throws where none can be had.
  const AlgorithmContext context = {
      .environment = environment.spec,
      .network = experiment.network,
      .transforms = experiment.transforms,
      .environments = static_cast<int>(experiment.collector.environments),
      .device = experiment.device,
      .precision = experiment.precision,
      .seed = static_cast<std::uint64_t>(experiment.seed),
      .threads = threads};
  auto algorithm = WithMemoryFor([&] { return NetworkText(experiment); },
                                 [&] { return experiment.algorithm_entry().Make(context); });
  if (algorithm->data_rule() == experiment.algorithm_entry().data_rule()) return algorithm;
  throw Internal(
      "the entry of algorithm '{}' says that it learns from {}, but what it makes learns from {}: "
      "its data_rule() must be that of what it makes",
      experiment.algorithm, TextOf(experiment.algorithm_entry().data_rule()),
      TextOf(algorithm->data_rule()));
}

// Of an algorithm and its update rule: what is not loaded is lost, and the run another one.
void CheckAllRead(const ArchiveReader& scope, const std::string& what) {
  const std::vector<std::string> unread = scope.Unread();
  if (unread.empty()) return;
  throw FailedPrecondition(
      "checkpoint '{}' has '{}' of {}, which loading it did not read: what Save writes, Load must "
      "read",
      scope.path(), unread.front(), what);
}

// Else it would be known when there is something to lose.
void RehearseSaving(const Experiment& experiment, const LearningParts& parts) {
  ArchiveWriter archive = ArchiveWriter::Rehearsal("a checkpoint, tried before training");
  try {
    SaveLearningParts(*parts.algorithm, *parts.update, archive);
  } catch (const Error& error) {
    throw WithContext(error, fmt::format("algorithm '{}' cannot be saved", experiment.algorithm));
  }
}

}  // namespace

CalibrationReport PlanCollection(const Experiment& experiment, const EnvironmentEntry& environment,
                                 Algorithm& algorithm, std::int64_t environments, int cpus,
                                 std::uint64_t seed) {
  const AutoInt& workers = experiment.collector.workers;
  if (experiment.collector.kind == "serial" && !workers.is_auto && workers.value != 1) {
    throw InvalidArgument(
        "collector.workers = {}, but collector.kind = serial has one thread: set workers to 1, or "
        "kind to local, synchronous, alternating or auto",
        workers.value);
  }
  const auto policies = [&] { return algorithm.MakePolicy(PolicyMode::kSample, seed); };
  CollectorOptions options = experiment.collector;
  options.environments = environments;
  return WithMemoryFor([&] { return CollectingText(experiment); },
                       [&] {
                         return Calibrate(options,
                                          {.history = algorithm.policies().history(),
                                           .clip_actions = experiment.transforms.actions == "clip",
                                           .seed = seed},
                                          environment, policies, {.cpus = cpus});
                       });
}

std::unique_ptr<Algorithm> MakeAlgorithm(const Experiment& experiment,
                                         const EnvironmentEntry& environment) {
  return MakeAlgorithmOn(LearnerThreads(experiment), experiment, environment);
}

void ResolveCollector(Experiment& experiment, const EnvironmentEntry& environment,
                      std::int64_t environments, int cpus) {
  CollectorOptions& collector = experiment.collector;
  if (collector.kind != "auto" && !collector.workers.is_auto) return;
  const auto algorithm = MakeAlgorithm(experiment, environment);
  const CalibrationReport report =
      PlanCollection(experiment, environment, *algorithm, environments, cpus,
                     static_cast<std::uint64_t>(experiment.seed));
  if (!report.text.empty())
    LogInfo("{}", report.text.substr(0, report.text.find_last_not_of('\n') + 1));
  const CollectorPlan& plan = report.plan;
  for (const char* const name : {"kind", "workers"}) experiment.NoteChosen("collector", name);
  collector.kind = NameOf(plan.kind);
  collector.workers = {.value = plan.workers, .is_auto = false};
  if (plan.kind == CollectorKind::kAlternating) collector.groups = plan.groups;
}

std::uint64_t CollectorSeed(std::int64_t seed, std::int64_t attempt) {
  const auto first = static_cast<std::uint64_t>(seed);
  if (attempt == 0) return first;
  return SeedSequence({first, static_cast<std::uint64_t>(attempt)}).GenerateState64(1)[0] >> 16;
}

LearningParts MakeLearningParts(const Experiment& experiment, const EnvironmentEntry& environment) {
  LearningParts parts;
  const SharedWorkerPool threads = LearnerThreads(experiment);
  parts.algorithm = MakeAlgorithmOn(threads, experiment, environment);
  parts.update = WithMemoryFor(
      [&] {
        return fmt::format("the state of optimiser.kind = {} for {} parameters",
                           experiment.optimiser.kind, parts.algorithm->parameter_count());
      },
      [&] {
        return MakeLocalUpdateRule(experiment.optimiser, parts.algorithm->parameter_groups(),
                                   threads);
      });
  RehearseSaving(experiment, parts);
  return parts;
}

void SaveLearningParts(const Algorithm& algorithm, const UpdateRule& update,
                       ArchiveWriter& checkpoint) {
  ArchiveWriter of_algorithm = checkpoint.Scope("algorithm");
  ArchiveWriter of_update = checkpoint.Scope("update_rule");
  algorithm.Save(of_algorithm);
  update.Save(of_update);
}

void LoadLearningParts(const std::string& name, Algorithm& algorithm, UpdateRule& update,
                       ArchiveReader& checkpoint) {
  ArchiveReader of_algorithm = checkpoint.Scope("algorithm");
  ArchiveReader of_update = checkpoint.Scope("update_rule");
  algorithm.Load(of_algorithm);
  CheckAllRead(of_algorithm, fmt::format("algorithm '{}'", name));
  update.Load(of_update);
  CheckAllRead(of_update, "the update rule");
}

TrainingParts MakeParts(const Experiment& experiment, const EnvironmentEntry& environment,
                        std::int64_t attempt, const std::function<bool()>& given_up) {
  LearningParts learning = MakeLearningParts(experiment, environment);
  TrainingParts parts{.algorithm = std::move(learning.algorithm),
                      .update = std::move(learning.update)};
  Algorithm& algorithm = *parts.algorithm;
  const std::uint64_t seed = CollectorSeed(experiment.seed, attempt);
  if (algorithm.data_rule() == DataRule::kEpisodes) {
    parts.cycle = static_cast<EpisodeAlgorithm&>(algorithm).MakeCycle(
        {.environment = experiment.RequestedEnvironment(),
         .seed = seed,
         .runtime = experiment.runtime.ForRuntime()});
    return parts;
  }
  const CollectorPlan plan =
      PlanCollection(experiment, environment, algorithm, experiment.collector.environments,
                     AvailableCpus(), seed)
          .plan;
  const auto policies = [&] { return algorithm.MakePolicy(PolicyMode::kSample, seed); };
  auto collector = WithMemoryFor([&] { return CollectingText(experiment); },
                                 [&] { return MakeCollector(plan, environment, policies); });
  auto consumer = WithMemoryFor([&] { return ReplayText(experiment); },
                                [&] { return MakeSlabConsumer(experiment, algorithm, given_up); });
  parts.cycle =
      std::make_unique<SlabCycle>(std::move(collector), plan.environments, std::move(consumer));
  return parts;
}

int PlayingThreads(const Experiment& experiment) {
  const bool episodes = experiment.algorithm_entry().data_rule() == DataRule::kEpisodes;
  return static_cast<int>(episodes ? experiment.runtime.workers.value
                                   : experiment.collector.workers.value);
}

std::vector<std::unique_ptr<Policy>> GreedyPolicies(Algorithm& algorithm, std::uint64_t seed,
                                                    int count) {
  std::vector<std::unique_ptr<Policy>> policies;
  for (int i = 0; i < count; ++i) {
    policies.push_back(algorithm.MakePolicy(PolicyMode::kGreedy, seed));
  }
  return policies;
}

EvaluationPlan EvaluationPlanOf(const Experiment& experiment, const Algorithm& algorithm,
                                std::int64_t index) {
  const EvaluationOptions& options = experiment.evaluation;
  const std::int64_t seed = experiment.seed + options.seed_offset + index * options.episodes;
  return {.episodes = static_cast<int>(options.episodes),
          .seed = static_cast<std::uint64_t>(seed),
          .clip_actions = experiment.transforms.actions == "clip",
          .history = algorithm.policies().history(),
          .steps_max = options.steps_max};
}

}  // namespace menger
