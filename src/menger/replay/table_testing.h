#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/sample.h"
#include "menger/replay/table.h"

namespace menger::testing_tables {  // Not `testing`, which is GoogleTest's.

using testing_files::ErrorText;

// Long enough for what must happen, and for what must not.
inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }
inline Deadline Now() { return Deadline::After(std::chrono::nanoseconds(0)); }

// Steps of one int64 each; items with up to four rows of it in column "stack", one in "last".
inline ItemSpec SmallItems() {
  return {.steps = Spec({LeafSpec::Discrete("value", 1'000'000)}),
          .columns = {{.name = "stack", .leaf = "value", .rows = 4},
                      {.name = "last", .leaf = "value", .rows = 1}}};
}

inline TableOptions SmallTable() {
  return {.name = "small", .items = SmallItems(), .items_max = 1000, .seed = 1};
}

inline constexpr int kChunkRows = 8;
inline constexpr std::size_t kChunkBytes = 64;  // Eight int64.

// A store, and a writer's references to chunks of it.
class Chunks {
 public:
  explicit Chunks(std::size_t bytes_max = std::size_t{1} << 20)
      : store_({.bytes_max = bytes_max}) {}

  ChunkStore& store() { return store_; }

  // A full chunk, held until Drop.
  ChunkId New(int rows = kChunkRows) {
    const ChunkId chunk = store_.Allocate(layout_);
    store_.Publish(chunk, rows);
    return chunk;
  }
  void Drop(ChunkId chunk) { store_.Release(chunk); }

 private:
  const ChunkLayout layout_{SmallItems().steps, kChunkRows};
  ChunkStore store_;
};

// An item of one row, which both columns show.
inline ItemDraft OneRow(ChunkId chunk, int row, double priority = 1.0, VersionRange versions = {}) {
  const Slice slice{.chunk = chunk, .offset = static_cast<std::uint16_t>(row), .length = 1};
  return {
      .priority = priority, .versions = versions, .slices = {slice, slice}, .slice_counts = {1, 1}};
}

inline std::vector<ItemKey> InsertAll(Table& table, const std::vector<ItemDraft>& drafts) {
  std::vector<ItemKey> keys;
  table.Insert(drafts, Soon(), &keys);
  return keys;
}

}  // namespace menger::testing_tables
