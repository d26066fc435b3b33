#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "menger/runtime/node/node_records.h"

namespace menger {

// What a worker has printed, on its way from the worker's node to the one whose calls it does.
struct PrintedLine {
  static constexpr std::size_t kTextBytesMax = 4096;  // A longer line comes in pieces.

  LoanNumber loan = 0;         // Under which the worker is lent; 0: it is not now.
  std::uint64_t worker = 0;    // As its node numbers it.
  std::uint32_t process = 0;   // There.
  std::uint64_t left_out = 0;  // This is no line, but stands for so many that found no room.
  std::string text;            // Without its end.
};

}  // namespace menger
