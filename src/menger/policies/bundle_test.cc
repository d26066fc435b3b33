#include "menger/policies/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "menger/networks/kernels/bf16.h"
#include "menger/policies/bundle_format.h"
#include "menger/policies/policy_testing.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

PolicyBundle Read(const std::string& bytes) {
  return ReadBundle(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// How a bundle's actions differ from those of the policy that it was made from.
struct Difference {
  int decisions = 0;
  int others = 0;      // Actions that are not the same: choices, or numbers to the last bit.
  double largest = 0;  // Of numbers.
};

Difference Compare(const PolicyCase& setup, int rows, int columns) {
  const auto algorithm = MakeTestAlgorithm(setup);
  const Slab slab = PlayedByThePolicy(setup, *algorithm, rows, columns);
  const PolicyDescription description = algorithm->DescribePolicy();
  const PolicyBundle bundle = Read(BundleOf(description, "{}"));
  const auto elements = static_cast<std::size_t>(setup.action.elements());
  std::vector<std::int64_t> choices(elements);
  std::vector<float> numbers(elements);
  const bool box = setup.action.space == Space::kBox;
  Difference difference;
  for (int column = 0; column < columns; ++column) {
    BundlePlayer player(bundle);
    for (int row = 0; row < rows; ++row) {
      std::vector<const void*> leaves;
      for (const LeafSpec& leaf : description.observation) {
        leaves.push_back(slab.observation(setup.observation.Find(leaf.name), row, column));
      }
      if (slab.is_first(row)[column] != 0) player.Reset();
      void* const action = box ? static_cast<void*>(numbers.data()) : choices.data();
      EXPECT_EQ(player.Act(leaves.data(), action), BundlePlayer::Result::kActed);
      ++difference.decisions;
      if (!box) {
        const auto* const expected = slab.action<std::int64_t>(0, row, column);
        if (!std::equal(choices.begin(), choices.end(), expected)) ++difference.others;
        continue;
      }
      // Slabs have actions as drawn; what the environment gets is clipped.
      const auto* const expected = slab.action<float>(0, row, column);
      if (!std::equal(expected, expected + elements, player.outputs().begin())) ++difference.others;
      for (std::size_t i = 0; i < elements; ++i) {
        difference.largest =
            std::max<double>(difference.largest, std::abs(player.outputs()[i] - expected[i]));
        if (setup.transforms.actions != "clip") continue;
        const double low = setup.action.low[0];
        const double high = setup.action.high[0];
        EXPECT_EQ(numbers[i],
                  static_cast<float>(std::clamp<double>(player.outputs()[i], low, high)));
      }
    }
  }
  return difference;
}

void ExpectTheSame(const PolicyCase& setup) {
  const Difference difference = Compare(setup, /*rows=*/500, /*columns=*/20);
  EXPECT_EQ(difference.decisions, 10'000);
  EXPECT_EQ(difference.others, 0);
}

TEST(BundleTest, PerceptronsActAsThePolicyToTheLastBit) {
  ExpectTheSame({});
  ExpectTheSame({.network = {.hidden = {7, 33}, .activation = "relu", .shared_trunk = true}});
  ExpectTheSame({.algorithm = "a2c", .network = {.hidden = {}}});
  ExpectTheSame({.algorithm = "es"});
}

TEST(BundleTest, NormalisedLayersActAsThePolicyToTheLastBit) {
  ExpectTheSame({.network = {.layer_norm = true}});
  ExpectTheSame(
      {.action = LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1}),
       .network = {
           .hidden = {7, 33}, .activation = "relu", .shared_trunk = true, .layer_norm = true}});
  ExpectTheSame({.algorithm = "dqn",
                 .options = {{"duelling", "true"}, {"noisy", "true"}},
                 .network = {.hidden = {20}, .layer_norm = true}});
}

TEST(BundleTest, ContinuousActionsAreNormalisedForAndClipped) {
  PolicyCase setup{.action = LeafSpec::Box("action", DataType::kFloat32, {3}, {-0.5}, {0.25})};
  setup.transforms.apply = {"normalise_observation"};
  setup.transforms.observation_clip = 1.5;
  ExpectTheSame(setup);
  setup.transforms.actions = "none";
  ExpectTheSame(setup);
  setup.algorithm = "es";
  ExpectTheSame(setup);
}

TEST(BundleTest, CodesNumbersAndMasksAreReadAsTheEncoderReadsThem) {
  std::vector<LeafSpec> leaves = {
      LeafSpec::Discrete("observation/place", 5),
      LeafSpec::Box("observation/far", DataType::kFloat64, {2}, {-3}, {3}),
      LeafSpec::MultiDiscrete("observation/cards", {3, 2}),
      LeafSpec::Box("observation/count", DataType::kInt32, {2, 2}, {-9}, {9}),
      LeafSpec::Box("observation/byte", DataType::kUint8, {1}, {0}, {255}),
  };
  ExpectTheSame({.observation = Spec(leaves), .action = LeafSpec::MultiDiscrete("action", {4, 5})});
  leaves.insert(leaves.begin() + 3, LeafSpec::Mask("action_mask", 6));
  for (const char* const algorithm : {"ppo", "dqn"}) {
    ExpectTheSame({.algorithm = algorithm,
                   .observation = Spec(leaves),
                   .action = LeafSpec::Discrete("action", 6)});
  }
}

TEST(BundleTest, PixelsThatAPerceptronReadsAreSharesOfWhite) {
  const LeafSpec image = LeafSpec::Box("image", DataType::kUint8, {7, 7, 3}, {0}, {255});
  PolicyCase alone{.observation = Spec({image})};
  PolicyCase beside{.observation =
                        Spec({LeafSpec::Discrete("direction", 4), image,
                              LeafSpec::Box("far", DataType::kFloat32, {2}, {-3}, {3})})};
  for (PolicyCase setup : {alone, beside}) {
    for (const bool normalised : {false, true}) {
      if (normalised) setup.transforms.apply = {"normalise_observation"};
      // Products with 1/255 are not quotients by 255 to the last bit.
      const Difference difference = Compare(setup, /*rows=*/500, /*columns=*/20);
      EXPECT_LE(difference.others, 10);
    }
  }
}

TEST(BundleTest, FramesAreStackedWithinAnEpisode) {
  PolicyCase setup;
  setup.transforms.frame_stack = 3;
  ExpectTheSame(setup);
  setup.transforms.apply = {"normalise_observation"};
  ExpectTheSame(setup);
}

TEST(BundleTest, ValuesOfEveryKindChooseThePolicysAction) {
  ExpectTheSame({.algorithm = "dqn"});
  ExpectTheSame({.algorithm = "dqn", .options = {{"duelling", "true"}, {"noisy", "true"}}});
  ExpectTheSame({.algorithm = "dqn",
                 .options = {{"distribution", "qr"}, {"quantiles", "7"}, {"duelling", "true"}}});
  // Sums over atoms are in another order: a tie of two floats may fall to the other side.
  const Difference c51 = Compare(
      {.algorithm = "dqn", .options = {{"distribution", "c51"}, {"duelling", "true"}}}, 500, 20);
  EXPECT_LE(c51.others, 5);
}

TEST(BundleTest, ConvolutionsInBf16ChooseThePolicysActionNearlyAlways) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor does not multiply bf16";
  PolicyCase setup{
      .observation = Spec({LeafSpec::Box("screen", DataType::kUint8, {1, 44, 36}, {0}, {255})}),
      .precision = "bf16"};
  setup.network.kind = "nature_cnn";
  setup.transforms.frame_stack = 4;
  const Difference nature = Compare(setup, /*rows=*/100, /*columns=*/10);
  EXPECT_LE(nature.others, nature.decisions / 100);
  setup.network.kind = "a3c_cnn";
  setup.network.shared_trunk = true;
  const Difference a3c = Compare(setup, /*rows=*/100, /*columns=*/10);
  EXPECT_LE(a3c.others, a3c.decisions / 100);
}

