#include "menger/algorithms/returns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

struct Arrays {
  int steps, columns;
  std::vector<float> rewards, values, next_values;
  std::vector<std::uint8_t> cut, valid;

  Trajectories View() const {
    return {.steps = steps,
            .columns = columns,
            .rewards = rewards,
            .values = values,
            .next_values = next_values,
            .cut = cut,
            .valid = valid};
  }
};

Arrays RandomArrays(int steps, int columns, std::uint64_t seed) {
  Random random = Random::FromSeed(seed);
  Arrays arrays{.steps = steps, .columns = columns};
  for (int i = 0; i < steps * columns; ++i) {
    arrays.rewards.push_back(static_cast<float>(random.Normal()));
    arrays.values.push_back(static_cast<float>(random.Normal()));
    arrays.next_values.push_back(static_cast<float>(random.Normal()));
    arrays.cut.push_back(random.Double() < 0.15 ? 1 : 0);
    arrays.valid.push_back(random.Double() < 0.9 ? 1 : 0);
  }
  return arrays;
}

// The sum of the paper's equation 16, term by term, in float64.
double BruteForceAdvantage(const Arrays& arrays, int step, int column, double discount,
                           double lambda) {
  double advantage = 0;
  double weight = 1;
  for (int t = step; t < arrays.steps; ++t) {
    const int i = t * arrays.columns + column;
    if (arrays.valid[i] == 0) break;
    advantage += weight * (static_cast<double>(arrays.rewards[i]) +
                           discount * arrays.next_values[i] - arrays.values[i]);
    if (arrays.cut[i] != 0) break;
    weight *= discount * lambda;
  }
  return advantage;
}

TEST(ReturnsTest, AdvantagesEqualTheirDefinitionSummedInFloat64) {
  const Arrays arrays = RandomArrays(40, 7, /*seed=*/3);
  std::vector<float> advantages(40 * 7);
  for (const double lambda : {0.0, 0.8, 0.95, 1.0}) {
    GeneralisedAdvantages(arrays.View(), 0.97, lambda, advantages);
    for (int step = 0; step < 40; ++step) {
      for (int column = 0; column < 7; ++column) {
        EXPECT_NEAR(advantages[step * 7 + column],
                    BruteForceAdvantage(arrays, step, column, 0.97, lambda), 2e-5);
      }
    }
  }
}

TEST(ReturnsTest, WithLambdaOneAdvantagePlusValueIsTheNStepReturn) {
  Arrays arrays = RandomArrays(10, 1, /*seed=*/5);
  std::fill(arrays.cut.begin(), arrays.cut.end(), 0);
  std::fill(arrays.valid.begin(), arrays.valid.end(), 1);
  for (int t = 0; t + 1 < 10; ++t) arrays.next_values[t] = arrays.values[t + 1];
  std::vector<float> advantages(10);
  GeneralisedAdvantages(arrays.View(), 0.9, 1.0, advantages);
  double expected = std::pow(0.9, 10) * arrays.next_values[9];
  for (int t = 9; t >= 0; --t) expected += std::pow(0.9, t) * arrays.rewards[t];
  EXPECT_NEAR(advantages[0] + arrays.values[0], expected, 1e-5);
}

TEST(ReturnsTest, APassEqualsTheConcatenationOfItsEpisodes) {
  Arrays whole = RandomArrays(20, 1, /*seed=*/8);
  std::fill(whole.valid.begin(), whole.valid.end(), 1);
  std::fill(whole.cut.begin(), whole.cut.end(), 0);
  whole.cut[7] = 1;
  std::vector<float> advantages(20);
  GeneralisedAdvantages(whole.View(), 0.99, 0.9, advantages);
  const auto part = [&whole](int first, int count) {
    Arrays arrays{.steps = count, .columns = 1};
    const auto slice = [&](const auto& from) {
      return std::remove_cvref_t<decltype(from)>(from.begin() + first,
                                                 from.begin() + first + count);
    };
    arrays.rewards = slice(whole.rewards);
    arrays.values = slice(whole.values);
    arrays.next_values = slice(whole.next_values);
    arrays.cut = slice(whole.cut);
    arrays.valid = slice(whole.valid);
    return arrays;
  };
  std::vector<float> first(8);
  std::vector<float> second(12);
  GeneralisedAdvantages(part(0, 8).View(), 0.99, 0.9, first);
  GeneralisedAdvantages(part(8, 12).View(), 0.99, 0.9, second);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(advantages, first);
}

}  // namespace
}  // namespace menger
