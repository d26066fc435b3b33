#include "menger/networks/pathwise_distribution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "menger/base/error.h"
#include "menger/networks/kernels/elementary.h"

namespace menger {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742F;
constexpr float kLogTwo = 0.693147180559945309F;
constexpr float kLogStdMin = -20;
constexpr float kLogStdMax = 2;

float Tanh(float x) { return 1.0F - 2.0F / (Exp(2.0F * x) + 1.0F); }

// log(1 - tanh(x)^2) without the difference, which is 0 in float32 from |x| = 9 on.
float LogSquashSlope(float x) {
  const float size = std::abs(x);
  return 2.0F * (kLogTwo - size - Log(1.0F + Exp(-2.0F * size)));
}

float Clamped(float log_std) { return std::clamp(log_std, kLogStdMin, kLogStdMax); }

class SquashedGaussian final : public PathwiseDistribution {
 public:
  explicit SquashedGaussian(int elements) : PathwiseDistribution(elements) {}

  HeadSpec head() const override { return {.name = "policy", .width = 2 * elements()}; }

  void Sample(const Matrix& output, const float* noise, float* actions,
              float* log_probability) const override {
    const int size = elements();
    for (int row = 0; row < output.rows; ++row, noise += size, actions += size) {
      const float* const mean = output.row(row);
      const float* const log_std = mean + size;
      float sum = 0;
      for (int i = 0; i < size; ++i) {
        const float scale = Clamped(log_std[i]);
        const float before = mean[i] + Exp(scale) * noise[i];
        actions[i] = Tanh(before);
        sum -= 0.5F * noise[i] * noise[i] + scale + kHalfLogTwoPi + LogSquashSlope(before);
      }
      if (log_probability != nullptr) log_probability[row] = sum;
    }
  }

  void Mode(const Matrix& output, float* actions) const override {
    for (int row = 0; row < output.rows; ++row) {
      for (int i = 0; i < elements(); ++i) *actions++ = Tanh(output.row(row)[i]);
    }
  }

  // With the noise given, log p changes with the squash alone, by 2 tanh, and by -1 with log_std.
  void Gradient(const Matrix& output, const float* noise, const float* actions,
                const float* action_gradient, const float* log_probability_gradient,
                const Matrix& output_gradient) const override {
    const int size = elements();
    for (int row = 0; row < output.rows; ++row) {
      const float* const log_std = output.row(row) + size;
      float* const of_mean = output_gradient.row(row);
      float* const of_log_std = of_mean + size;
      const float of_probability =
          log_probability_gradient == nullptr ? 0.0F : log_probability_gradient[row];
      for (int i = 0; i < size; ++i) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * size + i;
        const float action = actions[at];
        of_mean[i] = action_gradient[at] * (1.0F - action * action) + of_probability * 2 * action;
        const bool held = log_std[i] <= kLogStdMin || log_std[i] >= kLogStdMax;
        of_log_std[i] = held ? 0.0F : of_mean[i] * Exp(log_std[i]) * noise[at] - of_probability;
      }
    }
  }
};

class SquashedPoint final : public PathwiseDistribution {
 public:
  explicit SquashedPoint(int elements) : PathwiseDistribution(elements) {}

  HeadSpec head() const override { return {.name = "policy", .width = elements()}; }

  void Sample(const Matrix& output, const float* noise, float* actions,
              float* log_probability) const override {
    if (log_probability != nullptr) throw Internal("a point has no log-probability");
    Mode(output, actions);
    const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(output.rows) * elements();
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      actions[i] = std::clamp(actions[i] + noise[i], -1.0F, 1.0F);
    }
  }

  void Mode(const Matrix& output, float* actions) const override {
    for (int row = 0; row < output.rows; ++row) {
      for (int i = 0; i < elements(); ++i) *actions++ = Tanh(output.row(row)[i]);
    }
  }

  void Gradient(const Matrix& output, const float* /*noise*/, const float* /*actions*/,
                const float* action_gradient, const float* /*log_probability_gradient*/,
                const Matrix& output_gradient) const override {
    for (int row = 0; row < output.rows; ++row) {
      for (int i = 0; i < elements(); ++i) {
        const float action = Tanh(output.row(row)[i]);
        output_gradient.row(row)[i] = *action_gradient++ * (1.0F - action * action);
      }
    }
  }
};

}  // namespace

std::unique_ptr<PathwiseDistribution> MakeSquashedGaussian(int elements) {
  return std::make_unique<SquashedGaussian>(elements);
}

std::unique_ptr<PathwiseDistribution> MakeSquashedPoint(int elements) {
  return std::make_unique<SquashedPoint>(elements);
}

}  // namespace menger
