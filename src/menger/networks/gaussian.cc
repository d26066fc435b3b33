#include "menger/networks/gaussian.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "menger/base/error.h"
#include "menger/networks/kernels/elementary.h"

namespace menger {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;

void CheckUnmasked(const std::uint8_t* mask) {
  if (mask != nullptr) throw InvalidArgument("an action mask was given for a Box action");
}

// How many standard deviations the action lies above the mean.
float Score(float action, float mean, float log_std) { return (action - mean) * Exp(-log_std); }

}  // namespace

GaussianDistribution::GaussianDistribution(int elements, double initial_log_std, ActionRange range)
    : elements_(elements), initial_log_std_(initial_log_std), range_(std::move(range)) {
  range_.middle.resize(elements, 0.0F);
  range_.half.resize(elements, 1.0F);
}

void GaussianDistribution::ToRange(float* action) const {
  for (int i = 0; i < elements_; ++i) action[i] = range_.middle[i] + range_.half[i] * action[i];
}

float GaussianDistribution::LogProbability(const float* action, const float* mean,
                                           const float* log_std) const {
  float sum = 0;
  for (int i = 0; i < elements_; ++i) {
    const float score = Score(FromRange(action, i), mean[i], log_std[i]);
    sum += -0.5f * score * score - log_std[i] - kHalfLogTwoPi;
  }
  return sum;
}

std::vector<HeadSpec> GaussianDistribution::heads() const {
  return {{.name = "policy", .width = elements_, .gain = 0.01},
          {.name = "log_std", .width = elements_, .constant = true, .bias = initial_log_std_}};
}

void GaussianDistribution::Sample(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                  const CounterRandom& random, std::span<const int> environments,
                                  std::int64_t step, void* actions, float* log_probability) const {
  CheckUnmasked(mask);
  auto* action = static_cast<float*>(actions);
  for (int row = 0; row < outputs[0].rows; ++row, action += elements_) {
    const float* const mean = outputs[0].row(row);
    const float* const log_std = outputs[1].row(row);
    std::copy_n(mean, elements_, action);
    if (environments[row] >= 0) {
      std::array<std::uint32_t, 4> words{};  // Two pairs of normal numbers a draw.
      for (int i = 0; i < elements_; i += 2) {
        if (i % 4 == 0) words = random.Draw(environments[row], step, i / 4);
        const auto [first, second] = CounterRandom::Normals(words[i % 4], words[i % 4 + 1]);
        action[i] += first * Exp(log_std[i]);
        if (i + 1 < elements_) action[i + 1] += second * Exp(log_std[i + 1]);
      }
    }
    ToRange(action);
    log_probability[row] = LogProbability(action, mean, log_std);
  }
}

void GaussianDistribution::Mode(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                void* actions) const {
  CheckUnmasked(mask);
  auto* action = static_cast<float*>(actions);
  for (int row = 0; row < outputs[0].rows; ++row, action += elements_) {
    std::copy_n(outputs[0].row(row), elements_, action);
    ToRange(action);
  }
}

void GaussianDistribution::Evaluate(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                    const void* actions, float* log_probability,
                                    float* entropy) const {
  CheckUnmasked(mask);
  const auto* action = static_cast<const float*>(actions);
  for (int row = 0; row < outputs[0].rows; ++row, action += elements_) {
    const float* const log_std = outputs[1].row(row);
    log_probability[row] = LogProbability(action, outputs[0].row(row), log_std);
    entropy[row] = 0;
    for (int i = 0; i < elements_; ++i) entropy[row] += 0.5f + kHalfLogTwoPi + log_std[i];
  }
}

void GaussianDistribution::Gradient(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                    const void* actions,
                                    std::span<const float> log_probability_gradient,
                                    std::span<const float> entropy_gradient,
                                    std::span<const Matrix> output_gradients) const {
  CheckUnmasked(mask);
  const auto* action = static_cast<const float*>(actions);
  for (int row = 0; row < outputs[0].rows; ++row, action += elements_) {
    const float* const mean = outputs[0].row(row);
    const float* const log_std = outputs[1].row(row);
    float* const of_mean = output_gradients[0].row(row);
    float* const of_log_std = output_gradients[1].row(row);
    const float of_probability = log_probability_gradient[row];
    for (int i = 0; i < elements_; ++i) {
      const float score = Score(FromRange(action, i), mean[i], log_std[i]);
      of_mean[i] = of_probability * score * Exp(-log_std[i]);
      of_log_std[i] = of_probability * (score * score - 1.0f) + entropy_gradient[row];
    }
  }
}

}  // namespace menger
