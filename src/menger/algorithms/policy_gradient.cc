#include "menger/algorithms/policy_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace menger {

void PolicyGradient::Evaluate(const Minibatch& minibatch) {
  outputs_ =
      minibatch.rows > 0 ? model_.network().Forward(minibatch.input) : std::span<const Matrix>();
  for (auto* const column : {&log_probabilities_, &entropies_, &values_, &log_probability_gradient_,
                             &entropy_gradient_, &value_gradient_}) {
    column->resize(minibatch.rows);
  }
  if (minibatch.rows == 0) return;
  model_.distribution().Evaluate(outputs_.first(outputs_.size() - 1), minibatch.mask,
                                 minibatch.actions, log_probabilities_.data(), entropies_.data());
  for (int row = 0; row < minibatch.rows; ++row) values_[row] = *outputs_.back().row(row);
}

void PolicyGradient::Backward(const Minibatch& minibatch, double entropy_coefficient) {
  if (minibatch.rows == 0) {
    std::ranges::fill(model_.network().gradients(), 0.0F);
    return;
  }
  const auto coefficient = static_cast<float>(entropy_coefficient);
  for (int row = 0; row < minibatch.rows; ++row) {
    entropy_gradient_[row] = -coefficient * minibatch.weights[row];
  }
  const std::span<const Matrix> gradients = output_gradients_.Like(outputs_);
  model_.distribution().Gradient(outputs_.first(outputs_.size() - 1), minibatch.mask,
                                 minibatch.actions, log_probability_gradient_, entropy_gradient_,
                                 gradients.first(gradients.size() - 1));
  std::copy(value_gradient_.begin(), value_gradient_.end(), gradients.back().data);
  model_.network().Backward(gradients);
}

void NormaliseAdvantages(std::span<float> advantages, std::span<const float> weights,
                         UpdateRule& update) {
  std::array<double, 3> sums = {0, 0, 0};  // Count, sum, sum of squares.
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    if (weights[i] == 0.0F) continue;
    sums[0] += 1;
    sums[1] += advantages[i];
    sums[2] += static_cast<double>(advantages[i]) * advantages[i];
  }
  update.Sum(sums);
  if (sums[0] < 2) return;
  const double mean = sums[1] / sums[0];
  const double variance = std::max(0.0, sums[2] - sums[1] * mean) / (sums[0] - 1);
  const double scale = 1.0 / (std::sqrt(variance) + 1e-8);
  for (float& advantage : advantages) advantage = static_cast<float>((advantage - mean) * scale);
}

}  // namespace menger
