#include "menger/replay/chunks/chunk_store.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kCacheLine = 64;

// ByteRows: what their leaf is called, and the upper bits of their id, which no other has.
constexpr const char* kByteLeaf = "bytes";
constexpr int kByteRowBits = 40;
constexpr std::uint64_t kByteRowsTag = 0x62'79'74;

std::unique_ptr<Memory> Reserve(const char* label, std::size_t bytes, bool shared) {
  if (shared) return AllocateSharedMemory(label, bytes);
  return AllocatePlainMemory(bytes);
}

// Of the layout's bytes, or of the compressed ones.
std::size_t BlockBytes(const ChunkLayout& layout, std::size_t compressed_bytes) {
  const std::size_t content = compressed_bytes > 0 ? compressed_bytes : layout.bytes();
  return (content + kCacheLine - 1) / kCacheLine * kCacheLine;
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
  const std::uint64_t id = XXH3_64bits(text.data(), text.size());
  if (steps.size() == 1 && steps[0].name == kByteLeaf && steps[0].dtype == DataType::kUint8 &&
      steps[0].shape.size() == 1 && steps[0].shape[0] >= 1 && steps[0].shape[0] <= kByteRowMax) {
    return kByteRowsTag << kByteRowBits | static_cast<std::uint64_t>(steps[0].shape[0]);
  }
  return id >> kByteRowBits == kByteRowsTag ? ~id : id;
}

Spec ByteRows(std::int64_t bytes) {
  if (bytes < 1 || bytes > kByteRowMax) {
    throw InvalidArgument("a row of {} bytes; it must have 1 to {}", bytes, kByteRowMax);
  }
  return Spec({{.name = kByteLeaf, .dtype = DataType::kUint8, .shape = {bytes}}});
}

