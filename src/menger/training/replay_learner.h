#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/replay/client/batch_source.h"
#include "menger/training/learning/replay_options.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/learning/replay_trainer.h"
#include "menger/training/run_replay.h"
#include "menger/training/slab_consumer.h"

namespace menger {

// What of a replay learner changes, beside the store's content. Plain bytes.
struct ReplayCounters {
  std::int64_t samples = 0;  // Environment steps collected since learning started.
  std::int64_t updates = 0;
  // Rows of batches that are owed and not yet learned from, in millionths: below one batch between
  // two slabs.
  std::int64_t owed_millionths = 0;
};

// Keeps what slabs show in a replay table and learns from batches drawn of it.
//
// The training intensity, rows learned from a step collected (updates x batch x rows of an item /
// samples), is held exactly: after each slab the number of updates is the largest that does not
// exceed it, counted from the first slab at whose end the table has the items of min_size steps.
// The table holds the newest `capacity` decisions of all environments together: it is divided
// evenly among them however many they are. Items of several decisions (ItemSteps) count as if they
// had all that they can have. All in the caller's thread, in one order: the same seed gives the
// same bits.
class ReplayLearner final : public SlabConsumer {
 public:
  ReplayLearner(const ReplayOptions& options, const ReplayLearnerContext& context,
                ReplayAlgorithm& algorithm);

  // Adds the slab, then learns as often as is due. Metrics are means over the updates; NaN where
  // there was none. Throws Internal where the algorithm reports other metrics than it names, or
  // priorities for another number of items than it was given.
  Metrics Consume(Slab& slab, UpdateRule& update, double progress) override;
  std::vector<std::string> metric_names() const override;
  bool updated() const override { return updated_; }

  const ReplayCounters& counters() const { return counters_; }

  static constexpr const char* kContent = "replay";

  // With the content of its own store, in the folder kContent of the archive: a learner that was
  // loaded goes on bit for bit. What the checkpoint before has already is not written again. A
  // server's content is the server's (RunReplay).
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  bool Draw();  // A batch; false if the table has too few items for that.

  const ReplayOptions options_;
  ReplayAlgorithm& algorithm_;
  const std::int64_t items_min_;       // Before learning starts.
  const std::int64_t owed_an_update_;  // Rows of a batch, in millionths.
  mutable RunReplay replay_;           // Which remembers where it was saved.
  const std::chrono::nanoseconds patience_;
  const std::unique_ptr<SlabWriter> writer_;
  ReplayTrainer trainer_;  // After replay, whose chunks it holds.
  ReplayCounters counters_;
  bool updated_ = false;  // By the last Consume.
};

}  // namespace menger
