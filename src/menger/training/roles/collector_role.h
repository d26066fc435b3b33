#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/collectors/collector.h"
#include "menger/training/roles/role.h"
#include "menger/training/roles/run_counts.h"

namespace menger {

// Episodes that ended since somebody asked, and what environments said about them.
struct EndedEpisodes {
  static constexpr std::size_t kLastMax = 100;

  std::int64_t count = 0;
  std::vector<EpisodeResult> last;         // The newest of them.
  std::vector<EnvironmentMetric> metrics;  // One entry a name.

  void Add(const EndedEpisodes& others);

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(count, last, metrics);
  }
};

// Which of a run's collectors one is.
struct CollectorShare {
  std::string name = "collector";
  int index = 0;  // Of so many collectors, at most RunCounts::kCollectorsMax.
  int collectors = 1;
  int environments = 1;  // Of the run's: first_environment and those after it.
  int first_environment = 0;
  int horizon = 1;             // Rows of its slabs, at most.
  std::vector<int> cpus = {};  // That its threads are pinned to; empty: the kernel decides.
};

// Steps environments with a policy and writes what they show into replay. Its done() are the
// environment steps that replay was given.
//
// What a slab shows is written before the next is collected: where replay has no room for it, it
// waits, and so do the environments.
class CollectorRole final : public Role {
 public:
  // What a learner's statistics need of a slab: see ReplayAlgorithm.
  using MomentsOf = std::function<BatchMoments(const Slab& slab)>;

  // It is done once the run has `steps_max` steps, and what completes a step of all its
  // environments. Adds to the counts, which outlive it.
  CollectorRole(CollectorShare share, std::unique_ptr<Collector> collector,
                std::unique_ptr<SlabWriter> writer, RunCounts& counts, std::int64_t steps_max,
                MomentsOf moments_of = {});

  const std::string& name() const override { return share_.name; }
  // One slab, of which is written what replay has room for; or a wait for room for the rest, or
  // for other collectors to end what may be the run's last steps.
  Advanced Advance(const Deadline& deadline) override;
  std::int64_t done() const override { return written_; }

  EndedEpisodes TakeEpisodes();  // These two: any thread; since they were called last.
  BatchMoments TakeMoments();

 private:
  void CountEpisodes();
  void Write(const Deadline& deadline);  // Until then; what is left stays in slab_.

  const CollectorShare share_;
  RunCounts& counts_;
  std::atomic<std::int64_t>& under_way_;  // Its own, among those.
  const std::int64_t steps_max_;
  const MomentsOf moments_of_;
  const std::unique_ptr<SlabWriter> writer_;
  const std::unique_ptr<Collector> collector_;
  Slab* slab_ = nullptr;  // Collected, and not wholly written.
  std::atomic<std::int64_t> written_{0};

  std::mutex mutex_;
  EndedEpisodes episodes_;  // These two: guarded by mutex_.
  BatchMoments moments_;
};

}  // namespace menger
