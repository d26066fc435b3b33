#pragma once

#include <cstddef>
#include <cstdint>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/table.h"

namespace menger {

// Throws InvalidArgument for a priority that is negative or not finite.
void CheckPriority(double priority);

// ... and for a draft whose sequence number is not beyond that of the one before it in a stream.
void CheckSequence(const ItemDraft& draft, std::uint64_t before);

// Refuses items that are not as their table has them. Immutable: any thread, without the table's
// mutex.
class DraftChecker {
 public:
  // All outlive the checker.
  DraftChecker(const ItemSpec& items, std::size_t bytes_max, const ChunkStore& chunks)
      : items_(items), bytes_max_(bytes_max), chunks_(chunks), steps_id_(StepsId(items.steps)) {}

  // Throws InvalidArgument as Table::Insert. No chunk of `chunks_end` or above exists.
  void Check(const ItemDraft& draft, std::uint32_t chunks_end) const;

 private:
  void CheckSlices(const ItemDraft& draft, std::uint32_t chunks_end) const;
  void CheckOpenSlices(const ItemDraft& draft, std::uint32_t chunks_end) const;
  void CheckBytes(const ItemDraft& draft) const;

  const ItemSpec& items_;
  const std::size_t bytes_max_;
  const ChunkStore& chunks_;
  const std::uint64_t steps_id_;
};

}  // namespace menger
