#include "menger/base/sharing/ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kAlignment = 16;
constexpr std::size_t kCapacityMin = 1024;
// Whether it is empty is the other end's to say, so it costs a cache miss: asked once for so many
// bytes that are written.
constexpr std::uint64_t kLookBytes = 4096;

enum State : std::uint32_t { kPlain, kOffered, kClaimed, kRecalled, kPadding };

constexpr std::uint64_t RoundUp(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) & ~(kAlignment - 1);
}

// With its header.
constexpr std::uint64_t EntrySize(std::uint64_t bytes) {
  return sizeof(RingHeader) + RoundUp(bytes);
}

std::uint64_t CapacityOf(std::span<std::byte> memory) {
  const std::size_t capacity =
      memory.size() - std::min<std::size_t>(memory.size(), sizeof(RingWords));
  if (memory.size() != RingBytes(capacity) ||
      reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(RingWords) != 0) {
    throw InvalidArgument("a ring needs RingBytes(capacity) bytes aligned to {}, not {} at {}",
                          alignof(RingWords), memory.size(),
                          static_cast<const void*>(memory.data()));
  }
  return capacity;
}

RingWords* WordsOf(std::span<std::byte> memory) {
  return reinterpret_cast<RingWords*>(memory.data());
}

RingHeader& HeaderIn(std::byte* data, std::uint64_t capacity, RingPosition position) {
  return *reinterpret_cast<RingHeader*>(data + (position & (capacity - 1)));
}

void WriteHeader(RingHeader& header, std::uint64_t bytes, State state, RingPosition position) {
  header.bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  header.state.store(state, std::memory_order_relaxed);
  header.position.store(position, std::memory_order_relaxed);
}

}  // namespace

std::size_t RingBytes(std::size_t capacity) {
  if (!std::has_single_bit(capacity) || capacity < kCapacityMin || capacity > 1U << 31) {
    throw InvalidArgument("the capacity of a ring is a power of two from {} to 2^31, not {}",
                          kCapacityMin, capacity);
  }
  return sizeof(RingWords) + capacity;
}

RingWriter::RingWriter(std::span<std::byte> memory, std::size_t near_bytes)
    : words_(WordsOf(memory)),
      data_(memory.data() + sizeof(RingWords)),
      capacity_(CapacityOf(memory)),
      near_(near_bytes) {}

RingHeader& RingWriter::HeaderAt(RingPosition position) const {
  return HeaderIn(data_, capacity_, position);
}

RingPosition RingWriter::ReadReleased() {
  const std::uint64_t released = words_->released.load(std::memory_order_acquire);
  if (released - released_ > reserved_ - released_ || released % kAlignment != 0) {
    throw DataLoss("a ring's reader says that it has released {} bytes: it can have from {} to {}",
                   released, released_, reserved_);
  }
  return released_ = released;
}

bool RingWriter::HasRoom(std::uint64_t bytes) {
  return capacity_ - (reserved_ - released_) >= bytes ||
         capacity_ - (reserved_ - ReadReleased()) >= bytes;
}

bool RingWriter::HasRoomFor(std::size_t bytes) {
  const std::uint64_t size = EntrySize(bytes);
  return HasRoom(PaddingBefore(size) + size);
}

std::span<std::byte> RingWriter::Reserve(std::size_t bytes, RingEntryKind kind) {
  if (bytes > max_bytes()) {
    throw InvalidArgument("an entry of {} bytes does not fit a ring of {}: {} bytes at most", bytes,
                          capacity_, max_bytes());
  }
  const std::uint64_t size = EntrySize(bytes);
  const std::uint64_t padding = PaddingBefore(size);
  if (!HasRoom(padding + size)) return {};
  if (padding > 0) {
    WriteHeader(HeaderAt(reserved_), padding - sizeof(RingHeader), kPadding, reserved_);
    reserved_ += padding;
  }
  RingHeader& header = HeaderAt(reserved_);
  WriteHeader(header, bytes, kind == RingEntryKind::kClaimable ? kOffered : kPlain, reserved_);
  last_ = reserved_;
  reserved_ += size;
  touched_ = std::max(touched_, (last_ & (capacity_ - 1)) + size);
  return {reinterpret_cast<std::byte*>(&header + 1), bytes};
}

