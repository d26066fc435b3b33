#pragma once

#include <cstdint>
#include <span>

#include "menger/networks/network.h"

namespace menger {

// The mathematics of value-based methods as pure functions of plain arrays, each loss with its
// gradient.
//
// Arrays are dense and have one entry a row; atoms of a distribution follow each other. `weights`
// say how much a row counts: every loss is a sum of weights * the row's loss, and `losses`, where
// there is one, holds the rows' own, without weights. Targets get no gradient.

// returns[i] = sum over j < counts[i] of discount^j * rewards[i * steps + j], and what the value
// after those steps is multiplied by: bootstraps[i] = discount^counts[i], or 0 where `terminated`.
// A row that a time limit cut short has fewer counts, and is not terminated (Mnih et al. 2016).
void NStepReturns(std::span<const float> rewards, int steps, std::span<const std::int32_t> counts,
                  std::span<const std::uint8_t> terminated, double discount,
                  std::span<float> returns, std::span<float> bootstraps);

// (N * probability)^-exponent divided by the largest of the batch, which is that of the smallest
// probability (Schaul et al. 2016, section 3.4); the number of items N goes out of the quotient.
// All 1 for uniform draws.
void ImportanceWeights(std::span<const double> probabilities, double smallest, double exponent,
                       std::span<float> weights);

// What large and small returns are squashed by, and its inverse: h(x) = sign(x) (sqrt(|x| + 1) - 1)
// + epsilon x (Pohlen et al. 2018; Kapturowski et al. 2019, section 2.3). `epsilon` > 0.
double RescaleValue(double value, double epsilon);
double RestoreValue(double rescaled, double epsilon);

// value + advantage - mean over the actions of advantage, for each atom (Wang et al. 2016, eq. 9).
// `advantage` is [rows, actions x atoms], `value` [rows, atoms], `combined` [rows, actions, atoms].
void CombineDuelling(const Matrix& advantage, const Matrix& value, std::span<float> combined);

// The way back: overwrites the gradients of both outputs, given that of `combined`.
void DuellingGradient(std::span<const float> combined_gradient, const Matrix& advantage_gradient,
                      const Matrix& value_gradient);

// Half the squared error, linear beyond an error of `delta` (Huber 1964; with 1 the clipped error
// of Mnih et al. 2015). errors[i] = targets[i] - values[i]; overwrites `gradient` with
// d(loss)/d(value). Returns the loss.
double HuberLoss(std::span<const float> values, std::span<const float> targets,
                 std::span<const float> weights, double delta, std::span<float> errors,
                 std::span<float> gradient);

// Equally spaced values from minimum to maximum, both included.
struct Support {
  float minimum = 0;
  float maximum = 0;
  int atoms = 2;  // At least 2.

  float spacing() const { return (maximum - minimum) / static_cast<float>(atoms - 1); }
  float at(int atom) const { return minimum + spacing() * static_cast<float>(atom); }
};

// probabilities = exp(logits) / sum of them, for one distribution.
void Softmax(std::span<const float> logits, std::span<float> probabilities);

// The expectation of one distribution on the support.
float CategoricalMean(const Support& support, std::span<const float> logits);

// Moves a distribution to reward + bootstrap * support and shares each atom's mass between its two
// neighbours in proportion to their nearness: mass i = sum over j of
// clip(1 - |clip(T z_j) - z_i| / spacing, 0, 1) * p_j (Bellemare et al. 2017, eq. 7). No mass is
// lost where T z_j falls on an atom.
void ProjectCategorical(const Support& support, std::span<const float> probabilities, float reward,
                        float bootstrap, std::span<float> projected);

// -sum of targets * log softmax(logits), rows of `atoms` each. Overwrites `gradient` with
// d(loss)/d(logits). Returns the loss.
double CategoricalCrossEntropy(std::span<const float> logits, std::span<const float> targets,
                               int atoms, std::span<const float> weights, std::span<float> losses,
                               std::span<float> gradient);

// The quantile Huber loss with kappa = 1: the sum over quantiles i, at (i + 1/2) / atoms, of the
// mean over target quantiles j of |tau_i - [u < 0]| * huber(u), u = target_j - quantile_i (Dabney
// et al. 2018, eq. 10). Rows of `atoms` each. Overwrites `gradient` with d(loss)/d(quantiles).
// Returns the loss.
double QuantileHuberLoss(std::span<const float> quantiles, std::span<const float> targets,
                         int atoms, std::span<const float> weights, std::span<float> losses,
                         std::span<float> gradient);

}  // namespace menger
