#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/algorithms/item_weights.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/transition_writer.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"
#include "menger/networks/update_rule.h"
#include "menger/replay/client/batch_source.h"

namespace menger {

// A batch of n-step transitions as arrays for learning: observations as the network takes them now,
// n-step returns, and weights that add up to 1 over all learners (times what draws by priority are
// corrected by). Buffers are kept; the learner's thread only.
class TransitionBatch {
 public:
  // `importance_exponent` at the start of a run; it grows to 1 at the end. Borrows both.
  TransitionBatch(const TransitionFormat& format, const PublishedModel& model, double discount,
                  double importance_exponent);

  // Takes a batch, which stays as it is while this is used; without rows, it has part in the sums
  // of learners alone. `progress` in [0, 1] as for Learn.
  void Take(const ReplayBatch& batch, double progress, UpdateRule& update);

  int rows() const { return batch_.size(); }
  std::int64_t rows_before() const { return rows_before_; }  // Those of learners before this one.
  double rows_of_all() const { return rows_of_all_; }

  NetworkInput observations() const { return InputOf(shown_); }
  NetworkInput next_observations() const { return InputOf(shown_next_); }
  template <typename T>
  const T* actions() const {
    return batch_.column<T>(TransitionFormat::kAction);
  }
  const std::uint8_t* next_mask() const;  // [rows, choices]; null where there are no masks.

  // [rows]
  std::span<const float> returns() const { return returns_; }        // Of n steps.
  std::span<const float> bootstraps() const { return bootstraps_; }  // What a next value counts.
  std::span<const float> weights() const { return weights_; }

 private:
  // What was seen, image or numbers, and the numbers beside an image; the latter only where there
  // are some.
  struct Shown {
    const void* observations = nullptr;
    const float* vector = nullptr;
    BatchMemory normalised;
  };

  void Show(int observations, int vector, Shown& shown) const;
  const void* Normalised(int column, BatchMemory& memory) const;
  NetworkInput InputOf(const Shown& shown) const {
    return {.observations = shown.observations, .vector = shown.vector, .rows = rows()};
  }

  const TransitionFormat& format_;
  const PublishedModel& model_;
  const double discount_;
  ReplayBatch batch_;
  std::int64_t rows_before_ = 0;
  double rows_of_all_ = 0;
  Shown shown_;
  Shown shown_next_;
  ItemWeights item_weights_;
  std::vector<float> returns_, bootstraps_, weights_;
};

}  // namespace menger
