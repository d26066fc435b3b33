#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/archive.h"
#include "menger/collectors/collector.h"

namespace menger {

// Mean return and length of the last hundred episodes that ended.
class RecentEpisodes {
 public:
  static constexpr std::size_t kEpisodesMax = 100;

  void Add(std::span<const EpisodeResult> episodes);
  double return_mean() const;  // NaN before the first episode.
  double length_mean() const;

  void Save(ArchiveWriter archive) const;
  void Load(const ArchiveReader& archive);

 private:
  std::vector<double> returns_;  // A ring: `next_` is the oldest once it is full.
  std::vector<double> lengths_;
  std::uint64_t next_ = 0;
};

// Means of what an algorithm reported since the last row. The names must be the same every time; a
// NaN says that there was nothing to report, and is left out.
class MetricMeans {
 public:
  void Add(const Metrics& metrics);
  Metrics TakeMeans();  // Starts anew; the names stay.
  Metrics TakeIfAny();  // The same, or nothing where nothing was added.

  void Save(ArchiveWriter archive) const;
  void Load(const ArchiveReader& archive);

 private:
  std::vector<std::string> names_;
  std::vector<double> sums_;
  std::vector<std::uint64_t> counts_;
  bool added_ = false;  // Since they were taken.
};

// The numbers of a loop that are not a component's own. Plain bytes, saved as they are.
struct LoopCounters {
  std::int64_t steps = 0;  // Environment steps learned from.
  std::int64_t slabs = 0;  // Turns of the cycle, whatever it collects.
  std::int64_t episodes = 0;
  std::int64_t attempt = 0;       // Times that collection failed: see CollectorSeed.
  double seconds = 0;             // Wall-clock time over all sittings.
  double training_seconds = 0;    // Of that, collecting and learning.
  std::int64_t reported_at = -1;  // Steps of the last row.

  std::int64_t evaluations = 0;
  std::int64_t evaluated_at = -1;     // Steps of the last evaluation.
  std::int64_t reached_in_a_row = 0;  // Evaluations in a row that reached stop_at_return.
  std::int64_t evaluation_episodes = 0;
  double evaluation_mean = std::numeric_limits<double>::quiet_NaN();
  double evaluation_deviation = std::numeric_limits<double>::quiet_NaN();
  double evaluation_minimum = std::numeric_limits<double>::quiet_NaN();
  double evaluation_maximum = std::numeric_limits<double>::quiet_NaN();

  std::int64_t best_at = -1;  // Steps of the best evaluation.
  double best_mean = -std::numeric_limits<double>::infinity();

  std::uint64_t progress_bytes = 0;  // Of progress.csv and of the event file when this was saved.
  std::uint64_t event_bytes = 0;
};

}  // namespace menger
