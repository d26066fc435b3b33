#pragma once

#include <span>
#include <vector>

#include "menger/networks/update_rule.h"
#include "menger/replay/sample.h"

namespace menger {

// What items that were drawn by priority count, so that learning is as from uniform draws (Schaul
// et al. 2016, section 3.4): at most 1, over the batches of all learners. Buffers are kept; one
// thread.
class ItemWeights {
 public:
  // `exponent` at the start of a run; it grows to 1, the whole correction, at the end.
  explicit ItemWeights(double exponent) : exponent_(exponent) {}

  // One an item, until the next call. All learners call it together.
  std::span<const float> Of(std::span<const SampledItem> items, double progress,
                            UpdateRule& update);

 private:
  const double exponent_;
  std::vector<double> probabilities_;
  std::vector<float> weights_;
};

}  // namespace menger
