#include "menger/algorithms/item_weights.h"

#include <algorithm>
#include <limits>

#include "menger/algorithms/q_losses.h"

namespace menger {

std::span<const float> ItemWeights::Of(std::span<const SampledItem> items, double progress,
                                       UpdateRule& update) {
  probabilities_.clear();
  double smallest = std::numeric_limits<double>::infinity();
  for (const SampledItem& item : items) {
    probabilities_.push_back(item.probability);
    smallest = std::min(smallest, item.probability);
  }
  smallest = -update.Largest(-smallest);
  weights_.resize(items.size());
  if (!items.empty()) {
    ImportanceWeights(probabilities_, smallest, exponent_ + progress * (1 - exponent_), weights_);
  }
  return weights_;
}

}  // namespace menger
