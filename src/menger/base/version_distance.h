#pragma once

#include <cstdint>

namespace menger {

// Parameter versions travel as one integer that orders as they do: above these bits the learner's
// life (its incarnation), in them how many versions were published before.
inline constexpr int kVersionNumberBits = 47;

// How many versions lie between what acted and what a reader has. Within one life of the learner
// what is ahead of the reader is as fresh as can be: 0. Another life went on from a checkpoint,
// with the numbers that the life before had, too: there it is how far the numbers are apart,
// whichever is ahead.
constexpr std::uint64_t VersionDistance(std::uint64_t acted, std::uint64_t reader) {
  constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kVersionNumberBits) - 1;
  if (acted >> kVersionNumberBits == reader >> kVersionNumberBits) {
    return reader > acted ? reader - acted : 0;
  }
  const std::uint64_t a = acted & kNumbers;
  const std::uint64_t b = reader & kNumbers;
  return a > b ? a - b : b - a;
}

}  // namespace menger
