#include "menger/training/resolve.h"

#include <algorithm>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/training/collectors_needed.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

// What a pipeline cannot do yet.
void CheckPipeline(const Experiment& experiment) {
  if (!experiment.replay.address.empty()) {
    throw InvalidArgument(
        "replay.address with topology.kind = {}: a pipeline has a replay of its own; drop the "
        "one, or set the other to synchronous",
        experiment.topology.kind);
  }
}

void CheckShares(const Experiment& experiment) {
  const std::int64_t collectors = experiment.topology.collectors.value;
  const std::int64_t environments = experiment.collector.environments;
  if (environments % collectors == 0) return;
  throw InvalidArgument(
      "topology.collectors = {} cannot share collector.environments = {} equally: make the "
      "environments a multiple of the collectors",
      collectors, environments);
}

// A collector that asks for its actions has one thread that does, and, where its environments go
// round, two groups: while one is acted on, the other is simulated.
void ResolveKindOfAsking(Experiment& experiment, std::int64_t environments) {
  CollectorOptions& collector = experiment.collector;
  if (collector.kind == "local") {
    throw InvalidArgument(
        "collector.kind = local with topology.inference = apart: its workers act each for itself; "
        "choose alternating, synchronous or serial");
  }
  if (collector.kind != "auto") return;
  const std::int64_t workers = collector.workers.is_auto ? 1 : collector.workers.value;
  const bool halves = environments % (collector.groups * workers) == 0;
  collector.kind = halves ? "alternating" : "synchronous";
  experiment.NoteChosen("collector", "kind");
}

// Throws where no collector can be made so: before there is a run.
void CheckPlan(const Experiment& experiment, const EnvironmentEntry& environment,
               std::int64_t share) {
  const auto algorithm = MakeAlgorithm(experiment, environment);
  const auto seed = static_cast<std::uint64_t>(experiment.seed);
  PlanCollection(experiment, environment, *algorithm, share, /*cpus=*/1, seed).plan.Check();
}

// Options that a recipe or the user has set for another kind of topology.
void WarnOfIdleOptions(const TopologyOptions& topology) {
  const TopologyOptions defaults;
  const auto warn = [&](bool is_set, const char* option, std::string_view needs) {
    if (is_set) LogWarning("topology.{} does nothing without {}", option, needs);
  };
  const bool pipeline = topology.is_pipeline();
  const std::string_view kind = "topology.kind = turns, threads or processes";
  warn(!pipeline && !topology.collectors.is_auto, "collectors", kind);
  warn(!pipeline && topology.inference != defaults.inference, "inference", kind);
  warn(!pipeline && topology.staleness_max != defaults.staleness_max, "staleness_max", kind);
  const std::string_view apart = "topology.inference = apart in a pipeline";
  warn(!topology.infers_apart() && topology.inference_batch != 0, "inference_batch", apart);
  warn(!topology.infers_apart() && topology.inference_wait != 0, "inference_wait", apart);
}

void ResolvePipeline(Experiment& experiment, const EnvironmentEntry& environment) {
  AutoInt& collectors = experiment.topology.collectors;
  const int learner_threads = static_cast<int>(experiment.learner_threads.value);
  const int cpus = AvailableCpus();
  const auto for_collectors = [&](std::int64_t count) {
    return static_cast<int>(std::max<std::int64_t>(1, (cpus - learner_threads) / count));
  };
  CheckPipeline(experiment);
  if (collectors.is_auto && experiment.topology.kind == "turns") {
    collectors = {.value = 1, .is_auto = false};  // One seed, one result, on every machine.
    experiment.NoteChosen("topology", "collectors");
  }
  if (!collectors.is_auto) CheckShares(experiment);
  if (experiment.topology.infers_apart()) {
    ResolveKindOfAsking(experiment, experiment.collector.environments /
                                        (collectors.is_auto ? 1 : collectors.value));
  }
  const std::int64_t count = collectors.is_auto ? 1 : collectors.value;
  const std::int64_t share = experiment.collector.environments / count;
  try {
    ResolveCollector(experiment, environment, share, for_collectors(count));
    CheckPlan(experiment, environment, share);
  } catch (const Error& error) {
    if (count == 1) throw;
    throw WithContext(
        error,
        fmt::format("each of topology.collectors = {} has {} of the environments", count, share));
  }
  if (!collectors.is_auto) return;
  const CollectorsNeeded needed =
      CollectorsFor(MeasurePipeline(experiment, environment), experiment.collector, learner_threads,
                    cpus, environment.shares_memory);
  LogInfo("topology.collectors = {}: {}", needed.count, needed.reason);
  collectors = {.value = needed.count, .is_auto = false};
  experiment.NoteChosen("topology", "collectors");
}

}  // namespace

void Resolve(Experiment& experiment, const EnvironmentEntry& environment) {
  experiment.ApplyDefaults(environment.spec);
  experiment.ResolveDefaults();
  if (experiment.algorithm_entry().data_rule() == DataRule::kEpisodes) return;
  if (experiment.algorithm_entry().data_rule() == DataRule::kBatches) {
    WarnOfIdleOptions(experiment.topology);
  }
  if (experiment.topology.is_pipeline()) return ResolvePipeline(experiment, environment);
  ResolveCollector(experiment, environment, experiment.collector.environments, AvailableCpus());
}

}  // namespace menger
