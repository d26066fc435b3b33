#include "menger/training/pipeline_parts.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/collectors/calibration.h"
#include "menger/training/learning/replay_table.h"

namespace menger {
namespace {

// The limiter lets a slab more or less be there, and two batches, one of them drawn ahead.
constexpr double kBatches = 2;

}  // namespace

ReplayLearnerContext PipelineContext(const Experiment& experiment) {
  ReplayLearnerContext context{.environments = static_cast<int>(experiment.collector.environments),
                               .threads = static_cast<int>(experiment.learner_threads.value),
                               .on_device = experiment.device != "cpu",
                               .seed = static_cast<std::uint64_t>(experiment.seed)};
  if (experiment.topology.staleness_max > 0) {
    context.staleness_max = static_cast<std::uint64_t>(experiment.topology.staleness_max);
  }
  return context;
}

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

ReplayStoreOptions PipelineStore(const Experiment& experiment, const ReplayAlgorithm& algorithm) {
  const PipelinePace pace = PaceFor(experiment, algorithm);
  ReplayStoreOptions store =
      ReplayStoreFor(experiment.replay, PipelineContext(experiment), algorithm);
  store.tables[0].rate_limiter =
      RateLimiterOptions::SampleToInsertRatio(pace.samples_per_insert, pace.items_min, pace.buffer);
  return store;
}

Pace PaceOf(const Experiment& experiment, const PipelinePace& pace, const RunCounts& counts,
            ReplayClient& replay, int table, const ReplayTrainer& trainer) {
  const std::int64_t steps = counts.steps;
  Pace now{
      .steps = steps,
      .progress = std::min(1.0, static_cast<double>(steps) / static_cast<double>(experiment.steps)),
      .updates_due = Pace::kAsReplayAllows,
      .over = steps >= experiment.steps};
  if (!now.over) return now;
  const TableInfo info = replay.info(table);
  if (info.items < pace.items_min) {  // Nobody may draw, and nothing more comes.
    now.updates_due = 0;
    return now;
  }
  const double owed = pace.samples_per_insert * static_cast<double>(info.inserts - pace.items_min) -
                      static_cast<double>(info.samples);
  const auto batch = static_cast<double>(experiment.replay.batch_size);
  // A batch that was drawn ahead is counted as drawn.
  now.updates_due =
      std::max<std::int64_t>(trainer.has_batch() ? 1 : 0, static_cast<std::int64_t>(owed / batch));
  return now;
}

std::vector<CollectorShare> SharesOf(const Experiment& experiment) {
  const auto count = static_cast<int>(experiment.topology.collectors.value);
  const auto environments = static_cast<int>(experiment.collector.environments) / count;
  const std::vector<int> cpus = AvailableCpuList();
  // The workers of each and who calls them, after the threads that learn.
  const auto threads = static_cast<std::size_t>(experiment.collector.workers.value) + 1;
  const auto learner = static_cast<std::size_t>(experiment.learner_threads.value);
  const bool fits = learner + threads * static_cast<std::size_t>(count) <= cpus.size();
  std::vector<CollectorShare> shares;
  for (int i = 0; i < count; ++i) {
    CollectorShare share{.name = count == 1 ? "collector" : fmt::format("collector {}", i),
                         .index = i,
                         .collectors = count,
                         .environments = environments,
                         .first_environment = i * environments,
                         .horizon = static_cast<int>(experiment.collector.horizon)};
    if (fits) {
      const auto first =
          cpus.begin() + static_cast<std::ptrdiff_t>(learner + threads * shares.size());
      share.cpus.assign(first, first + static_cast<std::ptrdiff_t>(threads));
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

CollectorPlan PlanOf(const Experiment& experiment, const EnvironmentEntry& environment,
                     ReplayAlgorithm& algorithm, const CollectorShare& share,
                     std::int64_t attempt) {
  CollectorPlan plan = PlanCollection(experiment, environment, algorithm, share.environments,
                                      /*cpus=*/1, CollectorSeed(experiment.seed, attempt))
                           .plan;
  plan.first_environment = share.first_environment;
  plan.pin = plan.pin && !share.cpus.empty();
  plan.cpus = share.cpus;
  plan.shared_slab = experiment.topology.infers_apart() && experiment.topology.kind == "processes";
  return plan;
}

std::unique_ptr<CollectorRole> MakeCollectorRole(
    const Experiment& experiment, const EnvironmentEntry& environment, ReplayAlgorithm& algorithm,
    const CollectorContext& context, const CollectorShare& share, std::int64_t attempt) {
  const CollectorPlan plan = PlanOf(experiment, environment, algorithm, share, attempt);
  const auto policies = [&]() -> std::unique_ptr<Policy> {
    if (context.show) {
      return std::make_unique<RemotePolicy>(algorithm.policies().spec(), context.memory.inference,
                                            share.index, context.show, context.while_asking);
    }
    return algorithm.policies().Make(context.parameters, PolicyMode::kSample, plan.seed);
  };
  const int all = static_cast<int>(experiment.collector.environments);
  const ReplayOptions& replay = experiment.replay;
  CollectorRole::MomentsOf moments_of;
  if (experiment.transforms.Has("normalise_observation")) {
    moments_of = [&algorithm](const Slab& slab) { return algorithm.MomentsOf(slab); };
  }
  return std::make_unique<CollectorRole>(
      share, MakeCollector(plan, environment, policies),
      algorithm.MakeWriter(
          {.replay = context.replay,
           .table = context.table,
           .environments = share.environments,
           .chunk_steps = ReplayChunkSteps(replay, all),
           .compression =
               replay.compression == "automatic" ? Compression::kAutomatic : Compression::kNone,
           .own_errors_by = replay.initial_priority == "error" ? &context.parameters : nullptr}),
      context.memory.counts, experiment.steps, moments_of);
}

std::unique_ptr<InferenceRole> MakeInferenceRole(const Experiment& experiment,
                                                 ReplayAlgorithm& algorithm,
                                                 const ParameterSource& parameters,
                                                 InferenceBoard& board,
                                                 InferenceRole::FindSlab find) {
  const TopologyOptions& topology = experiment.topology;
  const std::chrono::duration<double> wait(topology.inference_wait);
  return std::make_unique<InferenceRole>(
      InferenceRoleOptions{.collectors = static_cast<int>(topology.collectors.value),
                           .positions_max = static_cast<int>(topology.inference_batch),
                           .wait = std::chrono::duration_cast<std::chrono::nanoseconds>(wait)},
      algorithm.policies().Make(parameters, PolicyMode::kSample,
                                static_cast<std::uint64_t>(experiment.seed)),
      board, std::move(find));
}

std::unique_ptr<LearnerRole> MakeLearnerRole(const Experiment& experiment,
                                             ReplayAlgorithm& algorithm, UpdateRule& update,
                                             ReplayTrainer& trainer, ReplayClient& replay,
                                             int table, RunCounts& counts,
                                             std::function<void()> published) {
  const auto pace = [&, table, held = PaceFor(experiment, algorithm)](std::int64_t) {
    return PaceOf(experiment, held, counts, replay, table, trainer);
  };
  return std::make_unique<LearnerRole>(
      algorithm, update, trainer, pace,
      experiment.collector.environments * experiment.collector.horizon, counts.steps,
      std::move(published));
}

}  // namespace menger
