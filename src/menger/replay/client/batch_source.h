#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>

#include "menger/base/clock.h"
#include "menger/base/epoch_counter.h"
#include "menger/base/thread.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/replay_client.h"
#include "menger/replay/sample.h"
#include "menger/tensor/memory.h"

namespace menger {

// Items drawn from replay and gathered, in columns. Borrowed: valid as long as its source says.
struct ReplayBatch {
  std::span<const BatchColumn> columns;  // In the order of the table's ItemSpec.
  std::span<const SampledItem> items;    // How likely each draw was.

  int size() const { return static_cast<int>(items.size()); }

  // [items, rows x elements of a row] of column `index`.
  template <typename T>
  const T* column(int index) const {
    return reinterpret_cast<const T*>(columns[index].data);
  }
};

// How a BatchSource works.
struct BatchSourceOptions {
  int items_max = 32;    // Of a batch.
  int threads = 1;       // That gather one batch together, as BatchGatherer's.
  bool in_turn = false;  // Gather in Take, by its caller, instead of ahead.
  MemoryAllocator allocate = AllocatePlainMemory;  // Gives the memory of batches.
};

// Batches of one table, the next one gathered while the learner computes on this one:
//
//     source.Draw(request);
//     for (;;) {
//       const ReplayBatch batch = source.Take(deadline);
//       source.Draw(request);  // Gathered by a thread of its own from here on.
//       Learn(batch);
//     }
//
// Items are drawn in the caller's thread, by Draw: the order of draws is that of its calls, whether
// batches are gathered ahead or not. What a learner writes back after Draw (priorities) counts for
// the draws after that. One thread at a time.
class BatchSource {
 public:
  // Throws as BatchGatherer.
  BatchSource(std::unique_ptr<ReplaySampler> sampler, const BatchSourceOptions& options);
  ~BatchSource();

  // Draws the next batch, and begins to gather it. Throws as ReplaySampler::SampleInto, and
  // FailedPrecondition if a batch that was drawn has not been taken.
  void Draw(const SampleRequest& request);

  // The batch drawn last, once it is gathered; valid until the second call of Draw after this.
  // Throws FailedPrecondition if none was drawn, DeadlineExceeded if it takes longer, and as
  // BatchGatherer::Gather: that batch is gone then.
  ReplayBatch Take(const Deadline& deadline);

  // Gives back the chunks of batches that were taken; their columns stay valid.
  void Release();

 private:
  struct Side {
    Sample sample;  // After the gatherer goes what it gathered.
    BatchGatherer gatherer;
    std::span<const BatchColumn> columns;
  };

  void GatherLoop();
  void Gather(Side& side);  // A failure is kept for Take.

  const std::unique_ptr<ReplaySampler> sampler_;
  const bool in_turn_;
  Side sides_[2];  // The batch in the learner's hands, and the next.
  int next_ = 0;   // The side to be drawn into.
  bool drawn_ = false;

  // Side number (asked - 1) % 2 is the thread's between its request and its answer.
  EpochCounter asked_;
  EpochCounter gathered_;
  std::exception_ptr failure_;  // Of the last request.
  std::atomic<bool> stopping_{false};
  std::optional<Thread> thread_;  // Last: joined before what it uses goes.
};

}  // namespace menger