// What is left to the end, if the entry does not fit there or begins the ring again. The reader
// gives padding back as soon as it comes to it; until then there is room for as much as lies before
// it, so what is longer goes on behind.
std::uint64_t RingWriter::PaddingBefore(std::uint64_t size) {
  const std::uint64_t offset = reserved_ & (capacity_ - 1);
  const std::uint64_t to_end = capacity_ - offset;
  if (size > to_end) return to_end;
  if (offset < near_ || size > offset || reserved_ + size < look_at_) return 0;
  look_at_ = reserved_ + kLookBytes;
  return ReadReleased() == reserved_ ? to_end : 0;
}

// The reader is past all of it, and the writer begins again at the start.
void RingWriter::GiveMemoryBack() {
  if (std::exchange(rested_at_, reserved_) != reserved_ || touched_ <= near_) return;
  if (ReadReleased() != reserved_) return;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<std::uintptr_t>(data_);
  const std::uintptr_t begin = (data + near_ + page - 1) / page * page;
  const std::uintptr_t end = (data + touched_) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
  touched_ = near_;
  look_at_ = reserved_;
}

// Only the writer overwrites a header, and only after it was released. So the state of a claimed
// entry stays claimed however late this comes, and an entry that is gone is told by its position.
bool RingWriter::TryRecall(RingPosition position) {
  if (position >= reserved_) {
    throw InvalidArgument("there is no entry at {}: the ring ends at {}", position, reserved_);
  }
  if (position < ReadReleased()) return false;
  std::uint32_t expected = kOffered;
  return HeaderAt(position).state.compare_exchange_strong(expected, kRecalled,
                                                          std::memory_order_acq_rel);
}

RingReader::RingReader(std::span<std::byte> memory)
    : words_(WordsOf(memory)),
      data_(memory.data() + sizeof(RingWords)),
      capacity_(CapacityOf(memory)) {}

RingHeader& RingReader::HeaderAt(RingPosition position) const {
  return HeaderIn(data_, capacity_, position);
}

bool RingReader::HasEntry() {
  if (next_ != published_) return true;
  // In one order with what a writer may do beside publishing (WorkerFlags).
  const std::uint64_t published = words_->published.load(std::memory_order_seq_cst);
  // `released_` is what this end has given back, so no writer can be further ahead than that.
  if (published - published_ > capacity_ - (published_ - released_) ||
      published % kAlignment != 0) {
    throw DataLoss("a ring's writer says that it has published {} bytes: it can have from {} to {}",
                   published, published_, released_ + capacity_);
  }
  published_ = published;
  return next_ != published_;
}

RingEntry RingReader::Next() {
  while (HasEntry()) {
    RingHeader& header = HeaderAt(next_);
    const std::uint32_t bytes = header.bytes.load(std::memory_order_relaxed);
    const std::uint32_t state = header.state.load(std::memory_order_acquire);
    const std::uint64_t position = header.position.load(std::memory_order_relaxed);
    const std::uint64_t size = EntrySize(bytes);
    const std::uint64_t to_end = capacity_ - (next_ & (capacity_ - 1));
    const bool too_long = bytes > capacity_ / 4 && state != kPadding;
    if (position != next_ || too_long || size > published_ - next_ || size > to_end ||
        state > kPadding) {
      throw DataLoss(
          "a ring's entry at {} says that it is {} bytes at {} in state {}: the ring ends at {}",
          next_, bytes, position, state, published_);
    }
    const bool nothing_before = released_ == next_;
    next_ += size;
    if (state == kPadding && nothing_before) Release();
    if (state == kRecalled || state == kPadding) continue;
    const auto kind = state == kPlain ? RingEntryKind::kPlain : RingEntryKind::kClaimable;
    return {{reinterpret_cast<const std::byte*>(&header + 1), bytes}, position, kind};
  }
  return {};
}

bool RingReader::TryClaim(const RingEntry& entry) {
  std::uint32_t expected = kOffered;
  return HeaderAt(entry.position)
      .state.compare_exchange_strong(expected, kClaimed, std::memory_order_acq_rel);
}

bool RingReader::WasRecalled(const RingEntry& entry) {
  return HeaderAt(entry.position).state.load(std::memory_order_acquire) == kRecalled;
}

void RingReader::ReleaseThrough(const RingEntry& entry) {
  ReleaseTo(entry.position + EntrySize(entry.bytes.size()));
}

// Never back: entries are given, and so released, in order.
void RingReader::ReleaseTo(std::uint64_t position) {
  if (position <= released_) return;
  released_ = position;
  words_->released.store(position, std::memory_order_release);
}

}  // namespace menger
