#include "menger/algorithms/transforms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "menger/algorithms/observation_encoder.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

std::unique_ptr<UpdateRule> Alone() { return MakeLocalUpdateRule({}, /*parameters=*/1); }

TEST(TransformsTest, MomentsOfBatchesEqualMomentsOfTheWhole) {
  Random random = Random::FromSeed(1);
  ObservationNormaliser normaliser(2);
  std::vector<double> all[2];
  for (int batch = 0; batch < 5; ++batch) {
    std::vector<float> rows;
    std::vector<float> weights;
    for (int row = 0; row < 10 + batch; ++row) {
      const bool counts = row % 4 != 3;
      weights.push_back(counts ? 1.0F : 0.0F);
      for (auto& element : all) {
        rows.push_back(static_cast<float>(random.Normal(5.0, 3.0)));
        if (counts) element.push_back(rows.back());
      }
    }
    normaliser.Update(rows, weights, *Alone());
  }
  std::vector<float> scale_and_shift(4);
  normaliser.WriteTo(scale_and_shift);
  for (int i = 0; i < 2; ++i) {
    double mean = 0;
    for (const double value : all[i]) mean += value / static_cast<double>(all[i].size());
    double variance = 0;
    for (const double value : all[i]) {
      variance += (value - mean) * (value - mean) / static_cast<double>(all[i].size());
    }
    EXPECT_NEAR(scale_and_shift[i], 1 / std::sqrt(variance + 1e-8), 1e-6);
    EXPECT_NEAR(scale_and_shift[2 + i], -mean / std::sqrt(variance + 1e-8), 1e-6);
  }
}

TEST(TransformsTest, NothingSeenMeansNothingChanged) {
  const ObservationNormaliser normaliser(3);
  std::vector<float> scale_and_shift(6);
  normaliser.WriteTo(scale_and_shift);
  std::vector<float> rows = {1, -2, 300};
  Normalise(rows, std::span<const float>(scale_and_shift).first(3),
            std::span<const float>(scale_and_shift).last(3), 10);
  EXPECT_EQ(rows, (std::vector<float>{1, -2, 10}));
}

TEST(TransformsTest, RewardsAreScaledByTheDeviationOfTheDiscountedReturn) {
  SlabSpec spec{.observation = Spec({LeafSpec::Scalar("observation", DataType::kFloat32)}),
                .action = Spec({LeafSpec::Discrete("action", 2)}),
                .horizon = 3,
                .columns = ColumnLayout::Single(2)};
  Slab slab(spec);
  const double rewards[3][2] = {{1, 2}, {3, -1}, {0, 4}};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 2; ++column) {
      slab.reward(row)[column] = rewards[row][column];
      slab.valid(row)[column] = 1;
    }
  }
  slab.terminated(1)[0] = 1;
  RewardNormaliser normaliser(2, 0.5);
  Slab* const slabs[] = {&slab};
  normaliser.Update(slabs, *Alone());
  // Discounted returns: column 0: 1, 3.5 | 0; column 1: 2, 0, 4.
  const std::vector<double> returns = {1, 3.5, 0, 2, 0, 4};
  double mean = 0;
  double squares = 0;
  for (const double value : returns) {
    mean += value / 6;
    squares += value * value / 6;
  }
  EXPECT_NEAR(normaliser.scale(), 1 / std::sqrt(squares - mean * mean + 1e-8), 1e-12);
}

TEST(TransformsTest, AnInvalidRowEndsTheDiscountedReturnAndDoesNotCount) {
  SlabSpec spec{.observation = Spec({LeafSpec::Scalar("observation", DataType::kFloat32)}),
                .action = Spec({LeafSpec::Discrete("action", 2)}),
                .horizon = 4,
                .columns = ColumnLayout::Single(2)};
  Slab slab(spec);
  // Column 0 fails at row 1, as an environment that is restarted does; column 1 goes on.
  const double rewards[4][2] = {{8, 1}, {0, 1}, {2, 1}, {2, 1}};
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 2; ++column) {
      slab.reward(row)[column] = rewards[row][column];
      slab.valid(row)[column] = 1;
    }
  }
  slab.valid(1)[0] = 0;
  slab.truncated(1)[0] = 1;
  RewardNormaliser normaliser(2, 0.5);
  Slab* const slabs[] = {&slab};
  normaliser.Update(slabs, *Alone());
  // Discounted returns: column 0: 8 | 2, 3; column 1: 1, 1.5, 1.75, 1.875.
  const std::vector<double> returns = {8, 2, 3, 1, 1.5, 1.75, 1.875};
  double mean = 0;
  double squares = 0;
  for (const double value : returns) {
    mean += value / 7;
    squares += value * value / 7;
  }
  EXPECT_NEAR(normaliser.scale(), 1 / std::sqrt(squares - mean * mean + 1e-8), 1e-12);
}

TEST(TransformsTest, AnEpisodeThatWasLostLeavesNothingInTheDiscountedReturn) {
  SlabSpec spec{.observation = Spec({LeafSpec::Scalar("observation", DataType::kFloat32)}),
                .action = Spec({LeafSpec::Discrete("action", 2)}),
                .horizon = 2,
                .columns = ColumnLayout::Single(1)};
  Slab slab(spec);
  slab.is_first(0)[0] = 1;
  for (int row = 0; row < 2; ++row) {
    slab.reward(row)[0] = 4;
    slab.valid(row)[0] = 1;
  }
  RewardNormaliser normaliser(1, 0.5);
  Slab* const slabs[] = {&slab};
  normaliser.Update(slabs, *Alone());
  normaliser.Update(slabs, *Alone());  // Begins with a first row although no episode has ended.
  // Discounted returns: 4, 6 | 4, 6, of variance 1.
  EXPECT_NEAR(normaliser.scale(), 1, 1e-8);
}

TEST(ObservationEncoderTest, LeavesAreJoinedAndCodesAreOneHot) {
  SlabSpec spec{
      .observation = Spec({LeafSpec::Box("speed", DataType::kFloat64, {2}, {-1}, {1}),
                           LeafSpec::Discrete("room", 3), LeafSpec::Mask("action_mask", 2)}),
      .action = Spec({LeafSpec::Discrete("action", 2)}),
      .columns = ColumnLayout::Single(1)};
  Slab slab(spec);
  slab.observation<double>(0, 0)[0] = 0.5;
  slab.observation<double>(0, 0)[1] = -0.25;
  *slab.observation<std::int64_t>(1, 0) = 2;
  const ObservationEncoder encoder(spec.observation);
  EXPECT_EQ(encoder.elements(), 5);
  EXPECT_EQ(encoder.mask_leaf(), 2);
  EXPECT_EQ(encoder.numbers_in_place(), -1);
  std::vector<float> row(5);
  encoder.Encode(slab, 0, 0, 1, {.numbers = row.data()});
  EXPECT_EQ(row, (std::vector<float>{0.5, -0.25, 0, 0, 1}));
}

TEST(ObservationEncoderTest, AnObservationWithNothingToReadIsRefused) {
  EXPECT_THROW(ObservationEncoder(Spec({LeafSpec::Mask("action_mask", 2)})), Error);
}

}  // namespace
}  // namespace menger
