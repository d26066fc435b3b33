#include "menger/runtime/memory/room_ahead.h"

#include <utility>

#include "menger/runtime/memory/extent_allocator.h"

namespace menger {
namespace {

constexpr int kPatience = 100;

}  // namespace

std::optional<SharedExtent> RoomAhead::Cut(SharedExtent& piece, std::uint64_t bytes) {
  if (bytes > piece.bytes) return std::nullopt;
  const auto [first, rest] = Split({piece.offset, piece.bytes}, bytes);
  const SharedExtent value{piece.segment, first.offset, bytes};
  piece = {piece.segment, rest.offset, rest.bytes};
  return value;
}

std::optional<SharedExtent> RoomAhead::Take(std::uint64_t bytes,
                                            std::optional<SharedExtent>& rest) {
  if (bytes == 0 || bytes > kValueBytesMax) return std::nullopt;
  if (bytes > piece_.bytes && bytes <= next_.bytes) {
    if (piece_.bytes > 0) rest = piece_;
    piece_ = std::exchange(next_, {});
  }
  return Cut(piece_, bytes);
}

bool RoomAhead::AskForMore() {
  if (asked_ || next_.bytes > 0 || --patience_ > 0) return false;
  asked_ = true;
  return true;
}

void RoomAhead::Give(const SharedExtent& piece) {
  asked_ = false;
  (piece_.bytes == 0 ? piece_ : next_) = piece;
}

void RoomAhead::Refuse() {
  asked_ = false;
  patience_ = kPatience;
}

}  // namespace menger
