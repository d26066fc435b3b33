#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "menger/replay/chunks/item.h"

namespace menger {

// Tells a chunk from every other one that ever was, in this store, in one restored from a
// checkpoint of it, and in any other: a ChunkId is used again, an identity never.
struct ChunkIdentity {
  std::uint64_t store = 0;  // A random number of the store in which it was made.
  std::uint64_t number = 0;

  bool operator==(const ChunkIdentity&) const = default;
  bool operator<(const ChunkIdentity& other) const {
    return store != other.store ? store < other.store : number < other.number;
  }
};

// A chunk and its block, as a ChunkStore keeps them, for other processes too. One cache line.
struct alignas(64) ChunkRecord {
  std::atomic<std::uint32_t> references;
  std::atomic<std::uint32_t> rows;
  std::uint64_t data_offset;  // From the begin of the arena.
  std::uint64_t bytes;
  std::uint64_t steps_id;
  std::uint64_t compressed_bytes;  // 0: not compressed.
  std::uint32_t capacity;
  ChunkIdentity identity;
};
static_assert(sizeof(ChunkRecord) == 64);

// Chunks as who only reads them sees them: records by ChunkId, and the arena that their offsets
// count in. Both may be a ChunkStore's, a mapping of one of another process, or what came over a
// wire. It owns nothing: somebody holds the chunks, and the memory. Any thread.
class ChunkView {
 public:
  ChunkView() = default;
  ChunkView(const ChunkRecord* records, const std::byte* data) : records_(records), data_(data) {}

  // The byte at `offset` of the chunk. If it is not compressed, row r of a leaf begins at
  // offset(leaf) + r * row_bytes(leaf) of its layout.
  const std::byte* Data(ChunkId chunk, std::size_t offset) const {
    return data_ + records_[chunk].data_offset + offset;
  }

  int rows(ChunkId chunk) const {  // Published.
    return static_cast<int>(records_[chunk].rows.load(std::memory_order_acquire));
  }

  // Of the layout that it was allocated with.
  std::uint64_t steps_id(ChunkId chunk) const { return records_[chunk].steps_id; }
  int capacity(ChunkId chunk) const { return static_cast<int>(records_[chunk].capacity); }

  bool is_compressed(ChunkId chunk) const { return records_[chunk].compressed_bytes != 0; }
  std::size_t compressed_bytes(ChunkId chunk) const { return records_[chunk].compressed_bytes; }

  std::size_t bytes(ChunkId chunk) const { return records_[chunk].bytes; }  // Of its block.
  ChunkIdentity identity(ChunkId chunk) const { return records_[chunk].identity; }

  // Fetches ahead what the calls above read of a chunk.
  void Prefetch(ChunkId chunk) const { __builtin_prefetch(&records_[chunk]); }

 private:
  const ChunkRecord* records_ = nullptr;
  const std::byte* data_ = nullptr;
};

}  // namespace menger
