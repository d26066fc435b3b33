#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/options.h"
#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"

namespace menger {

// How environments are spread over threads and where the policy runs.
enum class CollectorKind : std::uint8_t {
  kSerial,       // One thread does everything.
  kLocal,        // Each worker has its own policy and environments; workers meet once a slab.
  kSynchronous,  // Lock-step: workers simulate, then the caller runs one batched inference for all.
  kAlternating,  // Two or more groups: while the caller infers for one, the workers simulate the
                 // others.
};
const char* NameOf(CollectorKind kind);
CollectorKind CollectorKindFromName(
    const std::string& name);  // Throws InvalidArgument naming the choices.

// An episode that ended, in the order of (row, environment).
struct EpisodeResult {
  int environment = 0;
  double episode_return = 0;  // Sum of raw rewards.
  std::int64_t length = 0;    // Steps.
};

// Where the time of the workers and the caller went, in seconds summed over threads.
struct CollectorTimes {
  double simulation = 0;
  double inference = 0;
  double waiting = 0;
};

// All options of collection.
struct CollectorOptions {
  std::string kind = "auto";      // serial, local, synchronous, alternating or auto.
  AutoInt workers;                // Threads that simulate; auto: calibrated.
  std::int64_t environments = 8;  // In all; workers own equal shares.
  std::int64_t groups = 2;        // Alternating only: groups in turn.
  std::int64_t horizon = 128;     // T.
  bool reset_between_slabs = false;
  std::int64_t decorrelation_steps =
      0;  // Each environment takes U{0..this} random steps at the start.
  std::string on_environment_error = "stop";
  std::int64_t restart_budget = 100;
  bool pin = true;

  void Declare(Options& options);
};

// The resolved plan: what a collector is made from. Nothing is `auto` any more.
struct CollectorPlan {
  CollectorKind kind = CollectorKind::kSerial;
  int environments = 1;
  int first_environment = 0;  // Others of the run are collected from elsewhere.
  int workers = 1;
  int groups = 1;  // 1 except for kAlternating.
  int horizon = 128;
  int history = 0;
  ResetMode reset_mode = ResetMode::kSameStep;
  int decorrelation_steps = 0;
  std::int64_t restart_budget = 0;  // 0: stop at the first environment error.
  bool clip_actions = false;        // See GroupOptions.
  bool pin = true;
  std::vector<int> cpus = {};    // That it may pin to; empty: all that there are.
  bool shared_slab = false;      // Others will map it.
  double patience_seconds = 60;  // A worker that makes no progress for this long fails the run.
  std::uint64_t seed = 0;

  void Check() const;  // Throws InvalidArgument naming the option (environments not a multiple of
                       // workers x groups, ...).
};

// Steps many environments with a policy and fills slabs: one interface, four implementations over
// the same slab.
//
// Ownership is static: each pinned worker owns its columns for life, and signals by epoch counters;
// there is no queue. With a batch-invariant policy all kinds give bit-identical slabs for the same
// seed, whatever the number of workers and groups. One thread calls a collector. An error in a
// worker is rethrown by Collect, and the collector is then unusable.
class Collector {
 public:
  virtual ~Collector() = default;

  // Fills the next slab, with `rows_max` rows where that is less than the plan's horizon, and one
  // at least. It belongs to the caller until the next call, which carries row T over and overwrites
  // it. Policies take the newest parameters first.
  virtual Slab& Collect(int rows_max) = 0;
  Slab& Collect() { return Collect(std::numeric_limits<int>::max()); }

  // Episodes that ended in the last slab.
  virtual std::span<const EpisodeResult> episodes() const = 0;

  // What environments said about episodes that ended since the last call, one entry a name; between
  // two slabs.
  virtual std::vector<EnvironmentMetric> TakeMetrics() { return {}; }

  // Steps of the slab that Collect is filling, roughly; any thread, for who waits.
  virtual std::int64_t steps_under_way() const { return 0; }

  // Since construction; for benchmarks and the progress line.
  virtual CollectorTimes times() const = 0;

  // Everything needed to go on bit-identically from between two slabs. Save throws
  // FailedPrecondition after an error; Load does for another number of environments, workers or
  // groups, and a Load that throws leaves the collector unusable.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

// What the slabs of such a collector are like.
SlabSpec SlabSpecOf(const CollectorPlan& plan, const EnvironmentSpec& environment,
                    const PolicySpec& policy);

// Throws InvalidArgument on an impossible plan. `policies` is called once for each thread that
// acts.
std::unique_ptr<Collector> MakeCollector(const CollectorPlan& plan,
                                         const EnvironmentEntry& environment,
                                         const PolicyFactory& policies);

}  // namespace menger
