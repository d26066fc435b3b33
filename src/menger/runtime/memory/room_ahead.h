#pragma once

#include <cstdint>
#include <optional>

#include "menger/runtime/values/object_value.h"

namespace menger {

// Room in shared memory that a worker has before it needs it, so that results of middling size cost
// it no way to the node and back: one piece to take from, and the next. One thread at a time.
//
// Whoever uses it asks the node for what `wants_more` says, and returns what Take leaves over.
class RoomAhead {
 public:
  // What is asked for at a time, and the most that is taken from it at once.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  static constexpr std::uint64_t kValueBytesMax = std::uint64_t{1} << 20;

  // Room for a value; nothing if there is none. `rest` gets what is not needed any longer.
  std::optional<SharedExtent> Take(std::uint64_t bytes, std::optional<SharedExtent>& rest);

  // True once for each piece that should be asked for, after the first value that had a use for it.
  bool AskForMore();
  void Give(const SharedExtent& piece);
  // There is not enough: it is better to ask for what is needed, for a while.
  void Refuse();

 private:
  std::optional<SharedExtent> Cut(SharedExtent& piece, std::uint64_t bytes);

  SharedExtent piece_;
  SharedExtent next_;
  bool asked_ = false;
  int patience_ = 0;  // So many values until it asks again.
};

}  // namespace menger
