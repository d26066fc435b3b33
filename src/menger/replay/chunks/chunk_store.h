#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/base/mutex.h"
#include "menger/base/turn_queue.h"
#include "menger/replay/chunks/block_allocator.h"
#include "menger/replay/chunks/chunk_view.h"
#include "menger/replay/chunks/item.h"
#include "menger/tensor/memory.h"
#include "menger/tensor/spec.h"

namespace menger {

// The most rows that a chunk can hold: slices count in 16 bits.
inline constexpr int kChunkRowsMax = 65535;

// Equal for specs whose leaves have the same names, types and shapes in the same order, and for no
// others (64 bits of XXH3): how a chunk tells what its rows are, to other processes too.
std::uint64_t StepsId(const Spec& steps);

// Steps of one leaf of so many bytes, whatever they mean: the rows of open tables (ItemSpec). Their
// id alone tells what they are, so that nobody need know all sizes that there are. Throws
// InvalidArgument for a size outside 1 .. kByteRowMax.
inline constexpr std::int64_t kByteRowMax = (std::int64_t{1} << 40) - 1;
Spec ByteRows(std::int64_t bytes);
std::optional<std::int64_t> ByteRowsIn(std::uint64_t steps_id);  // Their size; none: other steps.

// Where each leaf of a step lies in a chunk of `capacity` rows: one array a leaf, row after row,
// each array on a cache line of its own, so that consecutive rows (a stack of frames, a sequence)
// are one run of bytes. Immutable; any thread.
class ChunkLayout {
 public:
  // Throws InvalidArgument for steps without leaves, or a capacity outside 1 .. kChunkRowsMax.
  ChunkLayout(Spec steps, int capacity);

  const Spec& steps() const { return steps_; }
  std::uint64_t steps_id() const { return steps_id_; }
  int capacity() const { return capacity_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t row_bytes(int leaf) const { return row_bytes_[leaf]; }
  std::size_t offset(int leaf) const { return offsets_[leaf]; }

  // What the array of one leaf takes: the next one begins there.
  static constexpr std::size_t ArrayBytes(std::size_t row_bytes, int capacity) {
    return (row_bytes * static_cast<std::size_t>(capacity) + 63) / 64 * 64;
  }

 private:
  Spec steps_;
  std::uint64_t steps_id_;
  int capacity_;
  std::vector<std::size_t> row_bytes_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

// How much memory a ChunkStore has, and where.
struct ChunkStoreOptions {
  std::size_t bytes_max = 0;  // Of all chunks together, as allocated.
  bool shared = false;        // In memory that other processes can map.
};

// Owns the memory of all chunks and counts who needs them.
//
// A chunk is filled by one writer from row 0 on. A row never changes once it is published
// (`Publish`), so readers copy published rows without a lock; they may look at rows below the count
// that an item or `rows` told them. A chunk is freed when its last reference goes; its writer and
// each table with items in it hold one, and so does each sample that a reader has not released.
//
// Memory is one reservation of addresses, touched as it is used; a chunk takes what its layout
// needs, to the next cache line. Chunks of several sizes may leave gaps that are too small for the
// next one, so a store of those needs a little more than it holds: less than 1/32 in a simulated
// table, first in first out, whose compressed chunks grew from 4 to 60 kB and shrank again. Nothing
// here is an address: a process that maps the same memory finds everything by number.
//
// A full chunk may be replaced with a compressed one (chunk_compression.h): another chunk, with the
// same rows and steps, whose bytes are not as the layout has them.
//
// Any thread may call anything, naming chunks that it knows somebody to hold; Allocate and the last
// Release take the store's mutex, which is the innermost of replay's (table mutexes are taken
// before it).
class ChunkStore : public ChunkView {
 public:
  // Throws InvalidArgument unless bytes_max is at least one cache line; Unavailable if the system
  // has no addresses left.
  explicit ChunkStore(const ChunkStoreOptions& options);

  // An empty chunk with one reference; its bytes are what they were. `compressed_bytes` is what a
  // compressed one takes instead of the layout's bytes; 0: it is not compressed. Throws
  // Unavailable, naming bytes used and allowed, if there is no room; InvalidArgument if one chunk
  // alone is larger than the store.
  ChunkId Allocate(const ChunkLayout& layout, std::size_t compressed_bytes = 0);

  // As Allocate, but waits for room until the deadline: whoever came first gets it.
  ChunkId AllocateWithin(const ChunkLayout& layout, const Deadline& deadline);

  // As Allocate, for a chunk that a checkpoint brings back: it keeps its identity.
  ChunkId Restore(const ChunkLayout& layout, const ChunkIdentity& identity,
                  std::size_t compressed_bytes = 0);

  void AddReference(ChunkId chunk, std::uint32_t count = 1) {
    records_[chunk].references.fetch_add(count, std::memory_order_relaxed);
  }
  void Release(ChunkId chunk, std::uint32_t count = 1) {
    if (records_[chunk].references.fetch_sub(count, std::memory_order_acq_rel) == count) {
      Free(chunk);
    }
  }

  // As ChunkView's; for writers.
  std::byte* Data(ChunkId chunk, std::size_t offset) const {
    return data_ + records_[chunk].data_offset + offset;
  }

  // By its writer only; never fewer than before, nor more than it has room for.
  void Publish(ChunkId chunk, int rows) {
    records_[chunk].rows.store(static_cast<std::uint32_t>(rows), std::memory_order_release);
  }

  // For a process that maps both (ReadableSegment) and looks at them with a ChunkView. Throw
  // FailedPrecondition where the memory is not shared.
  FileDescriptor OpenArena() const;
  FileDescriptor OpenRecords() const;

  std::size_t bytes_used() const;  // Of blocks in use.
  std::size_t bytes_max() const { return options_.bytes_max; }
  int waiting() const;               // Calls of AllocateWithin.
  std::uint32_t chunks() const;      // In use.
  std::uint32_t chunks_end() const;  // All that were ever in use are less than this.

 private:
  // A block's first byte, or nothing; and a chunk that has it.
  std::optional<std::size_t> TakeBlock(const ChunkLayout& layout, std::size_t compressed_bytes)
      MENGER_REQUIRES(mutex_);
  ChunkId MakeChunk(const ChunkLayout& layout, std::size_t compressed_bytes, std::size_t begin,
                    const ChunkIdentity* identity) MENGER_REQUIRES(mutex_);
  [[noreturn]] void ThrowFull(std::size_t bytes) const MENGER_REQUIRES(mutex_);
  ChunkId Allocate(const ChunkLayout& layout, std::size_t compressed_bytes,
                   const ChunkIdentity* identity);
  void Free(ChunkId chunk);

  const ChunkStoreOptions options_;
  const std::uint64_t identity_;  // Of this store, for the chunks that are made in it.
  const std::unique_ptr<Memory> arena_memory_;
  const std::unique_ptr<Memory> record_memory_;
  std::byte* const data_;
  ChunkRecord* const records_;

  mutable Mutex mutex_;
  BlockAllocator blocks_ MENGER_GUARDED_BY(mutex_);
  TurnQueue waiting_ MENGER_GUARDED_BY(mutex_);          // For room.
  std::vector<ChunkId> free_ MENGER_GUARDED_BY(mutex_);  // Records, the last one is used next.
  std::size_t bytes_used_ MENGER_GUARDED_BY(mutex_) = 0;
  std::uint32_t chunks_end_ MENGER_GUARDED_BY(mutex_) = 0;
  std::uint64_t chunks_made_ MENGER_GUARDED_BY(mutex_) = 0;  // Ever.
};

}  // namespace menger
