#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/collectors/collector.h"
#include "menger/collectors/episode_tracker.h"
#include "menger/collectors/phase_clock.h"
#include "menger/collectors/worker_team.h"

namespace menger {

// What all kinds of collectors share: one slab that is used again and again, the environment groups
// and policies, the start of every slab, episodes, times, saving. A kind says in Fill which thread
// does what and when.
//
// Groups are made, and policies too, by the thread that makes the collector. The slab's row 0 is
// carried over by that thread; everything else of a block is done by the worker that owns it.
class SlabCollector : public Collector {
 public:
  Slab& Collect(int rows_max) final;
  std::span<const EpisodeResult> episodes() const final { return tracker_.episodes(); }
  CollectorTimes times() const final;
  std::int64_t steps_under_way() const final {
    return rows_under_way_.load(std::memory_order_relaxed) * plan_.environments;
  }
  void Save(ArchiveWriter& archive) const final;
  void Load(ArchiveReader& archive) final;
  std::vector<EnvironmentMetric> TakeMetrics() final;

 protected:
  // `policies`: how many threads act.
  SlabCollector(const CollectorPlan& plan, const EnvironmentEntry& environment,
                const PolicyFactory& factory, int policies);

  // Fills rows 0 .. T-1 of slab(). When it throws, threads may still work; the destructor of the
  // kind joins them.
  virtual void Fill() = 0;

  // The first thing done to a block in each slab: fresh episodes where row 0 needs them.
  void BeginBlock(int group, int worker);

  // Simulates one row of a block.
  void StepBlock(int group, int worker, int row) {
    this->group(group, worker).Step(slab_, row);
    if (worker == 0) rows_under_way_.store(row + 1, std::memory_order_relaxed);
  }

  // For threads that meet at every row: simulates one, and counts the time since the last as a
  // wait.
  void StepBetweenWaits(int group, int worker, int row);
  void CountRowsOfAllThreads(std::int64_t nanoseconds);  // By the caller, while the others wait.

  const CollectorPlan& plan() const { return plan_; }
  Slab& slab() { return slab_; }
  EnvironmentGroup& group(int group, int worker) {
    return *groups_[group * plan_.workers + worker];
  }
  Policy& policy(int index) { return *policies_[index]; }
  // Threads: the workers, then the caller where it is not one of them.
  PhaseClock& clock(int thread) { return clocks_[thread].clock; }
  void AddClockOfCaller() { clocks_.emplace_back(); }  // By a kind whose caller is no worker.
  WorkerTeamOptions TeamOptions(int first_worker) const;

 private:
  struct alignas(64) OwnClock {  // No two threads' clocks share a cache line.
    PhaseClock clock;
  };

  std::vector<std::int64_t> SavedShape() const;
  void PlanFreshEpisodes(std::size_t block);

  const CollectorPlan plan_;
  std::optional<ErrorBudget> errors_;  // Empty: the first environment error ends the run.
  std::vector<std::unique_ptr<Policy>> policies_;
  Slab slab_;
  std::vector<std::unique_ptr<EnvironmentGroup>> groups_;  // As slab_.columns().blocks().
  std::vector<std::uint8_t> fresh_;                        // Blocks that the next slab resets.
  std::vector<int> random_steps_;                          // By column.
  EpisodeTracker tracker_;
  std::vector<OwnClock> clocks_;
  const double patience_seconds_;      // The plan's, or longer: see EnvironmentEntry.
  std::int64_t wall_nanoseconds_ = 0;  // Of all Fills.
  int carried_row_ = 0;                // Where row 0 of the next slab stands: T, or 0 after Load.
  bool started_ = false;               // Environments have been reset.
  bool failed_ = false;
  alignas(64) std::atomic<std::int64_t> rows_under_way_{0};  // Of worker 0; written once a row.
};

// The four kinds. The plan has been checked.
std::unique_ptr<Collector> MakeSerialCollector(const CollectorPlan& plan,
                                               const EnvironmentEntry& environment,
                                               const PolicyFactory& policies);
std::unique_ptr<Collector> MakeLocalCollector(const CollectorPlan& plan,
                                              const EnvironmentEntry& environment,
                                              const PolicyFactory& policies);
std::unique_ptr<Collector> MakeSynchronousCollector(const CollectorPlan& plan,
                                                    const EnvironmentEntry& environment,
                                                    const PolicyFactory& policies);
std::unique_ptr<Collector> MakeAlternatingCollector(const CollectorPlan& plan,
                                                    const EnvironmentEntry& environment,
                                                    const PolicyFactory& policies);

}  // namespace menger
