#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "menger/replay/chunks/item.h"
#include "menger/replay/sample.h"
#include "menger/tensor/memory.h"

namespace menger {

// One column of a batch: [items, rows of the column, leaf's shape], dense, zeros where an item has
// fewer rows.
struct BatchColumn {
  std::byte* data = nullptr;  // On a cache line of its own.
  std::size_t item_bytes = 0;
  std::span<const std::int32_t> rows;  // That each item has.
};

// Copies sampled items into one batch, the only copy between chunk and learner. Its memory is used
// again for the next batch; a learner that wants the next one while it reads this one keeps two
// gatherers. One thread at a time.
class BatchGatherer {
 public:
  // `threads` (the caller is one) copy together where a batch has more than a megabyte; `allocate`
  // gives the batch's memory, aligned to a page. Throws InvalidArgument as ItemSpec::Check, or if
  // items_max or threads is not positive, and what `allocate` throws.
  BatchGatherer(const ItemSpec& items, int items_max, int threads,
                const MemoryAllocator& allocate = AllocatePlainMemory);
  ~BatchGatherer();

  // Copies all items of the sample, in its order. What it returns, one entry a column, is valid
  // until the next call. Throws InvalidArgument if the sample has more than items_max items or is
  // of a table with other columns.
  std::span<const BatchColumn> Gather(const Sample& sample);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace menger
