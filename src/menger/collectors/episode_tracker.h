#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/base/archive.h"
#include "menger/collectors/collector.h"

namespace menger {

// Finds the episodes that end in each slab, in the order of (row, environment).
//
// Only rows with `valid` set count. An invalid row means that the episode was cut (its simulator
// failed) or is over (its column is parked): what was summed up to there is dropped. Costs about a
// third of a nanosecond a step. One thread.
class EpisodeTracker {
 public:
  explicit EpisodeTracker(int columns);

  // The column's current episode began before the column did (random steps at the start): it is
  // not reported.
  void MarkPartial(int column) { partial_[column] = 1; }

  // The column's episode is lost and another begins at `step` of the run.
  void Drop(int column, std::int64_t step) {
    returns_[column] = 0;
    starts_[column] = step;
    partial_[column] = 0;
  }

  // Reads all rows of a slab; slabs come in the order of their first_step.
  void Scan(const Slab& slab);

  std::span<const EpisodeResult> episodes() const { return episodes_; }  // Of the last slab.

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  void End(std::int64_t step, const ColumnBlock& block, int index, bool report);

  std::vector<double> returns_;       // By column: of the episode that is under way.
  std::vector<std::int64_t> starts_;  // The step of the run at which it began.
  std::vector<std::uint8_t> partial_;
  std::vector<EpisodeResult> episodes_;
};

}  // namespace menger
