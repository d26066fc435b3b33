#include "menger/algorithms/q_losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "menger/algorithms/action_values.h"
#include "menger/base/error.h"
#include "menger/base/random.h"

namespace menger {
namespace {

using Doubles = std::vector<double>;

std::vector<float> Normals(std::size_t count, std::uint64_t seed, double scale = 1.0) {
  Random random = Random::FromSeed(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(scale * random.Normal());
  return values;
}

// Central differences of a loss written out in float64.
void ExpectDerivative(const std::function<double(const Doubles&)>& loss,
                      const std::vector<float>& at, const std::vector<float>& gradient) {
  Doubles x(at.begin(), at.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double kStep = 1e-6;
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = loss(x);
    x[i] = kept - kStep;
    const double below = loss(x);
    x[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-5) << "entry " << i;
  }
}

double Huber(double error) {
  return std::abs(error) <= 1 ? 0.5 * error * error : std::abs(error) - 0.5;
}

TEST(QLossesTest, NStepReturnsAreDiscountedSumsThatEndWhereTheRewardsDo) {
  const std::vector<float> rewards = {1, 2, 4, /**/ 1, 2, 0, /**/ 8, 0, 0};
  const std::vector<std::int32_t> counts = {3, 2, 1};
  const std::vector<std::uint8_t> terminated = {0, 0, 1};
  std::vector<float> returns(3);
  std::vector<float> bootstraps(3);
  NStepReturns(rewards, 3, counts, terminated, 0.5, returns, bootstraps);
  EXPECT_EQ(returns, (std::vector<float>{1 + 1 + 1, 1 + 1, 8}));
  EXPECT_EQ(bootstraps, (std::vector<float>{0.125F, 0.25F, 0}));  // Cut short: discount^k stays.
}

TEST(QLossesTest, ImportanceWeightsEqualThePaperAndAreOneForUniformDraws) {
  const Doubles probabilities = {0.1, 0.02, 0.3};
  constexpr double kItems = 50;
  constexpr double kExponent = 0.7;
  std::vector<float> weights(3);
  ImportanceWeights(probabilities, 0.02, kExponent, weights);
  const double largest = std::pow(kItems * 0.02, -kExponent);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(weights[i], std::pow(kItems * probabilities[i], -kExponent) / largest, 1e-6);
  }
  ImportanceWeights(Doubles(3, 1.0 / 7), 1.0 / 7, kExponent, weights);
  EXPECT_EQ(weights, std::vector<float>(3, 1.0F));
}

constexpr int kRows = 3;
constexpr int kActions = 4;
constexpr int kAtoms = 5;

Matrix AsMatrix(std::vector<float>& values, int columns) {
  return {.data = values.data(),
          .rows = static_cast<int>(values.size()) / columns,
          .columns = columns,
          .stride = columns};
}

TEST(QLossesTest, DuellingIsValuePlusAdvantageLessItsMeanForEachAtomAndItsGradientTheQuotient) {
  auto advantage = Normals(kRows * kActions * kAtoms, 1);
  auto value = Normals(kRows * kAtoms, 2);
  const auto slope = Normals(advantage.size(), 3);  // d(loss)/d(combined)
  const auto combined = [&](const Doubles& a, const Doubles& v) {
    Doubles out(a.size());
    for (int row = 0; row < kRows; ++row) {
      for (int atom = 0; atom < kAtoms; ++atom) {
        double mean = 0;
        for (int k = 0; k < kActions; ++k)
          mean += a[(row * kActions + k) * kAtoms + atom] / kActions;
        for (int k = 0; k < kActions; ++k) {
          const int i = (row * kActions + k) * kAtoms + atom;
          out[i] = v[row * kAtoms + atom] + a[i] - mean;
        }
      }
    }
    return out;
  };
  const auto loss = [&](const Doubles& a, const Doubles& v) {
    const Doubles out = combined(a, v);
    return std::inner_product(out.begin(), out.end(), slope.begin(), 0.0);
  };
  const Doubles a(advantage.begin(), advantage.end());
  const Doubles v(value.begin(), value.end());

  std::vector<float> out(advantage.size());
  CombineDuelling(AsMatrix(advantage, kActions * kAtoms), AsMatrix(value, kAtoms), out);
  const Doubles expected = combined(a, v);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);

