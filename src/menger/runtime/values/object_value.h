#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace menger {

// Where a value lies in shared memory: `bytes` bytes at `offset` of the segment.
struct SharedExtent {
  // From this one on they are other nodes', who show what lies there (ShownValues).
  static constexpr std::uint32_t kShownSegments = std::uint32_t{1} << 31;

  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_shown() const { return segment >= kShownSegments; }
  bool operator==(const SharedExtent&) const = default;
};

// Bytes that never change, counted: they may be read on any thread while a Payload is held.
class Payload {
 public:
  Payload() = default;
  // Room for `bytes` bytes, aligned to 16, to be filled before it is shared. Throws Unavailable.
  static Payload Allocate(std::size_t bytes);
  static Payload Copy(std::span<const std::byte> bytes);

  Payload(const Payload& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->count.fetch_add(1, std::memory_order_relaxed);
  }
  Payload(Payload&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Payload& operator=(Payload other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Payload() {
    if (buffer_ != nullptr && buffer_->count.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }

  bool valid() const { return buffer_ != nullptr; }
  std::size_t size() const { return buffer_ != nullptr ? buffer_->bytes : 0; }
  std::span<const std::byte> bytes() const { return {Data(), size()}; }
  std::span<std::byte> fill() { return {Data(), size()}; }

 private:
  struct alignas(16) Buffer {
    std::atomic<std::uint32_t> count;
    std::size_t bytes;
  };
  std::byte* Data() const {
    return buffer_ != nullptr ? reinterpret_cast<std::byte*>(buffer_ + 1) : nullptr;
  }
  void Free();

  Buffer* buffer_ = nullptr;
};

// Larger values lie in shared memory, smaller ones travel with the messages.
inline constexpr std::size_t kInlineBytesMax = 64 * 1024;

// Of the nodes that this one knows, from 1: another for each life of a node. 0: this node.
using PeerIndex = std::uint32_t;

// Where a value may lie: at a node, for the workers that it has lent to the value's owner; or what
// the node has for its own use, which is another place.
inline constexpr PeerIndex kOwnUse = PeerIndex{1} << 31;
inline constexpr PeerIndex NodeOfPlace(PeerIndex place) { return place & ~kOwnUse; }

// A value, or why there is none.
struct ObjectValue {
  enum class Kind : std::uint8_t { kNone, kInline, kShared, kSpilled, kRemote, kError };
  Kind kind = Kind::kNone;
  PeerIndex node = 0;            // kRemote, until an object has it (node/copies.h): where,
  std::uint64_t kept = 0;        // and what it is called there (NodeMachine::KeepFor).
  Payload payload;               // kInline: the value. kError: an encoded TaskError.
  SharedExtent extent;           // kShared; of kSpilled and kRemote its length.
  std::uint64_t spilled_at = 0;  // kSpilled, and kShared where the disk has it, too: its number.

  static ObjectValue Inline(Payload payload) {
    return {.kind = Kind::kInline, .payload = std::move(payload)};
  }
  static ObjectValue Shared(SharedExtent extent) {
    return {.kind = Kind::kShared, .extent = extent};
  }
  static ObjectValue Remote(PeerIndex node, std::uint64_t kept, std::uint64_t bytes) {
    return {.kind = Kind::kRemote, .node = node, .kept = kept, .extent = {.bytes = bytes}};
  }
  static ObjectValue Failed(Payload error) {
    return {.kind = Kind::kError, .payload = std::move(error)};
  }
};

}  // namespace menger
