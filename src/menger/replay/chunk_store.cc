#include "menger/replay/chunk_store.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr ChunkId kNone = std::numeric_limits<ChunkId>::max();

std::unique_ptr<Memory> Reserve(const char* label, std::size_t bytes, bool shared) {
  if (shared) return AllocateSharedMemory(label, bytes);
  return AllocatePlainMemory(bytes);
}

// Not a draw of the run: it must differ between two processes of one seed.
std::uint64_t NewStoreIdentity() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

std::uint64_t StepsId(const Spec& steps) {
  std::string text;
  for (const LeafSpec& leaf : steps.leaves()) {
    text += fmt::format("{}:{}{}{};", leaf.name.size(), leaf.name, NameOf(leaf.dtype),
                        ToString(leaf.shape));
  }
  return XXH3_64bits(text.data(), text.size());
}

ChunkLayout::ChunkLayout(Spec steps, int capacity)
    : steps_(std::move(steps)), steps_id_(StepsId(steps_)), capacity_(capacity) {
  if (steps_.size() == 0) throw InvalidArgument("steps without leaves; they need at least one");
  if (capacity < 1 || capacity > kChunkRowsMax) {
    throw InvalidArgument("a chunk of {} steps; it must have 1 to {}", capacity, kChunkRowsMax);
  }
  for (const LeafSpec& leaf : steps_.leaves()) {
    row_bytes_.push_back(leaf.bytes());
    offsets_.push_back(bytes_);
    bytes_ += ArrayBytes(leaf.bytes(), capacity);
  }
}

ChunkStore::ChunkStore(const ChunkStoreOptions& options)
    : options_(options),
      identity_(NewStoreIdentity()),
      arena_memory_(Reserve("menger-chunks", options.bytes_max, options.shared)),
      // As many records as there can be blocks, which are at least a cache line each.
      record_memory_(
          Reserve("menger-chunk-records",
                  std::min<std::size_t>(options.bytes_max / kCacheLine, kNone) * sizeof(Record),
                  options.shared)),
      data_(arena_memory_->data()),
      records_(reinterpret_cast<Record*>(record_memory_->data())) {
  if (options.bytes_max < kCacheLine) {
    throw InvalidArgument("a chunk store of {} bytes; it must have at least {}", options.bytes_max,
                          kCacheLine);
  }
  // Random reads of small rows spend most of their time on missing TLB entries otherwise. A kernel
  // that refuses changes nothing else.
  madvise(data_, options.bytes_max, MADV_HUGEPAGE);
  free_.fill(kNone);
}

// Sizes in cache lines: 1 to 8 have classes of their own, then every doubling has eight.
int ChunkStore::SizeClassOf(std::size_t bytes) {
  const std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  if (lines <= 8) return static_cast<int>(lines) - 1;
  const int shift = std::bit_width(lines - 1) - 4;  // lines - 1 = 8 .. 15 steps of 2^shift.
  return 8 * (shift + 1) + static_cast<int>((lines - 1) >> shift) - 8;
}

std::size_t ChunkStore::BytesOf(int size_class) {
  if (size_class < 8) return kCacheLine * static_cast<std::size_t>(size_class + 1);
  const int shift = size_class / 8 - 1;
  return kCacheLine * (static_cast<std::size_t>(size_class % 8 + 9) << shift);
}

// The free chunk of the smallest class that will do, or kNone. Called with mutex_ held.
ChunkId ChunkStore::Take(int size_class) {
  const std::size_t bytes = BytesOf(size_class);
  if (free_[size_class] == kNone && bytes_cut_ + bytes <= options_.bytes_max &&
      chunks_cut_ < kNone) {
    new (&records_[chunks_cut_]) Record{.data_offset = bytes_cut_, .bytes = bytes};
    bytes_cut_ += bytes;
    return chunks_cut_++;
  }
  for (; size_class < kSizeClasses; ++size_class) {
    const ChunkId chunk = free_[size_class];
    if (chunk == kNone) continue;
    free_[size_class] = records_[chunk].next_free;
    return chunk;
  }
  return kNone;
}

ChunkId ChunkStore::Allocate(const ChunkLayout& layout) {
  return Allocate(layout, layout.bytes(), nullptr);
}

ChunkId ChunkStore::Restore(const ChunkLayout& layout, const ChunkIdentity& identity,
                            std::size_t block_bytes) {
  return Allocate(layout, std::max(layout.bytes(), block_bytes), &identity);
}

ChunkId ChunkStore::Allocate(const ChunkLayout& layout, std::size_t block_bytes,
                             const ChunkIdentity* identity) {
  const int size_class = SizeClassOf(block_bytes);
  if (BytesOf(size_class) > options_.bytes_max) {
    throw InvalidArgument("a chunk of {} steps takes {} bytes, but the replay store has only {}",
                          layout.capacity(), BytesOf(size_class), options_.bytes_max);
  }
  const std::lock_guard lock(mutex_);
  const ChunkId chunk = Take(size_class);
  if (chunk == kNone) {
    throw Unavailable(
        "the replay store has no room for a chunk of {} bytes: {} of {} are in use by {} chunks; "
        "tables must drop items first, writers reach back less far, or the store be larger",
        layout.bytes(), bytes_used_, options_.bytes_max, chunks_used_);
  }
  Record& record = records_[chunk];
  bytes_used_ += record.bytes;
  ++chunks_used_;
  record.identity =
      identity != nullptr ? *identity : ChunkIdentity{.store = identity_, .number = ++chunks_made_};
  record.steps_id = layout.steps_id();
  record.capacity = static_cast<std::uint32_t>(layout.capacity());
  record.rows.store(0, std::memory_order_relaxed);
  record.references.store(1, std::memory_order_relaxed);
  return chunk;
}

void ChunkStore::Free(ChunkId chunk) {
  const std::lock_guard lock(mutex_);
  Record& record = records_[chunk];
  ChunkId& first = free_[SizeClassOf(record.bytes)];
  record.next_free = first;
  first = chunk;
  bytes_used_ -= record.bytes;
  --chunks_used_;
}

std::size_t ChunkStore::bytes_used() const {
  const std::lock_guard lock(mutex_);
  return bytes_used_;
}

std::uint32_t ChunkStore::chunks() const {
  const std::lock_guard lock(mutex_);
  return chunks_used_;
}

std::uint32_t ChunkStore::chunks_end() const {
  const std::lock_guard lock(mutex_);
  return chunks_cut_;
}

}  // namespace menger
