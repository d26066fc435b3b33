#pragma once

#include <span>

namespace menger {

// Losses of policy-gradient methods as pure functions of plain arrays, each with its gradient.
// Arrays have one entry a row. `weights` say how much a row counts: 1 / (rows that count), or 0 for
// a row that does not. Every loss is a weighted sum.

// What a policy update did to the probabilities of the actions taken.
struct SurrogateStatistics {
  double loss = 0;
  double approximate_kl =
      0;  // Mean of (ratio - 1) - log ratio: Schulman's low-variance estimate, never negative.
  double clip_fraction = 0;  // Share of rows whose ratio left [1 - clip, 1 + clip].
};

// PPO's clipped surrogate (Schulman et al. 2017, eq. 7), to be minimised: -min(ratio A,
// clamp(ratio, 1-clip, 1+clip) A). Overwrites `gradient` with d(loss)/d(log_probability).
SurrogateStatistics ClippedSurrogate(std::span<const float> log_probabilities,
                                     std::span<const float> old_log_probabilities,
                                     std::span<const float> advantages,
                                     std::span<const float> weights, double clip,
                                     std::span<float> gradient);

// The policy gradient's surrogate: -log_probability A. Returns the loss; overwrites `gradient` with
// its derivative.
double PolicyGradientLoss(std::span<const float> log_probabilities,
                          std::span<const float> advantages, std::span<const float> weights,
                          std::span<float> gradient);

// Half the squared error to the returns. With clip > 0 the larger of it and the error of the value
// clipped to within
// +-clip of the old one. Overwrites `gradient` with coefficient * d(loss)/d(value); the loss
// returned has no coefficient.
double ClippedValueLoss(std::span<const float> values, std::span<const float> old_values,
                        std::span<const float> returns, std::span<const float> weights, double clip,
                        double coefficient, std::span<float> gradient);

// Sum of weights * values.
double WeightedSum(std::span<const float> values, std::span<const float> weights);

}  // namespace menger
