#include "menger/collectors/random_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kSteps = 2000;

// One environment, `kSteps` rows of random actions of the given kind.
Slab ActRandomly(const Spec& action, const Spec& observation, std::uint8_t mask_flag = 1) {
  Slab slab({.observation = observation, .action = action, .horizon = kSteps});
  RandomPolicy policy(observation, action, /*seed=*/9);
  for (int row = 0; row < kSteps; ++row) {
    if (const int mask = observation.Find(kActionMask); mask >= 0) {
      auto* flags = slab.observation<std::uint8_t>(mask, row);
      for (std::int64_t i = 0; i < observation[mask].elements(); ++i) {
        flags[i] = i % 2 == 0 ? 0 : mask_flag;
      }
    }
    policy.Act(slab, row, {.first = 0, .count = 1});
  }
  return slab;
}

const Spec kPlainObservation({LeafSpec::Scalar("observation", DataType::kFloat32)});

TEST(RandomPolicyTest, DiscreteActionsAreUniform) {
  const Slab slab = ActRandomly(Spec({LeafSpec::Discrete("action", 4)}), kPlainObservation);
  std::array<int, 4> counts{};
  for (int row = 0; row < kSteps; ++row) ++counts.at(*slab.action<std::int64_t>(0, row));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 500.0) * (count - 500.0) / 500.0;
  EXPECT_LT(chi_squared, 16.27);  // The 99.9% point with 3 degrees of freedom.
}

TEST(RandomPolicyTest, MaskedActionsAreNeverTaken) {
  const Spec observation(
      {LeafSpec::Scalar("observation", DataType::kFloat32), LeafSpec::Mask("action_mask", 5)});
  const Slab slab = ActRandomly(Spec({LeafSpec::Discrete("action", 5)}), observation);
  for (int row = 0; row < kSteps; ++row) EXPECT_EQ(*slab.action<std::int64_t>(0, row) % 2, 1);
  const Spec two({LeafSpec::MultiDiscrete("action", {2, 3})});  // Flags 0 1 | 0 1 0.
  const Slab multi = ActRandomly(two, observation);
  for (int row = 0; row < kSteps; ++row) {
    EXPECT_EQ(multi.action<std::int64_t>(0, row)[0], 1);
    EXPECT_EQ(multi.action<std::int64_t>(0, row)[1], 1);
  }
}

TEST(RandomPolicyTest, AMaskThatAllowsNothingIsRefusedWithEnvironmentAndStep) {
  const Spec observation({LeafSpec::Mask("action_mask", 3)});
  try {
    ActRandomly(Spec({LeafSpec::Discrete("action", 3)}), observation, /*mask_flag=*/0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("environment 0 allows no action at step 0"));
  }
}

TEST(RandomPolicyTest, AMaskOfAnotherSizeIsRefused) {
  const Spec observation({LeafSpec::Mask("action_mask", 3)});
  EXPECT_THROW(RandomPolicy(observation, Spec({LeafSpec::Discrete("action", 4)}), 0), Error);
}

TEST(RandomPolicyTest, BoxActionsFollowTheirBoundsAsGymnasiumSamplesThem) {
  const Spec action({LeafSpec::Box("uniform", DataType::kFloat32, {2}, {-1, 3}, {1, 5}),
                     LeafSpec::Box("normal", DataType::kFloat32, {}, {-kInfinity}, {kInfinity}),
                     LeafSpec::Box("exponential", DataType::kFloat64, {}, {2}, {kInfinity}),
                     LeafSpec::Box("pixels", DataType::kUint8, {}, {0}, {255})});
  const Slab slab = ActRandomly(action, kPlainObservation);
  std::array<double, 5> mean{};
  double square = 0;
  for (int row = 0; row < kSteps; ++row) {
    const float* uniform = slab.action<float>(0, row);
    EXPECT_LT(std::abs(uniform[0]), 1);
    EXPECT_LT(std::abs(uniform[1] - 4), 1);
    EXPECT_GE(*slab.action<double>(2, row), 2);
    mean[0] += uniform[0] / kSteps;
    mean[1] += uniform[1] / kSteps;
    mean[2] += *slab.action<float>(1, row) / kSteps;
    square += *slab.action<float>(1, row) * *slab.action<float>(1, row) / kSteps;
    mean[3] += *slab.action<double>(2, row) / kSteps;
    mean[4] += *slab.action<std::uint8_t>(3, row) / static_cast<double>(kSteps);
  }
  EXPECT_NEAR(mean[0], 0, 0.06);  // More than four standard errors each.
  EXPECT_NEAR(mean[1], 4, 0.06);
  EXPECT_NEAR(mean[2], 0, 0.1);
  EXPECT_NEAR(square, 1, 0.15);
  EXPECT_NEAR(mean[3], 3, 0.1);
  EXPECT_NEAR(mean[4], 127.5, 7);
}

}  // namespace
}  // namespace menger
