#include "menger/networks/pathwise_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

constexpr int kElements = 3;
constexpr int kRows = 4;

// The squashed Gaussian from its formulas, in float64: action and log p(action) of one row.
struct Squashed {
  std::vector<double> action;
  double log_probability = 0;
};

Squashed SquashedByHand(const std::vector<double>& output, const float* noise) {
  Squashed made;
  for (int i = 0; i < kElements; ++i) {
    const double deviation = std::exp(output[kElements + i]);
    const double before = output[i] + deviation * noise[i];
    made.action.push_back(std::tanh(before));
    const double density = std::exp(-0.5 * noise[i] * noise[i]) / (deviation * std::sqrt(2 * M_PI));
    made.log_probability += std::log(density / (1 - made.action[i] * made.action[i]));
  }
  return made;
}

// Weights of a loss that is linear in actions and log-probability.
struct Loss {
  std::vector<float> of_action = RecordedInput(kRows * kElements, 4, 1);
  std::vector<float> of_probability = RecordedInput(kRows, 5, 1);
};

TEST(PathwiseDistributionTest, DrawsOfASquashedGaussianAreThoseOfTheFormula) {
  const auto distribution = MakeSquashedGaussian(kElements);
  std::vector<float> outputs = RecordedInput(kRows * 2 * kElements, 1, 1.5F);
  const std::vector<float> noise = RecordedInput(kRows * kElements, 2, 2);
  std::vector<float> actions(kRows * kElements);
  std::vector<float> log_probability(kRows);
  const Matrix output{outputs.data(), kRows, 2 * kElements, 2 * kElements};
  distribution->Sample(output, noise.data(), actions.data(), log_probability.data());
  for (int row = 0; row < kRows; ++row) {
    const std::vector<double> of_row(output.row(row), output.row(row) + 2 * kElements);
    const Squashed expected = SquashedByHand(of_row, noise.data() + row * kElements);
    EXPECT_NEAR(log_probability[row], expected.log_probability, 1e-4);
    for (int i = 0; i < kElements; ++i) {
      EXPECT_NEAR(actions[row * kElements + i], expected.action[i], 1e-6);
    }
  }
}

TEST(PathwiseDistributionTest, TheGradientOfASquashedGaussianIsThatOfDifferences) {
  const auto distribution = MakeSquashedGaussian(kElements);
  std::vector<float> outputs = RecordedInput(kRows * 2 * kElements, 1, 1.5F);
  const std::vector<float> noise = RecordedInput(kRows * kElements, 2, 2);
  const Loss loss;
  std::vector<float> actions(kRows * kElements);
  std::vector<float> gradients(outputs.size());
  const Matrix output{outputs.data(), kRows, 2 * kElements, 2 * kElements};
  distribution->Sample(output, noise.data(), actions.data(), nullptr);
  distribution->Gradient(output, noise.data(), actions.data(), loss.of_action.data(),
                         loss.of_probability.data(),
                         {gradients.data(), kRows, 2 * kElements, 2 * kElements});
  const auto loss_of = [&](int row, const std::vector<double>& of_row) {
    const Squashed made = SquashedByHand(of_row, noise.data() + row * kElements);
    double sum = loss.of_probability[row] * made.log_probability;
    for (int i = 0; i < kElements; ++i) {
      sum += loss.of_action[row * kElements + i] * made.action[i];
    }
    return sum;
  };
  constexpr double kStep = 1e-6;
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < 2 * kElements; ++i) {
      std::vector<double> up(output.row(row), output.row(row) + 2 * kElements);
      std::vector<double> down = up;
      up[i] += kStep;
      down[i] -= kStep;
      const double slope = (loss_of(row, up) - loss_of(row, down)) / (2 * kStep);
      EXPECT_NEAR(gradients[row * 2 * kElements + i], slope, 1e-4 + 1e-4 * std::abs(slope))
          << row << " " << i;
    }
  }
}

TEST(PathwiseDistributionTest, FarOutsideLogProbabilitiesStayFinite) {
  const auto distribution = MakeSquashedGaussian(1);
  std::vector<float> outputs = {50, 0, -50, -100};  // Mean 50; then a deviation held at e^-20.
  const std::vector<float> noise = {1, 1};
  std::vector<float> actions(2);
  std::vector<float> log_probability(2);
  std::vector<float> gradients(4);
  const Matrix output{outputs.data(), 2, 2, 2};
  distribution->Sample(output, noise.data(), actions.data(), log_probability.data());
  EXPECT_EQ(actions, (std::vector<float>{1, -1}));
  // log(1 - tanh(x)^2) is 2 (log 2 - |x|) there.
  EXPECT_NEAR(log_probability[0], -0.5 - 0.918939 - 2 * (std::log(2.0) - 51), 1e-3);
  EXPECT_NEAR(log_probability[1], -0.5 - 0.918939 + 20 - 2 * (std::log(2.0) - 50), 1e-3);
  const std::vector<float> ones = {1, 1};
  distribution->Gradient(output, noise.data(), actions.data(), ones.data(), ones.data(),
                         {gradients.data(), 2, 2, 2});
  EXPECT_EQ(gradients[3], 0);  // Beyond its limit.
}

TEST(PathwiseDistributionTest, APointIsItsTanhWithTheNoiseClipped) {
  const auto distribution = MakeSquashedPoint(2);
  std::vector<float> outputs = {0.5F, -2.0F};
  const std::vector<float> noise = {0.25F, -0.5F};
  std::vector<float> actions(2);
  const Matrix output{outputs.data(), 1, 2, 2};
  distribution->Sample(output, noise.data(), actions.data(), nullptr);
  EXPECT_NEAR(actions[0], std::tanh(0.5) + 0.25, 1e-6);
  EXPECT_EQ(actions[1], -1);
  const std::vector<float> slope = {2, 3};
  std::vector<float> gradients(2);
  distribution->Mode(output, actions.data());
  distribution->Gradient(output, nullptr, actions.data(), slope.data(), nullptr,
                         {gradients.data(), 1, 2, 2});
  EXPECT_NEAR(gradients[0], 2 / std::pow(std::cosh(0.5), 2), 1e-5);
  EXPECT_NEAR(gradients[1], 3 / std::pow(std::cosh(2.0), 2), 1e-5);
}

}  // namespace
}  // namespace menger
