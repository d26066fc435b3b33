#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/replay_algorithm.h"
#include "menger/base/clock.h"
#include "menger/networks/update_rule.h"
#include "menger/replay/client/batch_source.h"
#include "menger/replay/client/replay_client.h"
#include "menger/training/learning/replay_table.h"

namespace menger {

// How many versions before the newest, when they were drawn, the items were made that were learned
// from.
struct VersionLag {
  std::int64_t items = 0;
  double sum = 0;
  std::uint64_t most = 0;

  void Add(const VersionLag& other) {
    items += other.items;
    sum += other.sum;
    most = std::max(most, other.most);
  }
  double mean() const { return items == 0 ? NAN : sum / static_cast<double>(items); }
};

// Draws batches of one replay table, learns from them and writes their priorities back: what a
// learner does, whoever fills the table. Borrows the client, which outlives it, and the algorithm.
// One thread.
class ReplayTrainer {
 public:
  ReplayTrainer(const ReplayOptions& options, const ReplayLearnerContext& context,
                ReplayClient& client, int table, ReplayAlgorithm& algorithm);

  // Whether a batch was drawn that was not learned from.
  bool has_batch() const { return has_batch_; }

  // Draws one, whole, unless there is one; false if nobody may draw so many until the deadline.
  bool Draw(const Deadline& deadline);
  const std::string& why_none() const { return why_none_; }  // Why Draw was false.

  // An update from the batch that was drawn. `draw_next`: another may be drawn meanwhile, or, where
  // priorities decide, once they are known; where nobody may draw it, there is none after this.
  Metrics Learn(bool draw_next, UpdateRule& update, double progress);

  // Of the batch that was learned from last, by its steps' oldest versions.
  const VersionLag& lag() const { return lag_; }

  // Gives back what batches hold of the table: before it is written to by the same thread.
  void Release() { batches_.Release(); }

 private:
  void MeasureLag(std::span<const SampledItem> items);
  void UpdatePriorities(std::span<const SampledItem> items);

  const bool prioritised_;
  const bool prefetches_;
  const int count_;
  const std::optional<std::uint64_t> staleness_max_;
  const std::chrono::nanoseconds patience_;
  ReplayClient& client_;
  const int table_;
  ReplayAlgorithm& algorithm_;
  BatchSource batches_;
  std::vector<PriorityUpdate> priorities_;
  std::uint64_t version_ = 0;  // As published when the batch was drawn.
  VersionLag lag_;
  bool has_batch_ = false;
  std::string why_none_;
};

// Nothing else waits for so long: what does is broken. A served table is given its patience, too.
std::chrono::nanoseconds ReplayPatience(const ReplayOptions& options);

}  // namespace menger
