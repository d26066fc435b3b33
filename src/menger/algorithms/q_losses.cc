#include "menger/algorithms/q_losses.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "menger/networks/kernels/elementary.h"

// Compiled with -O3: loops over lanes are meant to be vectorised.
namespace menger {
namespace {

// Sums are taken in eight lanes side by side: vectors can do that, and always in the same order.
constexpr int kLanes = 8;
using Lanes = float[kLanes];

template <typename Function>
void OverLanes(std::size_t size, Function function) {
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) function(i + lane, lane);
  }
  for (int lane = 0; i < size; ++i, ++lane) function(i, lane);
}

float Total(const Lanes& sums) {
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

float Largest(std::span<const float> values) {
  Lanes largest;
  std::fill_n(largest, kLanes, values[0]);
  const float* const data = values.data();
  OverLanes(values.size(), [&](std::size_t i, int lane) {
    largest[lane] = data[i] > largest[lane] ? data[i] : largest[lane];
  });
  return *std::max_element(largest, largest + kLanes);
}

// weights = exp(logits - largest); returns their sum.
float Exponentials(std::span<const float> logits, float largest, std::span<float> weights) {
  Lanes sums = {};
  const float* const from = logits.data();
  float* const to = weights.data();
  OverLanes(logits.size(), [&](std::size_t i, int lane) {
    to[i] = Exp(from[i] - largest);
    sums[lane] += to[i];
  });
  return Total(sums);
}

}  // namespace

void NStepReturns(std::span<const float> rewards, int steps, std::span<const std::int32_t> counts,
                  std::span<const std::uint8_t> terminated, double discount,
                  std::span<float> returns, std::span<float> bootstraps) {
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const float* const of_row = rewards.data() + row * static_cast<std::size_t>(steps);
    double sum = 0;
    double power = 1;
    for (int j = 0; j < counts[row]; ++j) {
      sum += power * of_row[j];
      power *= discount;
    }
    returns[row] = static_cast<float>(sum);
    bootstraps[row] = terminated[row] != 0 ? 0.0F : static_cast<float>(power);
  }
}

void ImportanceWeights(std::span<const double> probabilities, double smallest, double exponent,
                       std::span<float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(std::pow(smallest / probabilities[i], exponent));
  }
}

double RescaleValue(double value, double epsilon) {
  return std::copysign(std::sqrt(std::abs(value) + 1) - 1, value) + epsilon * value;
}

double RestoreValue(double rescaled, double epsilon) {
  const double root = std::sqrt(1 + 4 * epsilon * (std::abs(rescaled) + 1 + epsilon));
  const double shifted = (root - 1) / (2 * epsilon);
  return std::copysign(shifted * shifted - 1, rescaled);
}

void CombineDuelling(const Matrix& advantage, const Matrix& value, std::span<float> combined) {
  const int atoms = value.columns;
  const int actions = advantage.columns / atoms;
  float* out = combined.data();
  for (int row = 0; row < advantage.rows; ++row) {
    const float* const from = advantage.row(row);
    for (int atom = 0; atom < atoms; ++atom) {
      float sum = 0;
      for (int action = 0; action < actions; ++action) sum += from[action * atoms + atom];
      const float base = value.row(row)[atom] - sum / static_cast<float>(actions);
      for (int action = 0; action < actions; ++action) {
        out[action * atoms + atom] = base + from[action * atoms + atom];
      }
    }
    out += advantage.columns;
  }
}

void DuellingGradient(std::span<const float> combined_gradient, const Matrix& advantage_gradient,
                      const Matrix& value_gradient) {
  const int atoms = value_gradient.columns;
  const int actions = advantage_gradient.columns / atoms;
  const float* from = combined_gradient.data();
  for (int row = 0; row < advantage_gradient.rows; ++row) {
    float* const to = advantage_gradient.row(row);
    for (int atom = 0; atom < atoms; ++atom) {
      float sum = 0;
      for (int action = 0; action < actions; ++action) sum += from[action * atoms + atom];
      value_gradient.row(row)[atom] = sum;
      const float mean = sum / static_cast<float>(actions);
      for (int action = 0; action < actions; ++action) {
        to[action * atoms + atom] = from[action * atoms + atom] - mean;
      }
    }
    from += advantage_gradient.columns;
  }
}

