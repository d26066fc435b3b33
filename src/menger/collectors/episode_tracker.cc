#include "menger/collectors/episode_tracker.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace menger {
namespace {

constexpr int kFlags = 8;  // Flags looked at together.
constexpr std::uint64_t kAllSet = 0x0101010101010101;

std::uint64_t LoadFlags(const std::uint8_t* flags) {
  std::uint64_t word;
  std::memcpy(&word, flags, sizeof(word));
  return word;
}

}  // namespace

EpisodeTracker::EpisodeTracker(int columns)
    : returns_(columns, 0.0), starts_(columns, 0), partial_(columns, 0) {}

void EpisodeTracker::Scan(const Slab& slab) {
  episodes_.clear();
  for (int row = 0; row < slab.horizon(); ++row) {
    const std::int64_t step = slab.first_step() + row;
    for (const ColumnBlock& block : slab.columns().blocks()) {
      const double* reward = slab.reward(row) + block.first_position;
      const std::uint8_t* valid = slab.valid(row) + block.first_position;
      const std::uint8_t* end = slab.episode_end(row) + block.first_position;
      double* returns = returns_.data() + block.first_column;
      for (int first = 0; first < block.count; first += kFlags) {
        if (first + kFlags <= block.count && LoadFlags(valid + first) == kAllSet) {
          for (int i = first; i < first + kFlags; ++i) returns[i] += reward[i];
          for (std::uint64_t ends = LoadFlags(end + first); ends != 0; ends &= ends - 1) {
            const int i = first + std::countr_zero(ends) / 8;
            End(step, block, i, /*report=*/true);
          }
          continue;
        }
        const int last = std::min(first + kFlags, block.count);
        for (int i = first; i < last; ++i) {
          if (valid[i] != 0) returns[i] += reward[i];
          if (valid[i] != 0 && end[i] == 0) continue;
          End(step, block, i, /*report=*/valid[i] != 0);
        }
      }
    }
  }
}

void EpisodeTracker::End(std::int64_t step, const ColumnBlock& block, int index, bool report) {
  const int column = block.first_column + index;
  if (report && partial_[column] == 0) {
    episodes_.push_back({.environment = block.first_environment + index,
                         .episode_return = returns_[column],
                         .length = step - starts_[column] + 1});
  }
  returns_[column] = 0;
  starts_[column] = step + 1;
  partial_[column] = 0;
}

void EpisodeTracker::Save(ArchiveWriter& archive) const {
  archive.Write("returns", returns_);
  archive.Write("starts", starts_);
  archive.Write("partial", partial_);
}

void EpisodeTracker::Load(ArchiveReader& archive) {
  // Read as spans: another number of environments is refused by the archive.
  archive.Read("returns", std::span<double>(returns_));
  archive.Read("starts", std::span<std::int64_t>(starts_));
  archive.Read("partial", std::span<std::uint8_t>(partial_));
  episodes_.clear();
}

}  // namespace menger
