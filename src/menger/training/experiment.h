#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/options.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/environments/worker_environments.h"
#include "menger/networks/network.h"
#include "menger/networks/update_rule.h"
#include "menger/runtime/calls/runtime_options.h"
#include "menger/training/learning/replay_options.h"
#include "menger/training/topology_options.h"

namespace menger {

// Options of section [evaluation]: greedy episodes on environments of their own.
struct EvaluationOptions {
  std::int64_t every = 0;
  std::int64_t episodes = 20;
  // Far from every training seed (environment i of a run is seeded with seed + i), and prime, so
  // that the seeds of neighbouring runs do not meet.
  std::int64_t seed_offset = 10'000'019;
  std::int64_t steps_max = 10'000;
  double stop_at_return = std::numeric_limits<double>::infinity();

  void Declare(Options& options);
};

// Options of section [checkpoint].
struct CheckpointOptions {
  std::int64_t every = 0;
  double seconds = 60;
  std::int64_t keep = 3;

  void Declare(Options& options);
};

// Options of section [progress]: how often a row goes to progress.csv and to the event file.
struct ProgressOptions {
  std::int64_t every = 0;

  void Declare(Options& options);
};

// Options of section [runtime]: the workers of an algorithm that learns from whole episodes.
struct WorkerOptions {
  AutoInt workers;  // auto: one a CPU.
  std::string isolation = "process";

  void Declare(Options& options);
  RuntimeOptions ForRuntime() const;  // Resolved.
};

// One `--set section.key=value` (or `key=value` for the top level).
struct Assignment {
  std::string section;  // "" for the top level.
  std::string name;
  std::string text;
  std::string origin = "--set";  // What the user wrote, for errors.

  // Throws InvalidArgument if there is no '=' or no key.
  static Assignment Parse(std::string_view argument);
};

// Everything that decides a run: the top level of a recipe, the sections that every run has, and
// those named after the algorithm and, where it has options, after the environment's family. Every
// option is declared once, by the component that uses it; this class joins the declarations and
// reads and writes them as TOML.
//
// Not copyable and not movable: the declarations point at the fields. One thread at a time.
class Experiment {
 public:
  using Algorithms = std::vector<std::unique_ptr<AlgorithmEntry>>;

  // Reads the TOML text, then applies the assignments in order, so a later one wins. `origin` is
  // the file's name, for errors. Unknown keys and sections, wrong types and values out of range
  // are InvalidArgument and name the nearest valid key; so is an unknown algorithm. An environment
  // is looked up when it is opened. The catalog is borrowed for the experiment's life.
  Experiment(std::string_view toml, const std::string& origin,
             std::span<const Assignment> assignments, Algorithms algorithms,
             const EnvironmentCatalog& environments);
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  std::string environment;
  std::string algorithm;
  std::int64_t steps = 100'000;
  // Not 1, with which the untrained policy of CartPole happens to balance the pole and shows
  // nothing.
  std::int64_t seed = 2;
  std::string device = "cpu";
  std::string precision = "auto";
  AutoInt learner_threads;

  CollectorOptions collector;  // A section where environments are stepped here,
  WorkerOptions runtime;       // and this one where workers of the runtime play the episodes.
  NetworkOptions network;
  OptimiserOptions optimiser;
  TransformOptions transforms;
  ReplayOptions replay;  // Sections where the algorithm learns from batches.
  TopologyOptions topology;
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  ProgressOptions progress;

  // The chosen algorithm with its section's values; the experiment keeps it.
  const AlgorithmEntry& algorithm_entry() const { return *entry_; }

  // The environment, made as the family's section says. Throws NotFound for an unknown one.
  EnvironmentEntry OpenEnvironment(EnvironmentUse use) const;

  // What another process needs to make it.
  EnvironmentRequest RequestedEnvironment() const;

  // What the recipe does not say becomes what the algorithm takes for such an environment and so
  // many steps. Throws InvalidArgument where the minibatch that somebody asked for is larger than
  // what is collected for an update, or replay.min_size than what the run will keep: a default one
  // is cut to that; and where replay's settings make no update in so many steps.
  void ApplyDefaults(const EnvironmentSpec& environment);

  // Fills in what does not need a measurement: precision, learner_threads, the runtime's workers.
  // The collector's `auto` is left to calibration.
  void ResolveDefaults();

  // The whole configuration; reading it back gives the same run. Each line may end with a comment
  // that says where its value comes from; what is read from such a line keeps its origin.
  std::string ToToml(bool with_origins = false) const;

  // An option that was `auto` has been given a value, for its origin.
  void NoteChosen(std::string_view section, std::string_view name);

  // Top level first (section ""), then the sections in the order in which they are written.
  const std::vector<Options>& sections() const { return sections_; }

 private:
  void DeclareTopLevel();
  void DeclareSections(Algorithms algorithms);
  void FitMinibatch();
  void FitReplay();
  Options& Section(const std::string& name, const std::string& origin);
  std::vector<std::string> SectionNames() const;

  const EnvironmentCatalog& environments_;
  std::unique_ptr<AlgorithmEntry> entry_;
  std::unique_ptr<EnvironmentFamily> family_;  // Null: the catalog has an entry, or nothing at all.
  std::vector<std::string> algorithm_names_;
  std::vector<Options> sections_;
};

// The option tables that do not depend on an algorithm, for `menger describe`: top level, then the
// sections that every recipe may have.
std::vector<std::vector<OptionEntry>> CommonOptionTables();

}  // namespace menger
