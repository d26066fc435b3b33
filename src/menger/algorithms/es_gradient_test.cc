#include "menger/algorithms/es_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "menger/base/error.h"
#include "menger/base/random.h"

namespace menger {
namespace {

using testing::Each;
using testing::ElementsAre;

// A table of 40 numbers that any program can make exactly.
std::vector<float> SimpleNoise() {
  std::vector<float> noise;
  for (int i = 0; i < 40; ++i) noise.push_back(static_cast<float>(i * 7919 % 2003 - 1001) / 256);
  return noise;
}

// Returns of six mirrored pairs, and what compute_centered_ranks and batched_weighted_sum of
// OpenAI's evolution-strategies-starter (commit 7585f01, NumPy 2.4) make of them.
constexpr double kReturns[] = {12.5, -3.25, 200, 199.5, 0, 7, -1000, 13, 8, 9.75, 500, -2};
constexpr double kRecordedRanks[] = {0.13636362552642822,
                                     -0.40909090638160706,
                                     0.40909093618392944,
                                     0.3181818127632141,
                                     -0.22727271914482117,
                                     -0.13636362552642822,
                                     -0.5,
                                     0.22727274894714355,
                                     -0.04545453190803528,
                                     0.045454561710357666,
                                     0.5,
                                     -0.3181818127632141};
constexpr std::int64_t kIndices[] = {0, 3, 17, 35, 8, 21};
constexpr double kRecordedGradient[] = {-0.34093865752220154, 0.5316643118858337,
                                        0.5151515007019043, 0.49863874912261963,
                                        0.4821259677410126};

TEST(EsGradientTest, RanksAndGradientAreThoseOfThePublishedCode) {
  const std::vector<double> ranks = CentredRanks(kReturns);
  std::vector<MirroredPair> pairs;
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(ranks[2 * i], kRecordedRanks[2 * i], 1e-7);
    EXPECT_NEAR(ranks[2 * i + 1], kRecordedRanks[2 * i + 1], 1e-7);
    pairs.push_back({.noise_index = kIndices[i], .plus = ranks[2 * i], .minus = ranks[2 * i + 1]});
  }
  std::vector<float> gradient(5);
  EstimateGradient(pairs, SimpleNoise(), gradient);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(gradient[i], kRecordedGradient[i], 2e-7) << i;
}

TEST(EsGradientTest, OnlyTheOrderOfReturnsCounts) {
  std::vector<double> moved;
  for (const double value : kReturns) moved.push_back(std::atan(value / 300) * 1e-9 + 7);
  EXPECT_EQ(CentredRanks(moved), CentredRanks(kReturns));
}

TEST(EsGradientTest, EqualReturnsShareTheirRanksAndDoNotMoveAnything) {
  EXPECT_THAT(CentredRanks(std::vector<double>{3, 1, 3, 3, 9}),
              ElementsAre(0.0, -0.5, 0.0, 0.0, 0.5));
  EXPECT_THAT(CentredRanks(std::vector<double>(8, 500.0)), Each(0.0));
  EXPECT_THAT(CentredRanks(std::vector<double>{4}), ElementsAre(0.0));
}

TEST(EsGradientTest, AReturnThatIsNoNumberIsRefused) {
  EXPECT_THROW(CentredRanks(std::vector<double>{1, std::nan("")}), Error);
}

// Of worth(x) = -|x - target|^2 / 2 a mirrored pair tells the slope along its noise exactly:
// -2 deviation noise . (x - target). With directions that are orthogonal the estimate is the exact
// gradient, times deviation and the squared length of a direction over the pairs.
TEST(EsGradientTest, TheGradientOfAQuadraticIsExact) {
  constexpr int kSize = 3000;  // Several blocks.
  constexpr double kDeviation = 0.25;
  constexpr double kLength = 2;
  Random random = Random::FromSeed(4);
  std::vector<double> to_target(kSize);
  for (double& value : to_target) value = random.Normal();

  // Where a window of kSize begins at index kSize - 1 - i, its element i is kLength, the others 0.
  std::vector<float> noise(2 * kSize - 1, 0.0F);
  noise[kSize - 1] = kLength;
  std::vector<MirroredPair> pairs;
  for (int i = 0; i < kSize; ++i) {
    const auto worth = [&](double sign) {
      double squares = 0;
      for (int k = 0; k < kSize; ++k) {
        const double offset = to_target[k] - (k == i ? sign * kDeviation * kLength : 0.0);
        squares += offset * offset;
      }
      return -squares / 2;
    };
    pairs.push_back({.noise_index = kSize - 1 - i, .plus = worth(1), .minus = worth(-1)});
  }
  std::vector<float> gradient(kSize);
  EstimateGradient(pairs, noise, gradient);
  for (int i = 0; i < kSize; ++i) {
    const double exact = to_target[i] * kDeviation * kLength * kLength / kSize;
    ASSERT_NEAR(gradient[i], exact, 1e-9 + 1e-6 * std::abs(exact)) << i;
  }
}

TEST(EsGradientTest, ItEqualsTheSumInAnotherOrder) {
  Random random = Random::FromSeed(5);
  std::vector<float> noise(5000);
  for (float& value : noise) value = static_cast<float>(random.Normal());
  std::vector<MirroredPair> pairs;
  for (int i = 0; i < 50; ++i) {
    pairs.push_back({.noise_index = random.Integers(0, 5000 - 2500 + 1),
                     .plus = random.Uniform(-0.5, 0.5),
                     .minus = random.Uniform(-0.5, 0.5)});
  }
  std::vector<float> gradient(2500);
  EstimateGradient(pairs, noise, gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double sum = 0;
    for (std::size_t k = pairs.size(); k-- > 0;) {
      sum += (pairs[k].plus - pairs[k].minus) * noise[pairs[k].noise_index + i];
    }
    ASSERT_NEAR(gradient[i], sum / 100, 1e-7) << i;
  }
}

TEST(EsGradientTest, NoiseBeyondTheTableIsRefused) {
  std::vector<float> gradient(5);
  const std::vector<float> noise = SimpleNoise();
  EXPECT_NO_THROW(
      EstimateGradient(std::vector<MirroredPair>{{.noise_index = 35}}, noise, gradient));
  for (const std::int64_t index : {-1, 36}) {
    const std::vector<MirroredPair> pairs = {{.noise_index = index}};
    EXPECT_THROW(EstimateGradient(pairs, noise, gradient), Error) << index;
  }
}

}  // namespace
}  // namespace menger
