#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/environments/image.h"
#include "menger/tensor/slab.h"

namespace menger {

// What is known of an environment before one is made.
struct EnvironmentSpec {
  std::string name;  // "CartPole-v1"
  Spec observation;
  Spec action;
  int max_episode_steps = 0;  // Steps until an episode is truncated; 0: never.
  double reward_threshold =
      0;                    // The return at which the task counts as solved; NaN: none is defined.
  std::string description;  // One line for `menger list`.
  std::vector<std::string> metrics;  // What its episodes may tell: see EnvironmentMetric.
};

// When an ended episode is followed by the next one.
enum class ResetMode : std::uint8_t {
  kSameStep,      // At once: row t+1 shows the new episode.
  kBetweenSlabs,  // Parked until ResetParked: the slot is kept, its rows are marked invalid. Their
                  // action masks allow everything, whatever the last observation's did.
};

// What happens when an environment throws. Shared by all groups of a run; thread-safe.
class ErrorBudget {
 public:
  explicit ErrorBudget(std::int64_t restarts = 0) : left_(restarts) {}
  // Takes one restart, or so many; false when fewer are left, then the error ends the run.
  bool Take(std::int64_t count = 1) {
    return left_.fetch_sub(count, std::memory_order_relaxed) >= count;
  }
  std::int64_t left() const {
    return std::max<std::int64_t>(0, left_.load(std::memory_order_relaxed));
  }
  // Whether somebody wanted more than there were.
  bool exceeded() const { return left_.load(std::memory_order_relaxed) < 0; }

 private:
  std::atomic<std::int64_t> left_;
};

// Which columns a group serves and how.
struct GroupOptions {
  ColumnBlock columns;
  std::uint64_t seed =
      0;  // Environment i is seeded with seed + i, as Gymnasium's vector environments do.
  ResetMode reset_mode = ResetMode::kSameStep;
  bool clip_actions =
      false;  // Box actions are clipped to their bounds before the simulator sees them.
  ErrorBudget* errors = nullptr;  // Borrowed; null: the first error ends the run.
};

// What environments say about their episodes besides the return ("is_success"): the sum over the
// episodes that ended.
struct EnvironmentMetric {
  std::string name;
  double sum = 0;
  std::int64_t count = 0;

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(name, sum, count);
  }
};

// Adds to `sums`, which has one entry a name.
inline void AddUp(std::vector<EnvironmentMetric>& sums, std::span<const EnvironmentMetric> more) {
  for (const EnvironmentMetric& metric : more) {
    auto known = std::ranges::find(sums, metric.name, &EnvironmentMetric::name);
    if (known == sums.end()) known = sums.insert(known, {.name = metric.name});
    known->sum += metric.sum;
    known->count += metric.count;
  }
}

// Simulators of one kind stepped together over a block of columns of a slab: the hot interface.
//
// A native simulator (one struct with Reset and Step) becomes a group through SimulatorGroup;
// Python hosts and vectorised simulators are groups already. One thread at a time may call a group;
// different groups are independent. A group owns its columns of the rows it is asked to write, and
// nothing else of the slab.
//
// Actions that are not numbers or not among the discrete ones throw InvalidArgument that names the
// environment, its index, its step and the value. Any error of a simulator is reported with index,
// seed and step; while `errors` grants a restart it becomes a fresh episode instead, and the row is
// marked invalid.
class EnvironmentGroup {
 public:
  virtual ~EnvironmentGroup() = default;

  virtual const EnvironmentSpec& spec() const = 0;

  // Starts a fresh episode in every column and writes its first observation and is_first into
  // `row`. The first call seeds the environments; later calls go on with their random streams.
  virtual void Reset(Slab& slab, int row) = 0;

  // Takes the actions of `row` (0 <= row < T); writes reward, terminated, truncated, episode_end,
  // valid, final_index and the final observation of `row`, and observation and is_first of row + 1.
  virtual void Step(Slab& slab, int row) = 0;

  // kBetweenSlabs: starts fresh episodes in the parked columns and writes them into `row`.
  virtual void ResetParked(Slab& slab, int row) = 0;

  // Decorrelates start states: column i takes steps[i] uniform-random actions (from a stream of
  // `seed` and the environment index), resetting where episodes end; the resulting observation goes
  // into `row`.
  virtual void StepRandomly(Slab& slab, int row, std::span<const int> steps,
                            std::uint64_t seed) = 0;

  // Complete state, so that a loaded group goes on bit-identically; where it is not `resumable`,
  // only what keeps it from repeating its episodes, and after Load it must be Reset. What was
  // loaded may decide: ask after Load.
  virtual bool resumable() const { return true; }
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;

  // What has been said since the last call, one entry a name.
  virtual std::vector<EnvironmentMetric> TakeMetrics() { return {}; }

  // What column `index` of the block looks like now, to a person. Throws FailedPrecondition where
  // there is nothing to see.
  virtual Image Render(int /*index*/) {
    throw FailedPrecondition("{} cannot be shown as a picture", spec().name);
  }
};

// How to make an environment by name. Cheap to copy.
struct EnvironmentEntry {
  EnvironmentSpec spec;
  std::function<std::unique_ptr<EnvironmentGroup>(const GroupOptions&)> make_group;
  // Groups step in processes of their own: the slab must lie in shared memory (MakeSlab).
  bool shares_memory = false;
  bool renders = false;  // Its groups can Render.
  // Groups that watch deadlines of their own give up a call no later than this, times their
  // columns; whoever waits for one should be as patient. 0: they watch none.
  double longest_call_seconds = 0;
};

// A slab that groups of the entry can step.
inline Slab MakeSlab(SlabSpec spec, const EnvironmentEntry& entry) {
  return entry.shares_memory ? Slab::Shared(std::move(spec)) : Slab(std::move(spec));
}

}  // namespace menger
