#include "menger/base/sharing/ring_channel.h"

#include <unistd.h>

#include <bit>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWords = kPage;  // Of the segment, before the rings.

std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::size_t SegmentBytes(std::size_t capacity) { return kWords + 2 * RoundUp(RingBytes(capacity)); }

// Of a segment whose size says it; what RingBytes adds is less than a page.
std::size_t CapacityOf(std::size_t segment_bytes) {
  if (segment_bytes > kWords + 2 * kPage) {
    const std::size_t capacity = std::bit_floor((segment_bytes - kWords) / 2);
    if (capacity >= 1024 && SegmentBytes(capacity) == segment_bytes) return capacity;
  }
  throw InvalidArgument("a segment of {} bytes is no channel", segment_bytes);
}

}  // namespace

RingChannel::RingChannel(std::size_t capacity)
    : segment_("menger-channel", SegmentBytes(capacity)), capacity_(capacity), own_(0) {
  Open();
  words_[0].ExpectLongWaits();  // A server has thousands of channels, of which most rest.
  words_[1].ExpectLongWaits();
}

RingChannel::RingChannel(FileDescriptor descriptor)
    : segment_(std::move(descriptor)), capacity_(CapacityOf(segment_.size())), own_(1) {
  Open();
}

// Zeros are valid words and rings.
void RingChannel::Open() {
  words_ = reinterpret_cast<EpochCounter*>(segment_.bytes().data());
  out_.emplace(RingBytesOf(own_));
  in_.emplace(RingBytesOf(1 - own_));
}

std::span<std::byte> RingChannel::RingBytesOf(int index) {
  const std::size_t bytes = RingBytes(capacity_);
  return segment_.bytes().subspan(kWords + static_cast<std::size_t>(index) * RoundUp(bytes), bytes);
}

std::span<std::byte> RingChannel::Reserve(std::size_t bytes, const Deadline& deadline) {
  if (unsent_ > capacity_ / 8) Send();
  for (;;) {
    const std::uint32_t seen = words_[own_].value();
    const std::span<std::byte> room = out_->Reserve(bytes);
    if (room.data() != nullptr) {
      unsent_ += bytes + sizeof(RingHeader);
      return room;
    }
    Send();
    const std::chrono::nanoseconds slice = deadline.slice();
    if (slice.count() == 0) return {};
    words_[own_].TryWaitFor(seen + 1, slice);
  }
}

bool RingChannel::Send() {
  if (unsent_ == 0) return true;
  unsent_ = 0;
  out_->Publish();
  words_[1 - own_].Advance();
  return true;
}

std::span<const std::byte> RingChannel::Receive(const Deadline& deadline) {
  for (;;) {
    const std::uint32_t seen = words_[own_].value();
    const RingEntry entry = in_->Next();
    if (entry) {
      unreleased_ += entry.bytes.size() + sizeof(RingHeader);
      return entry.bytes;
    }
    if (unreleased_ > 0) {  // It may wait for room.
      unreleased_ = 0;
      in_->Release();
      words_[1 - own_].Advance();
      continue;
    }
    const std::chrono::nanoseconds slice = deadline.slice();
    if (slice.count() == 0) return {};
    words_[own_].TryWaitFor(seen + 1, slice);
  }
}

void RingChannel::Release() {
  in_->Release();
  if (unreleased_ < capacity_ / 4) return;
  unreleased_ = 0;
  words_[1 - own_].Advance();
}

}  // namespace menger
