#include "menger/algorithms/losses.h"

#include <algorithm>
#include <cmath>

namespace menger {

SurrogateStatistics ClippedSurrogate(std::span<const float> log_probabilities,
                                     std::span<const float> old_log_probabilities,
                                     std::span<const float> advantages,
                                     std::span<const float> weights, double clip,
                                     std::span<float> gradient) {
  SurrogateStatistics statistics;
  const auto low = static_cast<float>(1.0 - clip);
  const auto high = static_cast<float>(1.0 + clip);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float weight = weights[i];
    if (weight == 0.0F) {
      gradient[i] = 0.0F;
      continue;
    }
    const float log_ratio = log_probabilities[i] - old_log_probabilities[i];
    const float ratio = std::exp(log_ratio);
    const float advantage = advantages[i];
    const float plain = ratio * advantage;
    const float clipped = std::clamp(ratio, low, high) * advantage;
    statistics.loss -= static_cast<double>(weight) * std::min(plain, clipped);
    statistics.approximate_kl += static_cast<double>(weight) * (ratio - 1.0F - log_ratio);
    statistics.clip_fraction += ratio < low || ratio > high ? weight : 0.0F;
    // Where the clipped term is the smaller one, it is constant in the ratio.
    gradient[i] = plain <= clipped ? -weight * plain : 0.0F;
  }
  return statistics;
}

double PolicyGradientLoss(std::span<const float> log_probabilities,
                          std::span<const float> advantages, std::span<const float> weights,
                          std::span<float> gradient) {
  double loss = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    gradient[i] = -weights[i] * advantages[i];
    if (weights[i] != 0.0F) loss += static_cast<double>(gradient[i]) * log_probabilities[i];
  }
  return loss;
}

double ClippedValueLoss(std::span<const float> values, std::span<const float> old_values,
                        std::span<const float> returns, std::span<const float> weights, double clip,
                        double coefficient, std::span<float> gradient) {
  double loss = 0;
  const auto bound = static_cast<float>(clip);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float weight = weights[i];
    if (weight == 0.0F) {
      gradient[i] = 0.0F;
      continue;
    }
    float error = values[i] - returns[i];
    float slope = error;
    if (clip > 0) {
      const float change = values[i] - old_values[i];
      const float clipped_error = old_values[i] + std::clamp(change, -bound, bound) - returns[i];
      if (clipped_error * clipped_error > error * error) {
        error = clipped_error;
        slope = change >= -bound && change <= bound ? clipped_error : 0.0F;
      }
    }
    loss += 0.5 * weight * static_cast<double>(error) * error;
    gradient[i] = static_cast<float>(coefficient) * weight * slope;
  }
  return loss;
}

double WeightedSum(std::span<const float> values, std::span<const float> weights) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0.0F) sum += static_cast<double>(weights[i]) * values[i];
  }
  return sum;
}

}  // namespace menger
