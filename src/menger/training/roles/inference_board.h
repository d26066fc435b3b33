#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "menger/base/epoch_counter.h"
#include "menger/tensor/column_layout.h"
#include "menger/training/roles/run_counts.h"

namespace menger {

// One collector's requests to act for it, one at a time: some positions of a row of its slab, in
// which observations lie and actions are written in place. Valid as zero bytes; of one process, or
// shared by several, where it outlives both sides. The asker writes the request, then advances
// `asked`; who has acted advances `answered`.
struct InferenceDesk {
  EpochCounter asked;
  EpochCounter answered;
  std::atomic<std::uint32_t> slab{0};  // Number of the asker's slab: one made anew has another.
  int row = 0;
  int horizon = 1;
  std::int64_t first_step = 0;
  PositionRange positions;

  bool open() const { return asked.value() != answered.value(); }
};

// The desks of all collectors.
struct InferenceBoard {
  EpochCounter bell;                // Advanced after each request.
  std::atomic<bool> closed{false};  // Nobody will act any more.
  std::array<InferenceDesk, RunCounts::kCollectorsMax> desks;
};

// All that roles share but replay and parameters.
struct RunMemory {
  RunCounts counts;
  InferenceBoard inference;
};

}  // namespace menger
