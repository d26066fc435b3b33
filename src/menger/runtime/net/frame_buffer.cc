#include "menger/runtime/net/frame_buffer.h"

#include <algorithm>
#include <cstring>

#include "menger/base/error.h"
#include "menger/runtime/net/frame_queue.h"

namespace menger {
namespace {

constexpr std::size_t kUsualBytes = std::size_t{256} << 10;
constexpr int kShortRoundsMax = 64;  // Without a long frame, until the buffer shrinks.

}  // namespace

void FrameBuffer::MoveTo(std::size_t capacity) {
  const std::size_t here = end_ - begin_;
  if (capacity == capacity_) {
    std::memmove(bytes_.get(), &bytes_[begin_], here);
  } else {
    auto other = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (here > 0) std::memcpy(other.get(), &bytes_[begin_], here);
    bytes_ = std::move(other);
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = here;
}

std::span<std::byte> FrameBuffer::Room() {
  const std::size_t here = end_ - begin_;
  // A longer frame is read to where it will be complete, and the bytes behind it are few.
  const std::size_t wanted = std::max(kUsualBytes, std::min(needed_ + kUsualBytes / 4, 2 * here));
  if (capacity_ < wanted) {
    MoveTo(wanted);
  } else if (capacity_ > kUsualBytes && here == 0 && short_rounds_ > kShortRoundsMax) {
    MoveTo(kUsualBytes);
  } else if (begin_ > 0 && (here == 0 || capacity_ - begin_ < std::max(needed_, wanted / 2))) {
    MoveTo(capacity_);
  }
  return {&bytes_[end_], capacity_ - end_};
}

std::span<const std::span<const std::byte>> FrameBuffer::Came(std::size_t bytes) {
  frames_.clear();
  end_ += bytes;
  needed_ = 0;
  ++short_rounds_;
  while (end_ - begin_ >= sizeof(FrameHead)) {
    FrameHead head;
    std::memcpy(&head, &bytes_[begin_], sizeof head);
    if (!head.IsRight()) throw InvalidArgument("what came over a stream is no frame");
    if (head.bytes > frame_bytes_max_) {
      throw InvalidArgument("a frame of {} bytes came over a stream; the longest may have {}",
                            head.bytes, frame_bytes_max_);
    }
    const std::size_t all = sizeof head + head.bytes;
    if (all > kUsualBytes / 2) short_rounds_ = 0;
    if (end_ - begin_ < all) {
      needed_ = all;
      break;
    }
    if (head.bytes > 0) {
      frames_.push_back(std::span(&bytes_[begin_ + sizeof head], head.bytes));
    }
    begin_ += all;
  }
  return frames_;
}

}  // namespace menger