TEST(BundleTest, NetworksOfTheTorchLibraryActAlike) {
#ifdef MENGER_TORCH_LIBRARY_FILE
  setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
  if (getenv("MENGER_TORCH_LIBRARY") == nullptr) GTEST_SKIP() << "built without torch";
#endif
  PolicyCase memory{.action = LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1})};
  memory.network.kind = "lstm";
  memory.network.lstm_size = 13;
  EXPECT_LE(Compare(memory, /*rows=*/500, /*columns=*/20).largest, 1e-5);
  PolicyCase pixels{
      .observation = Spec({LeafSpec::Box("screen", DataType::kUint8, {2, 40, 36}, {0}, {255})}),
      .action = LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1})};
  pixels.network.kind = "nature_cnn";
  pixels.transforms.frame_stack = 2;
  EXPECT_LE(Compare(pixels, /*rows=*/50, /*columns=*/10).largest, 1e-4);
  pixels.network.kind = "a3c_cnn_lstm";
  EXPECT_LE(Compare(pixels, /*rows=*/50, /*columns=*/10).largest, 1e-4);
}

// An image between a code and numbers.
PolicyCase NumbersBesideAnImage() {
  PolicyCase setup{
      .observation =
          Spec({LeafSpec::Discrete("observation/gear", 3),
                LeafSpec::Box("observation/camera", DataType::kUint8, {1, 40, 36}, {0}, {255}),
                LeafSpec::Box("observation/speed", DataType::kFloat64, {2}, {-3}, {3})}),
      .action = LeafSpec::Box("action", DataType::kFloat32, {2}, {-1}, {1})};
  setup.network.kind = "a3c_cnn";
  return setup;
}

