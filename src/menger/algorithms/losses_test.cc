#include "menger/algorithms/losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

std::vector<float> Normals(int count, std::uint64_t seed, double scale = 1.0) {
  Random random = Random::FromSeed(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(scale * random.Normal());
  return values;
}

// Central differences of a loss written out in float64.
void ExpectDerivative(const std::function<double(const std::vector<double>&)>& loss,
                      const std::vector<float>& at, const std::vector<float>& gradient) {
  std::vector<double> x(at.begin(), at.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double kStep = 1e-6;
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = loss(x);
    x[i] = kept - kStep;
    const double below = loss(x);
    x[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-5) << "row " << i;
  }
}

constexpr int kRows = 64;

TEST(LossesTest, ClippedSurrogateEqualsThePaperAndItsGradientTheDifferenceQuotient) {
  const auto now = Normals(kRows, 1, 0.3);
  const auto old = Normals(kRows, 2, 0.3);
  const auto advantages = Normals(kRows, 3);
  std::vector<float> weights(kRows, 1.0F / (kRows - 1));
  weights[5] = 0;
  std::vector<float> gradient(kRows);
  const auto loss = [&](const std::vector<double>& log_probability) {
    double sum = 0;
    for (int i = 0; i < kRows; ++i) {
      const double ratio = std::exp(log_probability[i] - old[i]);
      sum -=
          weights[i] * std::min(ratio * advantages[i], std::clamp(ratio, 0.8, 1.2) * advantages[i]);
    }
    return sum;
  };
  const auto statistics = ClippedSurrogate(now, old, advantages, weights, 0.2, gradient);
  EXPECT_NEAR(statistics.loss, loss({now.begin(), now.end()}), 1e-5);
  EXPECT_GT(statistics.clip_fraction, 0.1);
  EXPECT_GT(statistics.approximate_kl, 0.0);
  ExpectDerivative(loss, now, gradient);
  EXPECT_EQ(gradient[5], 0.0F);
}

TEST(LossesTest, AnUnchangedPolicyHasNoKlAndNoClipping) {
  const auto now = Normals(kRows, 1);
  const std::vector<float> weights(kRows, 1.0F / kRows);
  std::vector<float> gradient(kRows);
  const auto statistics = ClippedSurrogate(now, now, Normals(kRows, 2), weights, 0.2, gradient);
  EXPECT_EQ(statistics.approximate_kl, 0.0);
  EXPECT_EQ(statistics.clip_fraction, 0.0);
}

TEST(LossesTest, ClippedValueLossIsTheLargerErrorAndItsGradientTheDifferenceQuotient) {
  const auto values = Normals(kRows, 4);
  const auto old = Normals(kRows, 5);
  const auto returns = Normals(kRows, 6);
  const std::vector<float> weights(kRows, 1.0F / kRows);
  std::vector<float> gradient(kRows);
  for (const double clip : {0.0, 0.5}) {
    const auto loss = [&](const std::vector<double>& value) {
      double sum = 0;
      for (int i = 0; i < kRows; ++i) {
        double error = std::pow(value[i] - returns[i], 2);
        if (clip > 0) {
          const double near = old[i] + std::clamp(value[i] - old[i], -clip, clip);
          error = std::max(error, std::pow(near - returns[i], 2));
        }
        sum += 0.5 * weights[i] * error;
      }
      return sum;
    };
    EXPECT_NEAR(ClippedValueLoss(values, old, returns, weights, clip, 1.0, gradient),
                loss({values.begin(), values.end()}), 1e-5);
    ExpectDerivative(loss, values, gradient);
  }
}

TEST(LossesTest, PolicyGradientIsTheAdvantageWeightedScore) {
  const std::vector<float> log_probability = {-1, -2};
  const std::vector<float> advantages = {3, -4};
  const std::vector<float> weights = {0.5, 0.5};
  std::vector<float> gradient(2);
  EXPECT_NEAR(PolicyGradientLoss(log_probability, advantages, weights, gradient), 0.5 * 3 - 0.5 * 8,
              1e-6);
  EXPECT_EQ(gradient, (std::vector<float>{-1.5F, 2.0F}));
}

}  // namespace
}  // namespace menger
