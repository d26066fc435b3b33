#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace menger {

// A queue of entries of any size from one writer to one reader, in memory that both map: threads
// or processes, of which either may be killed at any moment.
//
// No lock and no system call. Neither end waits: a full ring gives no room, an empty one no entry;
// whoever wants to sleep rings a doorbell after a batch. Entries begin at multiples of 16 bytes and
// are never cut in two (the rest at the end is padded).
//
// Neither end trusts what the other can write. Positions are private to each end, and what is
// shared is read once and checked; what cannot be is DataLoss, and the caller ends the peer. The
// bytes of an entry stay writable for the other side, so a node reads each value in them once.
//
// The memory is RingBytes(capacity) long, aligned to a cache line, zeroed, used for one ring: each
// incarnation of a worker has a new one. One thread at a time an end.
//
// A ring that runs empty begins again at its start, once it has used kRingNearBytes: a peer with
// few entries under way has few pages, which stay warm. What a burst took beyond these
// GiveMemoryBack returns to the system, where the memory is a shared mapping.
inline constexpr std::size_t kRingNearBytes = 64 * 1024;

// `capacity` is a power of two of at least 1 KiB; throws InvalidArgument else.
std::size_t RingBytes(std::size_t capacity);

// Where an entry lies: the bytes written before it since the ring was made. Never used twice.
using RingPosition = std::uint64_t;

enum class RingEntryKind : std::uint32_t {
  kPlain,      // The reader's as soon as it is published.
  kClaimable,  // Offered: the reader's once it has claimed it; until then it can be recalled.
};

// What the reader is given: one entry, where it lies in the ring. False: there is none.
struct RingEntry {
  std::span<const std::byte> bytes;  // Valid until released.
  RingPosition position = 0;
  RingEntryKind kind = RingEntryKind::kPlain;

  explicit operator bool() const { return bytes.data() != nullptr; }
};

// How the ring lies in memory; for the two ends.
struct RingWords {
  alignas(64) std::atomic<std::uint64_t> published;  // The writer's: entries end here.
  alignas(64) std::atomic<std::uint64_t> released;   // The reader's: room begins here.
};
struct alignas(16) RingHeader {
  std::atomic<std::uint32_t> bytes;  // Of the entry, without this header.
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint64_t> position;  // Its own: memory that is no header seldom has it.
};
static_assert(sizeof(RingHeader) == 16 && std::atomic<std::uint64_t>::is_always_lock_free);

// The writing end. One thread at a time; throws DataLoss for what the other end cannot have said.
class RingWriter {
 public:
  // It begins again at its start once it is empty and has used `near_bytes`.
  explicit RingWriter(std::span<std::byte> memory, std::size_t near_bytes = kRingNearBytes);

  // Room for an entry of exactly `bytes` (0 or more) bytes, 16-byte aligned, to be filled before
  // Publish; data() is null if the ring is full. Throws InvalidArgument for more than max_bytes(),
  // DataLoss if the reader's position is one that it cannot have.
  std::span<std::byte> Reserve(std::size_t bytes, RingEntryKind kind = RingEntryKind::kPlain);

  // Whether Reserve would give that room now. Throws DataLoss as it does.
  bool HasRoomFor(std::size_t bytes);

  // Of the entry reserved last.
  RingPosition last() const { return last_; }

  // Makes all reserved entries visible, with one store; in what order with other words.
  void Publish(std::memory_order order = std::memory_order_release) {
    words_->published.store(reserved_, order);
  }

  // Takes a published claimable entry back. False if the reader has claimed or released it.
  bool TryRecall(RingPosition position);

  // The reader has released all entries before this position. Throws DataLoss as Reserve does.
  RingPosition ReadReleased();

  // For whoever has nothing to write now: if the ring is empty, and has been written nothing since
  // this was last called. Throws DataLoss as Reserve does.
  void GiveMemoryBack();

  std::size_t max_bytes() const { return capacity_ / 4; }

 private:
  RingHeader& HeaderAt(RingPosition position) const;
  bool HasRoom(std::uint64_t bytes);
  std::uint64_t PaddingBefore(std::uint64_t size);

  RingWords* const words_;
  std::byte* const data_;
  const std::uint64_t capacity_;
  const std::uint64_t near_;
  std::uint64_t touched_ = 0;  // So many bytes from the start may have memory.
  std::uint64_t look_at_ = 0;  // Beyond this position it looks again whether it is empty.
  std::uint64_t rested_at_ = 0;
  std::uint64_t reserved_ = 0;  // Private: what the writer believes, whatever the memory says.
  std::uint64_t released_ = 0;  // As last read.
  RingPosition last_ = 0;
};

// The reading end, likewise.
class RingReader {
 public:
  explicit RingReader(std::span<std::byte> memory);

  // The next entry, or one with null bytes. Claimable ones are still to be claimed, those that have
  // been recalled are passed over. What Next has given stays readable until Release, so a reader
  // may look at what comes before it claims. Throws DataLoss if what the writer wrote makes no
  // sense.
  RingEntry Next();

  // Whether a claimable entry is now the reader's; false if the writer has recalled it (or it was
  // claimed before).
  bool TryClaim(const RingEntry& entry);
  // Whether nobody can claim it any longer; without claiming it.
  bool WasRecalled(const RingEntry& entry);

  // Gives the room of all that Next has given and passed over back to the writer.
  void Release() { ReleaseTo(next_); }
  // ... up to and with `entry`, which Next has given.
  void ReleaseThrough(const RingEntry& entry);

 private:
  RingHeader& HeaderAt(RingPosition position) const;
  bool HasEntry();
  void ReleaseTo(std::uint64_t position);

  RingWords* const words_;
  std::byte* const data_;
  const std::uint64_t capacity_;
  std::uint64_t next_ = 0;
  std::uint64_t published_ = 0;  // As last read.
  std::uint64_t released_ = 0;
};

}  // namespace menger