double HuberLoss(std::span<const float> values, std::span<const float> targets,
                 std::span<const float> weights, double delta, std::span<float> errors,
                 std::span<float> gradient) {
  const auto bound = static_cast<float>(delta);
  double loss = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    errors[i] = targets[i] - values[i];
    const float clipped = std::clamp(errors[i], -bound, bound);
    loss += static_cast<double>(weights[i]) * clipped * (errors[i] - 0.5F * clipped);
    gradient[i] = -weights[i] * clipped;
  }
  return loss;
}

void Softmax(std::span<const float> logits, std::span<float> probabilities) {
  const float sum = Exponentials(logits, Largest(logits), probabilities);
  for (float& probability : probabilities) probability /= sum;
}

float CategoricalMean(const Support& support, std::span<const float> logits) {
  const float largest = Largest(logits);
  const float spacing = support.spacing();
  Lanes masses = {};
  Lanes sums = {};
  const float* const from = logits.data();
  OverLanes(logits.size(), [&](std::size_t i, int lane) {
    const float weight = Exp(from[i] - largest);
    masses[lane] += weight;
    sums[lane] += weight * static_cast<float>(static_cast<int>(i));
  });
  return support.minimum + spacing * (Total(sums) / Total(masses));
}

void ProjectCategorical(const Support& support, std::span<const float> probabilities, float reward,
                        float bootstrap, std::span<float> projected) {
  std::fill(projected.begin(), projected.end(), 0.0F);
  const float spacing = support.spacing();
  for (int j = 0; j < support.atoms; ++j) {
    const float moved =
        std::clamp(reward + bootstrap * support.at(j), support.minimum, support.maximum);
    const float place =
        std::min((moved - support.minimum) / spacing, static_cast<float>(support.atoms - 1));
    // The last atom counts as the upper neighbour: so there always is one.
    const int lower = std::min(static_cast<int>(place), support.atoms - 2);
    const float upper_share = place - static_cast<float>(lower);
    projected[lower] += probabilities[j] * (1.0F - upper_share);
    projected[lower + 1] += probabilities[j] * upper_share;
  }
}

double CategoricalCrossEntropy(std::span<const float> logits, std::span<const float> targets,
                               int atoms, std::span<const float> weights, std::span<float> losses,
                               std::span<float> gradient) {
  const auto size = static_cast<std::size_t>(atoms);
  double total = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    const auto of_row = logits.subspan(row * size, size);
    const float* const logit = of_row.data();
    const float* const target = targets.data() + row * size;
    float* const slope = gradient.data() + row * size;
    const float largest = Largest(of_row);
    const float sum = Exponentials(of_row, largest, gradient.subspan(row * size, size));
    const float log_sum = largest + std::log(sum);
    Lanes row_losses = {};
    Lanes masses = {};
    OverLanes(size, [&](std::size_t i, int lane) {
      row_losses[lane] += target[i] * (log_sum - logit[i]);
      masses[lane] += target[i];
    });
    const float scale = Total(masses) / sum;
    const float weight = weights[row];
    for (std::size_t i = 0; i < size; ++i) slope[i] = weight * (slope[i] * scale - target[i]);
    losses[row] = Total(row_losses);
    total += static_cast<double>(weight) * losses[row];
  }
  return total;
}

double QuantileHuberLoss(std::span<const float> quantiles, std::span<const float> targets,
                         int atoms, std::span<const float> weights, std::span<float> losses,
                         std::span<float> gradient) {
  const auto size = static_cast<std::size_t>(atoms);
  const float share = 1.0F / static_cast<float>(atoms);
  double total = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    const float* const target = targets.data() + row * size;
    float row_loss = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const float quantile = quantiles[row * size + i];
      const float tau = (static_cast<float>(i) + 0.5F) * share;
      Lanes sums = {};
      Lanes slopes = {};
      OverLanes(size, [&](std::size_t j, int lane) {
        const float error = target[j] - quantile;
        const float asymmetry = error < 0.0F ? 1.0F - tau : tau;
        const float above = error < -1.0F ? -1.0F : error;
        const float clipped = above > 1.0F ? 1.0F : above;
        const float slope = asymmetry * clipped;
        sums[lane] += slope * (error - 0.5F * clipped);  // Huber's, without a branch.
        slopes[lane] += slope;
      });
      row_loss += Total(sums) * share;
      gradient[row * size + i] = -weights[row] * Total(slopes) * share;
    }
    losses[row] = row_loss;
    total += static_cast<double>(weights[row]) * row_loss;
  }
  return total;
}

}  // namespace menger