  std::vector<float> advantage_gradient(advantage.size());
  std::vector<float> value_gradient(value.size());
  DuellingGradient(slope, AsMatrix(advantage_gradient, kActions * kAtoms),
                   AsMatrix(value_gradient, kAtoms));
  ExpectDerivative([&](const Doubles& x) { return loss(x, v); }, advantage, advantage_gradient);
  ExpectDerivative([&](const Doubles& x) { return loss(a, x); }, value, value_gradient);
}

TEST(QLossesTest, HuberLossIsQuadraticNearAndLinearFarAndItsGradientTheQuotient) {
  const auto values = Normals(32, 4, 2.0);
  const auto targets = Normals(32, 5, 2.0);
  std::vector<float> weights(32, 1.0F / 31);
  weights[7] = 0;
  for (const double delta : {0.5, 1.0, std::numeric_limits<double>::infinity()}) {
    const auto loss = [&](const Doubles& x) {
      double sum = 0;
      for (int i = 0; i < 32; ++i) {
        const double size = std::abs(targets[i] - x[i]);
        sum += weights[i] * (size <= delta ? size * size / 2 : delta * (size - delta / 2));
      }
      return sum;
    };
    std::vector<float> errors(32);
    std::vector<float> gradient(32);
    EXPECT_NEAR(HuberLoss(values, targets, weights, delta, errors, gradient),
                loss({values.begin(), values.end()}), 1e-5);
    ExpectDerivative(loss, values, gradient);
    EXPECT_EQ(errors[3], targets[3] - values[3]);
  }
}

// Equation 7 of the C51 paper as it stands, in float64.
Doubles Projected(const Support& support, const std::vector<float>& probabilities, double reward,
                  double bootstrap) {
  const double spacing =
      (static_cast<double>(support.maximum) - support.minimum) / (support.atoms - 1);
  Doubles out(support.atoms, 0.0);
  for (int i = 0; i < support.atoms; ++i) {
    for (int j = 0; j < support.atoms; ++j) {
      const double moved = std::clamp<double>(reward + bootstrap * (support.minimum + j * spacing),
                                              support.minimum, support.maximum);
      const double distance = std::abs(moved - (support.minimum + i * spacing)) / spacing;
      out[i] += std::clamp(1 - distance, 0.0, 1.0) * probabilities[j];
    }
  }
  return out;
}

TEST(QLossesTest, TheCategoricalProjectionEqualsThePaperAndKeepsMassAndUnclippedMeans) {
  const Support support = {.minimum = -2, .maximum = 3, .atoms = 51};
  std::vector<float> probabilities(support.atoms);
  Random random = Random::FromSeed(6);
  for (int trial = 0; trial < 100; ++trial) {
    Softmax(Normals(support.atoms, 100 + trial), probabilities);
    const bool inside = trial % 2 == 0;  // Moved within the support: the mean stays.
    const auto reward = static_cast<float>(random.Uniform(-1, 1) * (inside ? 0.4 : 4));
    const auto bootstrap = static_cast<float>(inside ? 0.7 : random.Uniform(0, 1));
    std::vector<float> out(support.atoms);
    ProjectCategorical(support, probabilities, reward, bootstrap, out);
    const Doubles expected = Projected(support, probabilities, reward, bootstrap);
    double mass = 0;
    double mean = 0;
    double mean_before = 0;
    for (int i = 0; i < support.atoms; ++i) {
      EXPECT_NEAR(out[i], expected[i], 1e-5);
      mass += out[i];
      mean += out[i] * support.at(i);
      mean_before += probabilities[i] * support.at(i);
    }
    EXPECT_NEAR(mass, 1.0, 1e-5);
    if (inside) {
      EXPECT_NEAR(mean, reward + bootstrap * mean_before, 1e-4);
    }
  }
}

TEST(QLossesTest, ATerminalRewardThatIsAnAtomGetsAllTheMass) {
  const Support support = {.minimum = -10, .maximum = 10, .atoms = 21};
  std::vector<float> probabilities(21, 1.0F / 21);
  std::vector<float> out(21);
  for (const int reward : {-10, -3, 0, 10, 25}) {  // 25: beyond the support.
    ProjectCategorical(support, probabilities, static_cast<float>(reward), 0.0F, out);
    const int atom = std::min(reward, 10) + 10;
    for (int i = 0; i < 21; ++i) EXPECT_NEAR(out[i], i == atom ? 1.0 : 0.0, 1e-6) << reward;
  }
}

// A loss of rows of kAtoms: that of each row, their weighted sum and its gradient, beside the
// formula.
void ExpectAtomLoss(decltype(CategoricalCrossEntropy)* loss_of,
                    const std::function<double(const Doubles&, int)>& row_loss,
                    const std::vector<float>& predictions, const std::vector<float>& targets,
                    double tolerance) {
  const std::vector<float> weights = {0.5F, 0.0F, 0.25F};
  const auto loss = [&](const Doubles& x) {
    double total = 0;
    for (int row = 0; row < kRows; ++row) total += weights[row] * row_loss(x, row);
    return total;
  };
  std::vector<float> losses(kRows);
  std::vector<float> gradient(predictions.size());
  const Doubles x(predictions.begin(), predictions.end());
  EXPECT_NEAR(loss_of(predictions, targets, kAtoms, weights, losses, gradient), loss(x), tolerance);
  for (int row = 0; row < kRows; ++row) EXPECT_NEAR(losses[row], row_loss(x, row), 1e-5);
  ExpectDerivative(loss, predictions, gradient);
}

TEST(QLossesTest, CategoricalCrossEntropyEqualsTheFormulaAndItsGradientTheQuotient) {
  const auto logits = Normals(kRows * kAtoms, 8);
  std::vector<float> targets(kRows * kAtoms);
  for (int row = 0; row < kRows; ++row) {
    Softmax(Normals(kAtoms, 20 + row), std::span(targets).subspan(row * kAtoms, kAtoms));
  }
  const auto row_loss = [&](const Doubles& x, int row) {
    double sum = 0;
    for (int i = 0; i < kAtoms; ++i) sum += std::exp(x[row * kAtoms + i]);
    double loss = 0;
    for (int i = 0; i < kAtoms; ++i) {
      loss -= targets[row * kAtoms + i] * (x[row * kAtoms + i] - std::log(sum));
    }
    return loss;
  };
  ExpectAtomLoss(CategoricalCrossEntropy, row_loss, logits, targets, 1e-6);
}

TEST(QLossesTest, QuantileHuberLossEqualsTheFormulaAndItsGradientTheQuotient) {
  const auto quantiles = Normals(kRows * kAtoms, 9, 2.0);
  const auto targets = Normals(kRows * kAtoms, 10, 2.0);
  const auto row_loss = [&](const Doubles& x, int row) {
    double loss = 0;
    for (int i = 0; i < kAtoms; ++i) {
      const double tau = (i + 0.5) / kAtoms;
      for (int j = 0; j < kAtoms; ++j) {
        const double error = targets[row * kAtoms + j] - x[row * kAtoms + i];
        loss += std::abs(tau - (error < 0 ? 1 : 0)) * Huber(error) / kAtoms;
      }
    }
    return loss;
  };
  ExpectAtomLoss(QuantileHuberLoss, row_loss, quantiles, targets, 1e-5);
}

TEST(ActionValuesTest, MeansAreExpectationsOfEachModel) {
  ActionValues values{.actions = 2, .model = ReturnModel::kQuantiles, .atoms = 3};
  const std::vector<float> combined = {1, 2, 6, /**/ 0, 0, 3};
  std::vector<float> means(2);
  values.Means(combined, means);
  EXPECT_EQ(means, (std::vector<float>{3, 1}));

  values.model = ReturnModel::kCategorical;
  values.support = {.minimum = 0, .maximum = 4, .atoms = 3};
  values.Means(combined, means);
  for (int action = 0; action < 2; ++action) {
    double mass = 0;
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
      mass += std::exp(combined[action * 3 + i]);
      sum += std::exp(combined[action * 3 + i]) * 2 * i;
    }
    EXPECT_NEAR(means[action], sum / mass, 1e-6);
  }
}