TEST(BundleTest, NumbersBesideAnImageAreReadAsThePolicyReadsThem) {
#ifdef MENGER_TORCH_LIBRARY_FILE
  setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
#else
  if (getenv("MENGER_TORCH_LIBRARY") == nullptr) GTEST_SKIP() << "built without torch";
#endif
  PolicyCase setup = NumbersBesideAnImage();
  EXPECT_LE(Compare(setup, /*rows=*/50, /*columns=*/10).largest, 1e-4);
  setup.transforms.apply = {"normalise_observation"};
  setup.transforms.observation_clip = 1.5;
  setup.transforms.frame_stack = 3;
  EXPECT_LE(Compare(setup, /*rows=*/50, /*columns=*/10).largest, 1e-4);
  setup.network.kind = "nature_cnn_lstm";
  EXPECT_LE(Compare(setup, /*rows=*/50, /*columns=*/10).largest, 1e-4);
  std::vector<LeafSpec> leaves = setup.observation.leaves();
  leaves.insert(leaves.begin(), LeafSpec::Mask("action_mask", 4));
  PolicyCase values{.algorithm = "dqn",
                    .options = {{"duelling", "true"}},
                    .observation = Spec(leaves),
                    .action = LeafSpec::Discrete("action", 4)};
  values.network.kind = "a3c_cnn";
  const Difference choices = Compare(values, /*rows=*/50, /*columns=*/10);
  EXPECT_LE(choices.others, 1);
}

TEST(BundleTest, WhatDoesNotFitIsSaidAndNothingIsRemembered) {
  PolicyCase setup{.observation = Spec(
                       {LeafSpec::Discrete("observation", 3), LeafSpec::Mask("action_mask", 3)})};
  const PolicyBundle bundle = Read(BundleOf(MakeTestAlgorithm(setup)->DescribePolicy(), "{}"));
  BundlePlayer player(bundle);
  std::int64_t place = 3;
  std::uint8_t mask[3] = {0, 0, 0};
  const void* const leaves[] = {&place, mask};
  std::int64_t action = -1;
  EXPECT_EQ(player.Act(leaves, &action), BundlePlayer::Result::kNoSuchChoice);
  place = 2;
  EXPECT_EQ(player.Act(leaves, &action), BundlePlayer::Result::kNothingAllowed);
  EXPECT_EQ(action, 0);
  mask[2] = 1;
  EXPECT_EQ(player.Act(leaves, &action), BundlePlayer::Result::kActed);
  EXPECT_EQ(action, 2);
}

void ExpectNoChangeUnnoticedOrFatal(const PolicyCase& setup) {
  const std::string bytes = BundleOf(MakeTestAlgorithm(setup)->DescribePolicy(), "{}");
  const auto reason = [](const std::string& changed) -> std::string {
    try {
      Read(changed);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(reason(bytes), "read");
  EXPECT_EQ(reason(""), "not a bundle of `menger export`");
  EXPECT_THAT(reason(bytes.substr(0, bytes.size() - 4)), HasSubstr("cut short or altered"));
  std::string newer = bytes;
  newer[8] = 3;
  EXPECT_EQ(reason(newer), "the bundle is of version 3; this library reads 1 and 2");
  Random random = Random::FromSeed(3);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    // Mostly where numbers decide how the rest is read.
    const auto at = static_cast<std::size_t>(
        random.Integers(24, i % 2 == 0 ? 400 : static_cast<std::int64_t>(bytes.size())));
    changed[at] = static_cast<char>(random.Integers(0, 256));
    if (changed == bytes) continue;
    EXPECT_THAT(reason(changed), HasSubstr("altered"));
    // With the right checksum whatever is read must be consistent, or refused.
    const std::uint32_t checksum =
        bundle_format::Checksum(changed.data() + 24, changed.size() - 24);
    std::memcpy(changed.data() + 12, &checksum, sizeof(checksum));
    reason(changed);
  }
}

TEST(BundleTest, NoChangeOfABundleGoesUnnoticedOrIsFatal) {
  ExpectNoChangeUnnoticedOrFatal({});
  ExpectNoChangeUnnoticedOrFatal({.network = {.hidden = {5}, .layer_norm = true}});
#ifdef MENGER_TORCH_LIBRARY_FILE
  setenv("MENGER_TORCH_LIBRARY", MENGER_TORCH_LIBRARY_FILE, /*overwrite=*/1);
  ExpectNoChangeUnnoticedOrFatal(NumbersBesideAnImage());
#endif
}

}  // namespace
}  // namespace menger
