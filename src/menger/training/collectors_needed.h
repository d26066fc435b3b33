#pragma once

#include <string>

#include "menger/environments/environment.h"
#include "menger/training/experiment.h"

namespace menger {

// How fast one collector and the learner of a pipeline are, each by itself.
struct PipelineSpeeds {
  double collecting = 0;  // Seconds a slab, of all environments by one collector.
  double busy = 1;        // CPUs that it kept busy meanwhile.
  double learning = 0;    // Seconds of the updates that a slab pays for; 0: not measured in time.
};

// Collects and learns for about a second, with parameters and a replay of its own. The experiment
// is resolved but for topology.collectors.
PipelineSpeeds MeasurePipeline(const Experiment& experiment, const EnvironmentEntry& environment);

// How many collectors keep a learner busy.
struct CollectorsNeeded {
  int count = 1;
  std::string reason;
};

// As many as the learner is faster than one, where the CPUs that it leaves have room for them:
// collectors that wait for their simulators need few. Each has an equal share of the environments,
// which its workers and groups share in turn. `in_processes`: environments are stepped by processes
// of their own, whose CPUs were not seen: each worker counts as one.
CollectorsNeeded CollectorsFor(const PipelineSpeeds& speeds, const CollectorOptions& collector,
                               int learner_threads, int cpus, bool in_processes);

}  // namespace menger
