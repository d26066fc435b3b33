#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "menger/environments/catalog.h"
#include "menger/training/experiment.h"
#include "menger/training/progress.h"
#include "menger/training/run_folder.h"
#include "menger/training/synchronous_loop.h"

namespace menger {

// What the runs of a process share. Borrowed for the call.
struct RunContext {
  ProgressReporter& progress;
  std::function<bool()> stop_requested;  // Asked in any thread; once true, it stays so.
};

// How a run ended.
struct RunOutcome {
  std::string folder;
  LoopEnd end = LoopEnd::kCompleted;
  LoopCounters counters;
  double episode_return_mean = 0;
};

// Trains a new run. `make_folder` is called once everything in the experiment has proved possible,
// so that a refused one leaves nothing behind. `init_from` is a run whose parameters and
// normalisation statistics are the start; "" starts fresh.
RunOutcome StartRun(Experiment& experiment, const std::function<RunFolder()>& make_folder,
                    const std::string& init_from, const RunContext& context);

// Goes on with a run from its newest whole checkpoint, bit for bit as if it had not stopped; after
// an error of collection, with environments and action noise that start anew (see CollectorSeed).
// `experiment` is the folder's own, perhaps with assignments on top; it is written back.
RunOutcome ResumeRun(Experiment& experiment, const RunFolder& folder, const RunContext& context);

// What a run that has ended, or was interrupted, wrote down of it in summary.json. Throws NotFound
// where it did neither, DataLoss where the file is damaged.
RunOutcome ReadOutcome(const std::string& path);

// The experiment of a run folder, with assignments on top. Throws InvalidArgument if they change
// what the run is: its environment, seed or optimiser.
std::unique_ptr<Experiment> ExperimentOf(const RunFolder& folder,
                                         std::span<const Assignment> assignments,
                                         const EnvironmentCatalog& environments);

// A trained policy and what it was trained on.
struct TrainedRun {
  std::unique_ptr<Experiment> experiment;
  EnvironmentEntry environment;  // For evaluation.
  std::unique_ptr<Algorithm> algorithm;
  std::string checkpoint;  // Path of the archive that it came from.
};

// Loads a run's parameters. `checkpoint` is "newest" (the newest whole one), "best", or a number
// of steps. Throws NotFound if there is no such checkpoint. `assignments` change its experiment.
TrainedRun LoadRun(const std::string& path, const std::string& checkpoint,
                   const EnvironmentCatalog& environments,
                   std::span<const Assignment> assignments = {});

// Mean, population standard deviation and extremes, for `--seeds`.
struct Aggregate {
  double mean = 0;
  double standard_deviation = 0;
  double minimum = 0;
  double maximum = 0;
};
Aggregate AggregateOf(std::span<const double> values);  // At least one.

}  // namespace menger
