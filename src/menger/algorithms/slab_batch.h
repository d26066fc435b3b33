#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/encoded_batch.h"
#include "menger/algorithms/returns.h"
#include "menger/networks/network.h"
#include "menger/networks/update_rule.h"
#include "menger/tensor/slab.h"

namespace menger {

// One minibatch: dense arrays of `rows` rows, valid until the next gather.
struct Minibatch {
  NetworkInput input;
  const void* actions = nullptr;
  const std::uint8_t* mask = nullptr;  // Null without an action mask.
  std::span<const float> log_probabilities;
  std::span<const float> values;
  std::span<float> advantages;  // May be normalised in place.
  std::span<const float> returns;
  std::span<float> weights;  // 1 for a row that counts, 0 for one that does not.
  int rows = 0;

  // Makes the weights of all learners' minibatches add up to 1.
  void Weigh(UpdateRule& update) const;
};

// The slabs of one update as flat arrays [T, C] (C: environments of all slabs, in order; padding
// left out), with advantages and returns, from which minibatches are gathered. Buffers are kept
// from update to update; nothing is allocated in between. Images are not copied here: minibatches
// gather them, stacks of frames too, from the slabs, which must stay as they are meanwhile.
class SlabBatch {
 public:
  explicit SlabBatch(ActorCritic& model)
      : model_(model), batch_observations_(model.encoder()), scratch_(model.encoder()) {}

  // Encodes and normalises observations, transforms rewards, and computes values of what followed
  // each step with the model's present parameters. All slabs must be as long as the first. Of
  // several learners, all call it together.
  void Prepare(std::span<Slab* const> slabs, UpdateRule& update);

  // What was prepared, for estimates of advantages. Valid until the next Prepare.
  Trajectories trajectories() const;

  // Sets each row's advantage, and its return: advantage + value.
  void EstimateAdvantages(double discount, double lambda);  // Generalised: see returns.h.
  void SetAdvantages(std::span<const float> advantages);    // [T, C]

  int steps() const { return steps_; }
  int columns() const { return columns_; }
  int rows() const { return steps_ * columns_; }
  // Numbers of the rows that count, ascending.
  std::span<const std::int32_t> valid_rows() const { return valid_rows_; }

  // Independent rows, by number.
  Minibatch GatherRows(std::span<const std::int32_t> rows);
  // Whole columns from row 0 to T-1, step-major, for recurrent networks.
  Minibatch GatherSequences(std::span<const std::int32_t> columns);

  // Merges this batch's observations into the model's statistics, with those of other learners;
  // call after learning.
  void UpdateObservationStatistics(UpdateRule& update);

  double mean_value() const;
  double explained_variance()
      const;  // 1 - Var(returns - values) / Var(returns): 1 is perfect, 0 no better than the mean.

 private:
  // Where a column of the batch stands.
  struct Column {
    const Slab* slab;
    int position;
  };

  void CopyColumns(const Slab& slab, int first_column);
  void CopyRow(const Slab& slab, int row, int position, int index);
  void ComputeNextValues(std::span<Slab* const> slabs);
  void AddFinalValues(const Slab& slab, int first_column);
  void Collect(std::span<const std::int32_t> rows);
  void GatherObservations(std::span<const std::int32_t> rows);
  Minibatch View(int rows);

  ActorCritic& model_;
  int steps_ = 0;
  int columns_ = 0;
  std::vector<Column> sources_;  // By column.

  // [T, C] each.
  std::vector<float> numbers_;      // Of encoded observations, normalised.
  std::vector<float> raw_numbers_;  // Encoded only; kept when statistics need them.
  std::vector<std::byte> actions_;
  std::vector<std::uint8_t> masks_;
  std::vector<float> log_probabilities_, values_, next_values_, rewards_, advantages_, returns_,
      weights_;
  std::vector<std::uint8_t> cut_, valid_, is_first_;
  std::vector<float> first_state_;  // [C, state width]: carried into row 0.
  std::vector<std::int32_t> valid_rows_;

  // The gathered minibatch.
  EncodedBatch batch_observations_;
  std::vector<std::byte> batch_actions_;
  std::vector<std::uint8_t> batch_masks_, batch_is_first_;
  std::vector<float> batch_log_probabilities_, batch_values_, batch_advantages_, batch_returns_,
      batch_weights_, batch_state_;
  std::vector<std::int32_t> sequence_rows_;

  // Scratch for values of rows T and of final observations.
  EncodedBatch scratch_;
  std::vector<float> scratch_state_;
  std::vector<std::uint8_t> scratch_is_first_;
  std::vector<std::int32_t> scratch_rows_;
};

}  // namespace menger
