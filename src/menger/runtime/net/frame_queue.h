#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/runtime/values/shared_bytes.h"

namespace menger {

// What stands before the bytes of each frame.
struct FrameHead {
  std::uint32_t bytes = 0;  // Of the frame, without this.
  std::uint32_t check = 0;

  static FrameHead For(std::size_t bytes);
  bool IsRight() const;
};

// Frames that wait to be sent: any thread adds, one takes. Small ones lie behind one another, so
// that many are one piece of one system call; large ones are sent from where they lie.
class FrameQueue {
 public:
  explicit FrameQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  enum class Added : std::uint8_t {
    kRefused,  // No room, or closed.
    kYes,
    kFirst,  // Likewise, and whoever takes is to be told: it has found nothing.
  };
  Added Add(std::span<const std::byte> head, const SharedBytes& tail);
  // An empty frame, where there is nothing else: the other end sees that this one lives.
  Added AddBeat();

  // What is to be written next, at most kPiecesMax pieces, which stay until Written; none: who adds
  // next is told kFirst.
  static constexpr std::size_t kPiecesMax = 64;
  std::vector<std::span<const std::byte>> Next();
  // All that Next has given. True where somebody was refused and there is room again.
  bool Written();

  void Close();

 private:
  // One or the other.
  struct Piece {
    std::vector<std::byte> bytes;
    SharedBytes shared;
    std::size_t size() const { return bytes.size() + shared.size(); }
  };
  std::vector<std::byte>& OpenBytes(std::size_t bytes) MENGER_REQUIRES(mutex_);
  Added AddLocked(std::span<const std::byte> head, const SharedBytes& tail) MENGER_REQUIRES(mutex_);

  const std::size_t bytes_max_;
  Mutex mutex_;
  std::deque<Piece> pieces_ MENGER_GUARDED_BY(mutex_);
  std::size_t taken_ MENGER_GUARDED_BY(mutex_) = 0;  // Of the pieces: Next has given them.
  std::size_t bytes_ MENGER_GUARDED_BY(mutex_) = 0;
  bool idle_ MENGER_GUARDED_BY(mutex_) = true;
  bool refused_ MENGER_GUARDED_BY(mutex_) = false;
  bool closed_ MENGER_GUARDED_BY(mutex_) = false;
};

}  // namespace menger