std::optional<std::int64_t> ByteRowsIn(std::uint64_t steps_id) {
  const auto bytes = static_cast<std::int64_t>(steps_id & static_cast<std::uint64_t>(kByteRowMax));
  if (steps_id >> kByteRowBits != kByteRowsTag || bytes == 0) return std::nullopt;
  return bytes;
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
      record_memory_(Reserve("menger-chunk-records",
                             std::min<std::size_t>(options.bytes_max / kCacheLine,
                                                   std::numeric_limits<ChunkId>::max()) *
                                 sizeof(ChunkRecord),
                             options.shared)),
      data_(arena_memory_->data()),
      records_(reinterpret_cast<ChunkRecord*>(record_memory_->data())),
      blocks_(options.bytes_max / kCacheLine * kCacheLine) {
  if (options.bytes_max < kCacheLine) {
    throw InvalidArgument("a chunk store of {} bytes; it must have at least {}", options.bytes_max,
                          kCacheLine);
  }
  static_cast<ChunkView&>(*this) = ChunkView(records_, data_);
  // Random reads of small rows spend most of their time on missing TLB entries otherwise. A kernel
  // that refuses changes nothing else.
  madvise(data_, options.bytes_max, MADV_HUGEPAGE);
}

ChunkId ChunkStore::Allocate(const ChunkLayout& layout, std::size_t compressed_bytes) {
  return Allocate(layout, compressed_bytes, nullptr);
}

ChunkId ChunkStore::Restore(const ChunkLayout& layout, const ChunkIdentity& identity,
                            std::size_t compressed_bytes) {
  return Allocate(layout, compressed_bytes, &identity);
}

ChunkId ChunkStore::Allocate(const ChunkLayout& layout, std::size_t compressed_bytes,
                             const ChunkIdentity* identity) {
  const MutexLock lock(mutex_);
  const std::optional<std::size_t> begin = TakeBlock(layout, compressed_bytes);
  if (!begin) ThrowFull(BlockBytes(layout, compressed_bytes));
  return MakeChunk(layout, compressed_bytes, *begin, identity);
}

ChunkId ChunkStore::AllocateWithin(const ChunkLayout& layout, const Deadline& deadline) {
  MutexLock lock(mutex_);
  TurnQueue::Turn turn(waiting_);
  for (bool expired = false;;) {
    if (turn.has_come()) {
      if (const std::optional<std::size_t> begin = TakeBlock(layout, 0)) {
        turn.Leave();
        waiting_.CallFirst();  // There may be room for more.
        return MakeChunk(layout, 0, *begin, nullptr);
      }
    }
    if (expired) break;
    expired = !turn.Wait(lock.native(), deadline);
  }
  turn.Leave();
  waiting_.CallFirst();
  ThrowFull(BlockBytes(layout, 0));
}

std::optional<std::size_t> ChunkStore::TakeBlock(const ChunkLayout& layout,
                                                 std::size_t compressed_bytes) {
  const std::size_t bytes = BlockBytes(layout, compressed_bytes);
  if (bytes > options_.bytes_max) {
    throw InvalidArgument("a chunk of {} steps takes {} bytes, but the replay store has only {}",
                          layout.capacity(), bytes, options_.bytes_max);
  }
  return blocks_.Take(bytes);
}

void ChunkStore::ThrowFull(std::size_t bytes) const {
  throw Unavailable(
      "the replay store has no room for a chunk of {} bytes: {} of {} are in use by {} chunks, and "
      "the largest gap has {}; tables must drop items first, writers reach back less far, or the "
      "store be larger",
      bytes, bytes_used_, options_.bytes_max, chunks_end_ - free_.size(), blocks_.largest());
}

ChunkId ChunkStore::MakeChunk(const ChunkLayout& layout, std::size_t compressed_bytes,
                              std::size_t begin, const ChunkIdentity* identity) {
  if (free_.empty()) {
    new (&records_[chunks_end_]) ChunkRecord{};
    free_.push_back(chunks_end_++);
  }
  const ChunkId chunk = free_.back();
  free_.pop_back();
  ChunkRecord& record = records_[chunk];
  record.data_offset = begin;
  record.bytes = BlockBytes(layout, compressed_bytes);
  record.compressed_bytes = compressed_bytes;
  record.steps_id = layout.steps_id();
  record.capacity = static_cast<std::uint32_t>(layout.capacity());
  record.identity =
      identity != nullptr ? *identity : ChunkIdentity{.store = identity_, .number = ++chunks_made_};
  record.rows.store(0, std::memory_order_relaxed);
  record.references.store(1, std::memory_order_relaxed);
  bytes_used_ += record.bytes;
  return chunk;
}

void ChunkStore::Free(ChunkId chunk) {
  const MutexLock lock(mutex_);
  const ChunkRecord& record = records_[chunk];
  blocks_.Give(record.data_offset, record.bytes);
  bytes_used_ -= record.bytes;
  free_.push_back(chunk);
  waiting_.CallFirst();
}

namespace {

FileDescriptor OpenShared(const Memory& memory) {
  const auto* const shared = dynamic_cast<const SharedMemory*>(&memory);
  if (shared == nullptr || shared->descriptor() < 0) {
    throw FailedPrecondition("this chunk store is not in memory that other processes can map");
  }
  return OpenForReading(fmt::format("/proc/self/fd/{}", shared->descriptor()));
}

}  // namespace

FileDescriptor ChunkStore::OpenArena() const { return OpenShared(*arena_memory_); }

FileDescriptor ChunkStore::OpenRecords() const { return OpenShared(*record_memory_); }

std::size_t ChunkStore::bytes_used() const {
  const MutexLock lock(mutex_);
  return bytes_used_;
}

int ChunkStore::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

std::uint32_t ChunkStore::chunks() const {
  const MutexLock lock(mutex_);
  return chunks_end_ - static_cast<std::uint32_t>(free_.size());
}

std::uint32_t ChunkStore::chunks_end() const {
  const MutexLock lock(mutex_);
  return chunks_end_;
}

}  // namespace menger
