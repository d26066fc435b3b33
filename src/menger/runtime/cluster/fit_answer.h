#pragma once

#include <cstddef>

#include "menger/runtime/cluster/store_codec.h"

namespace menger {

// Of an answer's room, for each operation of a batch at the least; who has less is refused.
inline constexpr std::size_t kStoreResultRoom = 512;

// Makes an answer one of at most `bytes_max` bytes, where the store has found more than a frame may
// have: a page gets shorter, and goes on where it was cut; values that are too much become
// InvalidArgument, since the same question would find no more room; long texts of errors are cut.
// A change that was made stays told, given kStoreResultRoom for each result.
void FitAnswer(StoreAnswer& answer, std::size_t bytes_max);

}  // namespace menger
