#include "menger/training/collectors_needed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <memory>

#include "menger/base/clock.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/pipeline_parts.h"
#include "menger/training/run_replay.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

constexpr double kFillSeconds = 1.5;  // Until there is a batch to learn from.
constexpr double kCollectSeconds = 0.3;
constexpr double kLearnSeconds = 0.3;
constexpr int kUpdatesMin = 3;
constexpr double kBusyMin = 0.05;  // Even who only waits needs a little.

double ProcessSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Collected {
  double slabs = 0;
  double seconds = 0;
  double cpu_seconds = 0;
};

// Of the slabs after the first, which touches all memory and resets.
Collected CollectUntilThereIsABatch(CollectorRole& collector, RunReplay& replay,
                                    std::int64_t batch) {
  const auto advance = [&] { collector.Advance(Deadline::After(std::chrono::seconds(1))); };
  advance();
  Collected collected;
  const double cpu_before = ProcessSeconds();
  const Stopwatch watch;
  do {
    advance();
    ++collected.slabs;
    collected.seconds = watch.seconds();
  } while (
      collected.seconds < kFillSeconds &&
      (collected.seconds < kCollectSeconds || replay.client().info(replay.table()).items < batch));
  collected.cpu_seconds = ProcessSeconds() - cpu_before;
  return collected;
}

// Seconds of one update; 0 if there is no batch.
double SecondsOfUpdate(ReplayTrainer& trainer, UpdateRule& update) {
  if (!trainer.Draw(Deadline::After(std::chrono::milliseconds(100)))) return 0;
  trainer.Learn(/*draw_next=*/true, update, /*progress=*/0);  // Touches all memory.
  int updates = 0;
  const Stopwatch watch;
  while (watch.seconds() < kLearnSeconds || updates < kUpdatesMin) {
    if (!trainer.Draw(Deadline::After(std::chrono::milliseconds(100)))) return 0;
    trainer.Learn(/*draw_next=*/true, update, /*progress=*/0);
    ++updates;
  }
  const double seconds = watch.seconds() / updates;
  trainer.Release();
  return seconds;
}

}  // namespace

PipelineSpeeds MeasurePipeline(const Experiment& experiment, const EnvironmentEntry& environment) {
  const LearningParts parts = MakeLearningParts(experiment, environment);
  auto& algorithm = static_cast<ReplayAlgorithm&>(*parts.algorithm);
  const ReplayOptions& options = experiment.replay;
  ReplayStoreOptions store = ReplayStoreFor(options, PipelineContext(experiment), algorithm);
  store.tables[0].rate_limiter = RateLimiterOptions::MinSize(options.batch_size);
  RunReplay replay(store);
  ReplayTrainer trainer(options, PipelineContext(experiment), replay.client(), replay.table(),
                        algorithm);
  const auto memory = std::make_unique<RunMemory>();
  CollectorShare all{.environments = static_cast<int>(experiment.collector.environments),
                     .horizon = static_cast<int>(experiment.collector.horizon)};
  const auto collector = MakeCollectorRole(experiment, environment, algorithm,
                                           {.parameters = algorithm.publication(),
                                            .replay = replay.client(),
                                            .table = replay.table(),
                                            .memory = *memory},
                                           all, /*attempt=*/0);
  PipelineSpeeds speeds;
  const Collected collected = CollectUntilThereIsABatch(*collector, replay, options.batch_size);
  speeds.collecting = collected.seconds / collected.slabs;
  speeds.busy = std::max(kBusyMin, collected.cpu_seconds / collected.seconds);
  const ItemSteps item = algorithm.item_steps();
  const double updates = options.training_intensity * all.environments * all.horizon /
                         static_cast<double>(options.batch_size * item.learned);
  speeds.learning = updates * SecondsOfUpdate(trainer, *parts.update);
  return speeds;
}

CollectorsNeeded CollectorsFor(const PipelineSpeeds& speeds, const CollectorOptions& collector,
                               int learner_threads, int cpus, bool in_processes) {
  if (speeds.learning <= 0) {
    return {.reason = fmt::format("no batch to learn from came within {} s", kFillSeconds)};
  }
  const double faster = speeds.collecting / speeds.learning;
  const double each = in_processes ? static_cast<double>(collector.workers.value) : speeds.busy;
  const double room = std::max(1.0, (cpus - learner_threads) / each);
  const auto wanted = static_cast<int>(std::clamp(std::min(std::ceil(faster), std::floor(room)),
                                                  1.0, double{RunCounts::kCollectorsMax}));
  const std::int64_t parts =
      collector.workers.value * (collector.kind == "alternating" ? collector.groups : 1);
  CollectorsNeeded needed;
  for (int count = 1; count <= wanted; ++count) {
    if (collector.environments % (count * parts) == 0) needed.count = count;
  }
  needed.reason = fmt::format(
      "learning from a slab takes {:.3g} ms, collecting it by one collector {:.3g} ms, which keeps "
      "{:.2f} CPUs busy; {} CPUs are there",
      1e3 * speeds.learning, 1e3 * speeds.collecting, each, cpus);
  return needed;
}

}  // namespace menger
