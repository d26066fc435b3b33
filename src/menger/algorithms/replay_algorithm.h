#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/transforms.h"
#include "menger/base/archive.h"
#include "menger/base/clock.h"
#include "menger/parameters/parameter_source.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/client/batch_source.h"
#include "menger/replay/client/replay_client.h"
#include "menger/replay/trajectory_writer.h"
#include "menger/tensor/memory.h"
#include "menger/tensor/slab.h"

namespace menger {

// Turns slabs into steps and items of one replay table: a stream of steps for each environment,
// each step stored once. What of an episode is still open at a slab's end is kept for the next.
// One thread.
class SlabWriter {
 public:
  virtual ~SlabWriter() = default;

  // Appends the slab's valid rows and inserts the items that they complete. Throws as
  // TrajectoryWriter::Append and Flush; after DeadlineExceeded the next call goes on with the same
  // slab where this one came to its end.
  virtual void Write(const Slab& slab, const Deadline& deadline) = 0;

  // What it writes with, a stream an environment: saved with the store, where that is ours.
  virtual ReplayWriter& writer() = 0;
  // What else it needs to go on between two slabs. Loaded into one that has written nothing.
  virtual void Save(ArchiveWriter archive) const = 0;
  virtual void Load(ArchiveReader archive) = 0;
};

// What a SlabWriter writes to, and how.
struct SlabWriterContext {
  ReplayClient& replay;
  int table = 0;
  int environments = 1;  // Columns of the slabs to come.
  int chunk_steps = 64;  // These two: see WriterOptions.
  Compression compression = Compression::kNone;
  // Where it is given, items of algorithms that can say so come with the error that the policy's
  // own values show; its versions are those of the policy that acts. Else at the highest priority
  // that the table was given.
  const ParameterSource* own_errors_by = nullptr;
};

// Added to each error: an item without one may still be drawn (Schaul et al. 2016, section 3.3).
inline constexpr double kPriorityMin = 1e-6;

// How many decisions an item is for, at most.
struct ItemSteps {
  int learned = 1;  // That a draw of it teaches.
  int added = 1;    // That no item before it had: sequences may overlap.
};

// Learns from batches that are drawn from replay.
//
// It says what replay keeps (items), how slabs become that (MakeWriter), and learns from what is
// drawn. How much is kept, how it is drawn and how often are the training loop's.
class ReplayAlgorithm : public Algorithm {
 public:
  DataRule data_rule() const final { return DataRule::kBatches; }

  virtual const ItemSpec& items() const = 0;
  virtual ItemSteps item_steps() const { return {}; }
  virtual std::unique_ptr<SlabWriter> MakeWriter(const SlabWriterContext& context) const = 0;

  // Called once a slab, before it is learned from: `progress` in [0, 1] is the share of the run's
  // steps collected so far, for schedules of acting. Takes effect with the next Publish.
  virtual void SetProgress(double progress) = 0;

  // What the statistics that normalise observations need of a slab, if there are any (else
  // nothing): by the learner's algorithm or another of the same recipe, in any process that sees
  // slabs. And their merge by the learner, after it has learned from the slab; takes effect with
  // the next Publish.
  virtual BatchMoments MomentsOf(const Slab& /*slab*/) const { return {}; }
  virtual void ObserveMoments(const BatchMoments& /*moments*/) {}

  // Memory for the batches of Learn.
  virtual std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const {
    return AllocatePlainMemory(bytes);
  }

  // One update. A batch without rows takes part in a step of several learners with weight 0.
  // Reports metric_names(), in that order, each a total over all learners (UpdateRule::Sum). Throws
  // Internal if the gradient is not finite: the parameters are then those of the last good step.
  virtual Metrics Learn(const ReplayBatch& batch, UpdateRule& update, double progress) = 0;
  virtual std::vector<std::string> metric_names() const = 0;

  // How surprising each item of the last batch was (absolute errors, or cross entropies), one
  // number for each: what prioritised samplers draw by.
  virtual std::span<const float> priorities() const = 0;
};

}  // namespace menger
