#include "menger/runtime/net/frame_queue.h"

#include <cstring>

namespace menger {
namespace {

constexpr std::uint32_t kMark = 0x6672616d;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;  // Small frames together.
constexpr std::size_t kCopiedMax = std::size_t{8}
                                   << 10;  // Copying costs less than a piece of its own.

void Append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

FrameHead FrameHead::For(std::size_t bytes) {
  const auto count = static_cast<std::uint32_t>(bytes);
  return {.bytes = count, .check = count ^ kMark};
}

bool FrameHead::IsRight() const { return (bytes ^ check) == kMark; }

// The last piece, if nobody writes it and it has room; else a new one.
std::vector<std::byte>& FrameQueue::OpenBytes(std::size_t bytes) {
  const bool may_grow = pieces_.size() > taken_ && pieces_.back().shared.size() == 0 &&
                        pieces_.back().bytes.size() + bytes <= kPieceBytes;
  if (!may_grow) {
    const bool many = pieces_.size() > taken_;  // Then this one will be filled, too.
    pieces_.emplace_back();
    if (many) pieces_.back().bytes.reserve(kPieceBytes);
  }
  return pieces_.back().bytes;
}

FrameQueue::Added FrameQueue::AddLocked(std::span<const std::byte> head, const SharedBytes& tail) {
  const std::size_t all = head.size() + tail.size();
  const bool copies = tail.size() <= kCopiedMax;
  const FrameHead frame = FrameHead::For(all);
  std::vector<std::byte>& bytes =
      OpenBytes(sizeof frame + head.size() + (copies ? tail.size() : 0));
  Append(bytes, std::as_bytes(std::span(&frame, 1)));
  Append(bytes, head);
  if (copies) {
    Append(bytes, tail.bytes);
  } else {
    pieces_.emplace_back().shared = tail.Kept();
  }
  bytes_ += sizeof frame + all;
  return std::exchange(idle_, false) ? Added::kFirst : Added::kYes;
}

FrameQueue::Added FrameQueue::Add(std::span<const std::byte> head, const SharedBytes& tail) {
  const MutexLock lock(mutex_);
  if (closed_) return Added::kRefused;
  // One that is larger than all the room goes where nothing else waits.
  if (bytes_ > 0 && bytes_ + head.size() + tail.size() > bytes_max_) {
    refused_ = true;
    return Added::kRefused;
  }
  return AddLocked(head, tail);
}

FrameQueue::Added FrameQueue::AddBeat() {
  const MutexLock lock(mutex_);
  if (closed_ || bytes_ > 0) return Added::kRefused;
  return AddLocked({}, {});
}

std::vector<std::span<const std::byte>> FrameQueue::Next() {
  const MutexLock lock(mutex_);
  std::vector<std::span<const std::byte>> given;
  while (taken_ < pieces_.size() && taken_ < kPiecesMax && !closed_) {
    const Piece& piece = pieces_[taken_++];
    given.push_back(piece.shared.size() > 0 ? piece.shared.bytes
                                            : std::span<const std::byte>(piece.bytes));
  }
  idle_ = given.empty();
  return given;
}

bool FrameQueue::Written() {
  const MutexLock lock(mutex_);
  for (; taken_ > 0; --taken_) {
    bytes_ -= pieces_.front().size();
    pieces_.pop_front();
  }
  if (!refused_ || closed_ || bytes_ > bytes_max_ / 2) return false;
  refused_ = false;
  return true;
}

// What Next has given stays: it may be under way.
void FrameQueue::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace menger
