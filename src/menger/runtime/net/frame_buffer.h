#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace menger {

// What comes over a stream, taken apart into frames. It grows with a frame that is under way, at
// most to twice of what has come of it, and goes back to its usual size when none has come for a
// while.
//
//     read up to buffer.Room().size() bytes to there
//     for (frame : buffer.Came(bytes)) ...
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  // Never empty. What Came has given is no longer valid.
  std::span<std::byte> Room();
  // The frames that are now complete, without empty ones, in place until Room. Throws
  // InvalidArgument for what is no frame, or one that is too long.
  std::span<const std::span<const std::byte>> Came(std::size_t bytes);

  std::size_t capacity() const { return capacity_; }

 private:
  void MoveTo(std::size_t capacity);

  const std::size_t frame_bytes_max_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  int short_rounds_ = 0;
  std::size_t begin_ = 0;  // [begin_, end_): came, and belongs to no frame that was given.
  std::size_t end_ = 0;
  std::size_t needed_ = 0;  // So long is the frame that begins there, with its head; 0: unknown.
  std::vector<std::span<const std::byte>> frames_;
};

}  // namespace menger