// By Python's float64, epsilon = 1e-3.
TEST(QLossesTest, SquashedReturnsAreThoseOfThePaperAndStretchBackToThemselves) {
  const std::pair<double, double> squashed[] = {{0, 0},
                                                {0.5, 0.22524487139158894},
                                                {-1, -0.41521356237309515},
                                                {10, 2.3266247903553996},
                                                {-300, -16.649351572897473},
                                                {1e4, 109.00499987500625}};
  for (const auto& [value, rescaled] : squashed) {
    EXPECT_NEAR(RescaleValue(value, 1e-3), rescaled, 1e-12 * std::max(1.0, std::abs(rescaled)));
    EXPECT_NEAR(RestoreValue(rescaled, 1e-3), value, 1e-9 * std::max(1.0, std::abs(value)));
  }
}

TEST(ActionValuesTest, TheGreedyActionIsTheFirstOfTheBestThatAreAllowed) {
  const std::vector<float> values = {1, 3, 3, 7};
  const std::vector<std::uint8_t> mask = {1, 1, 1, 0};
  const std::vector<std::uint8_t> nothing(4, 0);
  EXPECT_EQ(GreedyAction(values, nullptr), 3);
  EXPECT_EQ(GreedyAction(values, mask.data()), 1);
  EXPECT_THROW(GreedyAction(values, nothing.data()), Error);
}

}  // namespace
}  // namespace menger
