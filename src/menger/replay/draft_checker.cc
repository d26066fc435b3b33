#include "menger/replay/draft_checker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "menger/base/error.h"

namespace menger {

void CheckPriority(double priority) {
  if (!std::isfinite(priority) || priority < 0) {
    throw InvalidArgument("priority is {}; it must be finite and at least 0", priority);
  }
}

void CheckSequence(const ItemDraft& draft, std::uint64_t before) {
  if (draft.sequence > before) return;
  throw InvalidArgument("its sequence number is {}; in a stream it must be at least {}",
                        draft.sequence, before + 1);
}

void DraftChecker::Check(const ItemDraft& draft, std::uint32_t chunks_end) const {
  if (draft.priority) CheckPriority(*draft.priority);
  if (draft.versions.first > draft.versions.last) {
    throw InvalidArgument("versions are {} to {}; they must be in order", draft.versions.first,
                          draft.versions.last);
  }
  if (items_.open) {
    CheckOpenSlices(draft, chunks_end);
  } else {
    CheckSlices(draft, chunks_end);
  }
  CheckBytes(draft);
}

void DraftChecker::CheckOpenSlices(const ItemDraft& draft, std::uint32_t chunks_end) const {
  if (draft.slice_counts.size() != 1 || draft.slice_counts[0] != draft.slices.size() ||
      draft.slices.empty()) {
    throw InvalidArgument(
        "it has {} slices in {} columns; an item of an open table has one column, of 1 to 65535",
        draft.slices.size(), draft.slice_counts.size());
  }
  for (const Slice& slice : draft.slices) {
    if (slice.chunk >= chunks_end || !ByteRowsIn(chunks_.steps_id(slice.chunk))) {
      throw InvalidArgument("it lies in chunk {}, which has no rows of bytes", slice.chunk);
    }
    if (slice.length == 0 || slice.offset + slice.length > chunks_.rows(slice.chunk)) {
      throw InvalidArgument(
          "it has {} rows from row {} of chunk {}, which has {} rows; it must have at least 1, "
          "inside the chunk",
          slice.length, slice.offset, slice.chunk, chunks_.rows(slice.chunk));
    }
  }
}

void DraftChecker::CheckSlices(const ItemDraft& draft, std::uint32_t chunks_end) const {
  const std::vector<ItemColumn>& columns = items_.columns;
  if (draft.slice_counts.size() != columns.size()) {
    throw InvalidArgument("it has {} columns; the table has {}", draft.slice_counts.size(),
                          columns.size());
  }
  std::size_t next = 0;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::size_t end = next + draft.slice_counts[column];
    if (end > draft.slices.size()) {
      throw InvalidArgument("column '{}' ends at slice {}, but there are {}", columns[column].name,
                            end, draft.slices.size());
    }
    int rows = 0;
    for (; next < end; ++next) {
      const Slice& slice = draft.slices[next];
      if (slice.chunk >= chunks_end || chunks_.steps_id(slice.chunk) != steps_id_) {
        throw InvalidArgument("column '{}' lies in chunk {}, which has no steps of this table's",
                              columns[column].name, slice.chunk);
      }
      if (slice.length == 0 || slice.offset + slice.length > chunks_.rows(slice.chunk)) {
        throw InvalidArgument(
            "column '{}' has {} rows from row {} of chunk {}, which has {} rows; it must have at "
            "least 1, inside the chunk",
            columns[column].name, slice.length, slice.offset, slice.chunk,
            chunks_.rows(slice.chunk));
      }
      rows += slice.length;
      if (rows > columns[column].rows) break;
    }
    if (rows < 1 || rows > columns[column].rows) {
      throw InvalidArgument("column '{}' has {} rows; it must have 1 to {}", columns[column].name,
                            rows, columns[column].rows);
    }
  }
  if (next != draft.slices.size()) {
    throw InvalidArgument("its columns have {} slices together, but there are {}", next,
                          draft.slices.size());
  }
}

void DraftChecker::CheckBytes(const ItemDraft& draft) const {
  // Too much by a bound that counts chunks twice; then exactly.
  std::size_t bytes = 0;
  for (const Slice& slice : draft.slices) bytes += chunks_.bytes(slice.chunk);
  if (bytes <= bytes_max_) return;
  std::vector<ChunkId> distinct;
  for (const Slice& slice : draft.slices) distinct.push_back(slice.chunk);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  bytes = 0;
  for (const ChunkId chunk : distinct) bytes += chunks_.bytes(chunk);
  if (bytes > bytes_max_) {
    throw InvalidArgument("its chunks take {} bytes; bytes_max is {}", bytes, bytes_max_);
  }
}

}  // namespace menger
