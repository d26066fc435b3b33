#include "menger/training/resolve.h"

#include <algorithm>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/training/collectors_needed.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

void CheckShares(const Experiment& experiment) {
  const std::int64_t collectors = experiment.topology.collectors.value;
  const std::int64_t environments = experiment.collector.environments;
  if (environments % collectors == 0) return;
  throw InvalidArgument(
      "topology.collectors = {} cannot share collector.environments = {} equally; make one a "
      "multiple of the other",
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

void ResolvePipeline(Experiment& experiment, const EnvironmentEntry& environment) {
  AutoInt& collectors = experiment.topology.collectors;
  const int learner_threads = static_cast<int>(experiment.learner_threads.value);
  const int cpus = AvailableCpus();
  const auto for_collectors = [&](std::int64_t count) {
    return static_cast<int>(std::max<std::int64_t>(1, (cpus - learner_threads) / count));
  };
  if (!collectors.is_auto) CheckShares(experiment);
  if (experiment.topology.infers_apart()) {
    ResolveKindOfAsking(experiment, experiment.collector.environments /
                                        (collectors.is_auto ? 1 : collectors.value));
  }
  if (!collectors.is_auto) {
    return ResolveCollector(experiment, environment,
                            experiment.collector.environments / collectors.value,
                            for_collectors(collectors.value));
  }
  ResolveCollector(experiment, environment, experiment.collector.environments, for_collectors(1));
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
  if (experiment.topology.is_pipeline()) return ResolvePipeline(experiment, environment);
  ResolveCollector(experiment, environment, experiment.collector.environments, AvailableCpus());
}

}  // namespace menger
