#include "menger/training/pipeline_parts.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/collectors/calibration.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

// The limiter lets a slab more or less be there, and two batches, one of them drawn ahead.
constexpr double kBatches = 2;

void CheckPossible(const Experiment& experiment) {
  if (!experiment.replay.address.empty()) {
    throw InvalidArgument(
        "topology.kind = {} with replay.address: a pipeline has replay in its own process",
        experiment.topology.kind);
  }
  const std::vector<std::string>& apply = experiment.transforms.apply;
  if (std::ranges::find(apply, "normalise_observation") != apply.end()) {
    throw InvalidArgument(
        "topology.kind = {} with normalise_observation: what collectors see does not reach the "
        "statistics of a pipeline's learner yet",
        experiment.topology.kind);
  }
}

ReplayLearnerContext ContextFor(const Experiment& experiment) {
  return {.environments = static_cast<int>(experiment.collector.environments),
          .threads = static_cast<int>(experiment.learner_threads.value),
          .on_device = experiment.device != "cpu",
          .seed = static_cast<std::uint64_t>(experiment.seed)};
}

}  // namespace

PipelinePace PaceFor(const Experiment& experiment, const ReplayAlgorithm& algorithm) {
  const ItemSteps item = algorithm.item_steps();
  const ReplayOptions& replay = experiment.replay;
  PipelinePace pace{.samples_per_insert = replay.training_intensity * item.added / item.learned,
                    .items_min = ItemsOf(replay.min_size, item)};
  const double slab = static_cast<double>(
      ItemsOf(experiment.collector.environments * experiment.collector.horizon, item));
  pace.buffer = pace.samples_per_insert * slab + kBatches * static_cast<double>(replay.batch_size);
  return pace;
}

PipelineParts MakePipeline(const Experiment& experiment, const EnvironmentEntry& environment) {
  CheckPossible(experiment);
  PipelineParts parts;
  LearningParts learning = MakeLearningParts(experiment, environment);
  parts.algorithm.reset(static_cast<ReplayAlgorithm*>(learning.algorithm.release()));
  parts.update = std::move(learning.update);
  const PipelinePace pace = PaceFor(experiment, *parts.algorithm);
  ReplayStoreOptions store =
      ReplayStoreFor(experiment.replay, ContextFor(experiment), *parts.algorithm);
  store.tables[0].rate_limiter =
      RateLimiterOptions::SampleToInsertRatio(pace.samples_per_insert, pace.items_min, pace.buffer);
  parts.replay = std::make_unique<RunReplay>(store);
  parts.trainer = std::make_unique<ReplayTrainer>(experiment.replay, ContextFor(experiment),
                                                  parts.replay->client(), parts.replay->table(),
                                                  *parts.algorithm);
  return parts;
}

std::unique_ptr<CollectorRole> MakeCollectorRole(const Experiment& experiment,
                                                 const EnvironmentEntry& environment,
                                                 PipelineParts& parts, std::int64_t attempt,
                                                 std::int64_t steps) {
  ReplayAlgorithm& algorithm = *parts.algorithm;
  const std::uint64_t seed = CollectorSeed(experiment.seed, attempt);
  const auto policies = [&] { return algorithm.MakePolicy(PolicyMode::kSample, seed); };
  const int environments = static_cast<int>(experiment.collector.environments);
  const ReplayOptions& replay = experiment.replay;
  CollectorPlan plan = PlanCollection(experiment, environment, algorithm, seed).plan;
  plan.pin = false;  // The learner needs CPUs, too: the kernel decides.
  return std::make_unique<CollectorRole>(
      "collector", MakeCollector(plan, environment, policies), environments,
      algorithm.MakeWriter({.replay = parts.replay->client(),
                            .table = parts.replay->table(),
                            .environments = environments,
                            .chunk_steps = ReplayChunkSteps(replay, environments),
                            .compression = replay.compression == "automatic"
                                               ? Compression::kAutomatic
                                               : Compression::kNone}),
      steps);
}

}  // namespace menger
