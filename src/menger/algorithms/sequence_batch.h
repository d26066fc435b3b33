#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/item_weights.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/sequence_writer.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"
#include "menger/networks/update_rule.h"
#include "menger/replay/client/batch_source.h"

namespace menger {

// A batch of sequences as arrays for learning, step-major: what the network is shown to remember
// by, what it is shown to learn from, and of each decision of the windows its n-step return, where
// that goes on, and its weight. Buffers are kept; the learner's thread only.
//
// All windows begin at the same step, so that gradients end there: sequences with fewer steps
// before have padding in front, and is_first says where they begin. Decisions that a window lacks
// have weight 0 and otherwise what does no harm; the weights of all learners' decisions add up to 1
// (times what draws by priority are corrected by).
class SequenceBatch {
 public:
  // `importance_exponent` at the start of a run; it grows to 1 at the end. Borrows both.
  SequenceBatch(const SequenceFormat& format, const PublishedModel& model, double discount,
                double importance_exponent);

  // Takes a batch, which stays as it is while this is used; without items, it has part in the sums
  // of learners alone. `progress` in [0, 1] as for Learn.
  void Take(const ReplayBatch& batch, double progress, UpdateRule& update);

  int sequences() const { return batch_.size(); }
  int rows() const { return format_.length() * sequences(); }
  double rows_of_all() const { return rows_of_all_; }  // Decisions of all learners, no padding.
  double sequences_of_all() const { return sequences_of_all_; }
  int decisions(int sequence) const {
    return batch_.columns[SequenceFormat::kAction].rows[sequence];
  }

  // Shown to remember by: burn_in() steps from the stored states on. Without rows where there are
  // none, or nothing is remembered.
  NetworkInput before() const;
  // Shown to learn from: steps() + 1 steps, of which the first length() are the decisions'.
  // `state` is what the network made of before(); null: the stored states.
  NetworkInput window(const float* state) const;

  // Of the decisions, row = step * sequences + sequence, as in window().
  template <typename T>
  std::span<const T> actions() const {
    return {reinterpret_cast<const T*>(actions_.data()), actions_.size() / sizeof(T)};
  }
  std::span<const float> returns() const { return returns_; }        // Of n steps.
  std::span<const float> bootstraps() const { return bootstraps_; }  // What a next value counts.
  std::span<const std::int32_t> next_rows() const { return next_rows_; }  // Whose value, in window.
  std::span<const float> weights() const { return weights_; }

  // [rows of window(), choices]; null where there are no masks.
  const std::uint8_t* mask() const { return masks_.empty() ? nullptr : masks_.data(); }

 private:
  // Observations or numbers in two parts, before() and then window().
  struct Shown {
    BatchMemory memory;
    const std::byte* before = nullptr;
    const std::byte* window = nullptr;
  };

  int before_rows() const { return format_.burn_in() * sequences(); }
  int window_rows() const { return (format_.steps() + 1) * sequences(); }
  // Observations that a sequence lacks in front.
  int Missing(int sequence) const;

  void Show(int column, bool numbers, Shown& shown) const;
  void MarkBegins();
  void MakeReturns();
  NetworkInput Input(const std::byte* observations, const std::byte* vector, int first_row,
                     int rows) const;

  const SequenceFormat& format_;
  const PublishedModel& model_;
  const double discount_;
  ReplayBatch batch_;
  double rows_of_all_ = 0;
  double sequences_of_all_ = 0;
  ItemWeights item_weights_;
  Shown observations_, vectors_;
  std::vector<std::uint8_t> is_first_;  // [before_rows + window_rows]
  std::vector<std::byte> actions_;
  std::vector<std::uint8_t> masks_;
  std::vector<float> returns_, bootstraps_, weights_;
  std::vector<std::int32_t> next_rows_;
  // Rewards of each decision, [rows, n_step], and how many it has.
  std::vector<float> rewards_;
  std::vector<std::int32_t> counts_;
  std::vector<std::uint8_t> terminated_;
};

}  // namespace menger
