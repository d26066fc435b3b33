#include "menger/algorithms/observation_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kHistory = 3;

// Two columns; the frame of a row is one pixel that names row and column: 10 x row + column.
Slab MakeSlab() {
  Slab slab(
      {.observation = Spec({LeafSpec::Box("pixels", DataType::kUint8, {1, 1, 1}, {0}, {255})}),
       .action = Spec({LeafSpec::Discrete("action", 2)}),
       .horizon = 4,
       .history = kHistory,
       .columns = ColumnLayout::Single(2)});
  for (int row = -kHistory; row <= 4; ++row) {
    for (int column = 0; column < 2; ++column) {
      *slab.observation<std::uint8_t>(0, row, column) =
          static_cast<std::uint8_t>(100 + 10 * row + column);
      slab.is_first(row)[column] = 0;
    }
  }
  return slab;
}

std::vector<int> Stack(const ObservationEncoder& encoder, const Slab& slab, int row, int column) {
  std::vector<std::byte> out(encoder.image_bytes(), std::byte{77});
  encoder.Encode(slab, row, column, 1, {.image = out.data()});
  std::vector<int> values;
  for (const std::byte value : out) values.push_back(static_cast<int>(value));
  return values;
}

TEST(ObservationEncoderTest, StacksTheNewestFramesOldestFirstAcrossTheStartOfASlab) {
  const Slab slab = MakeSlab();
  const ObservationEncoder encoder(slab.spec().observation, /*frame_stack=*/4);
  EXPECT_EQ(encoder.history(), kHistory);
  EXPECT_EQ(encoder.encoded().shape, (Shape{4, 1, 1}));
  EXPECT_THAT(Stack(encoder, slab, 3, 0), ElementsAre(100, 110, 120, 130));
  EXPECT_THAT(Stack(encoder, slab, 0, 1), ElementsAre(71, 81, 91, 101));
}

TEST(ObservationEncoderTest, PadsWithZerosBeforeAnEpisodeAndNeverLooksAcrossItsStart) {
  Slab slab = MakeSlab();
  slab.is_first(2)[0] = 1;
  const ObservationEncoder encoder(slab.spec().observation, /*frame_stack=*/4);
  EXPECT_THAT(Stack(encoder, slab, 2, 0), ElementsAre(0, 0, 0, 120));
  EXPECT_THAT(Stack(encoder, slab, 3, 0), ElementsAre(0, 0, 120, 130));
  EXPECT_THAT(Stack(encoder, slab, 2, 1), ElementsAre(91, 101, 111, 121));
}

TEST(ObservationEncoderTest, StacksAFinalObservationOntoTheFramesOfItsOwnEpisode) {
  Slab slab = MakeSlab();
  slab.is_first(1)[1] = 1;
  slab.is_first(3)[1] = 1;  // The episode that ended at row 2 is followed by another.
  const int slot = slab.FinalSlot(2, 1);
  *slab.final_observation<std::uint8_t>(0, slot) = 200;
  const ObservationEncoder encoder(slab.spec().observation, /*frame_stack=*/4);
  std::vector<std::byte> out(encoder.image_bytes());
  encoder.EncodeFinal(slab, slot, {.image = out.data()});
  EXPECT_THAT(out, ElementsAre(std::byte{0}, std::byte{111}, std::byte{121}, std::byte{200}));
}

TEST(ObservationEncoderTest, RefusesToStackWhatIsNoSingleArray) {
  const Spec two({LeafSpec::Box("a", DataType::kFloat32, {2}, {0}, {1}),
                  LeafSpec::Box("b", DataType::kFloat32, {2}, {0}, {1})});
  try {
    const ObservationEncoder encoder(two, /*frame_stack=*/2);
    FAIL() << "two leaves were stacked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("transforms.frame_stack = 2"));
  }
}

TEST(ObservationEncoderTest, FlagsAreReadAndOnlyTheLeafNamedActionMaskIsAMask) {
  const Spec spec({LeafSpec::Mask("observation/cues", 2), LeafSpec::Mask("action_mask", 3)});
  Slab slab({.observation = spec,
             .action = Spec({LeafSpec::Discrete("action", 3)}),
             .horizon = 1,
             .columns = ColumnLayout::Single(1)});
  slab.observation<std::uint8_t>(0, 0)[0] = 0;
  slab.observation<std::uint8_t>(0, 0)[1] = 1;
  const ObservationEncoder encoder(spec);
  EXPECT_EQ(encoder.mask_leaf(), 1);
  ASSERT_EQ(encoder.encoded().shape, (Shape{2}));
  float out[2] = {7, 7};
  encoder.Encode(slab, 0, 0, 1, {.numbers = out});
  EXPECT_THAT(out, ElementsAre(0, 1));
  EXPECT_EQ(ObservationEncoder(Spec({LeafSpec::Mask("observation", 4)})).elements(), 4);
}

// Three leaves of which the image is in the middle; row by row each says 10 x row.
Slab MakeSlabOfThree() {
  Slab slab({.observation = Spec({LeafSpec::Discrete("gear", 2),
                                  LeafSpec::Box("camera", DataType::kUint8, {1, 1, 2}, {0}, {255}),
                                  LeafSpec::Mask("action_mask", 2),
                                  LeafSpec::Box("speed", DataType::kFloat64, {1}, {0}, {1e9})}),
             .action = Spec({LeafSpec::Discrete("action", 2)}),
             .horizon = 4,
             .history = 1,
             .columns = ColumnLayout::Single(1)});
  for (int row = -1; row <= 4; ++row) {
    *slab.observation<std::int64_t>(0, row) = (row + 2) % 2;
    slab.observation<std::uint8_t>(1, row)[0] = static_cast<std::uint8_t>(100 + 10 * row);
    slab.observation<std::uint8_t>(1, row)[1] = 7;
    *slab.observation<double>(3, row) = 0.5 * row;
    slab.is_first(row)[0] = 0;
  }
  return slab;
}

TEST(ObservationEncoderTest, OtherLeavesAreTheNumbersBesideTheOnlyImage) {
  const Slab slab = MakeSlabOfThree();
  const ObservationEncoder encoder(slab.spec().observation);
  EXPECT_TRUE(encoder.has_image());
  EXPECT_EQ(encoder.encoded().shape, (Shape{1, 1, 2}));
  EXPECT_EQ(encoder.vector_elements(), 3);
  EXPECT_EQ(encoder.image_in_place(), 1);
  EXPECT_EQ(encoder.numbers_in_place(), -1);
  EXPECT_EQ(encoder.mask_leaf(), 2);
  for (const int leaf : {0, 1, 3}) EXPECT_TRUE(encoder.Reads(leaf));
  EXPECT_TRUE(encoder.scales().empty());
  std::vector<std::byte> image(2);
  float numbers[3];
  encoder.Encode(slab, 3, 0, 1, {.image = image.data(), .numbers = numbers});
  EXPECT_THAT(image, ElementsAre(std::byte{130}, std::byte{7}));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 1.5F));
}

TEST(ObservationEncoderTest, ImagesAndTheNumbersBesideThemAreStackedApart) {
  Slab slab = MakeSlabOfThree();
  const ObservationEncoder encoder(slab.spec().observation, /*frame_stack=*/2);
  EXPECT_EQ(encoder.encoded().shape, (Shape{2, 1, 2}));
  EXPECT_EQ(encoder.vector_elements(), 6);
  std::vector<std::byte> image(4);
  float numbers[6];
  encoder.Encode(slab, 2, 0, 1, {.image = image.data(), .numbers = numbers});
  EXPECT_THAT(image, ElementsAre(std::byte{110}, std::byte{7}, std::byte{120}, std::byte{7}));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 0.5F, 1, 0, 1));

  const int slot = slab.FinalSlot(2, 0);
  *slab.final_observation<std::int64_t>(0, slot) = 1;
  slab.final_observation<std::uint8_t>(1, slot)[0] = 200;
  slab.final_observation<std::uint8_t>(1, slot)[1] = 9;
  *slab.final_observation<double>(3, slot) = 8;
  encoder.EncodeFinal(slab, slot, {.image = image.data(), .numbers = numbers});
  EXPECT_THAT(image, ElementsAre(std::byte{120}, std::byte{7}, std::byte{200}, std::byte{9}));
  EXPECT_THAT(numbers, ElementsAre(1, 0, 1, 0, 1, 8));

  slab.is_first(2)[0] = 1;
  encoder.Encode(slab, 2, 0, 1, {.image = image.data(), .numbers = numbers});
  EXPECT_THAT(image, ElementsAre(std::byte{0}, std::byte{0}, std::byte{120}, std::byte{7}));
  EXPECT_THAT(numbers, ElementsAre(0, 0, 0, 1, 0, 1));
}

TEST(ObservationEncoderTest, SeveralImagesAreTooManyForConvolutionsAndNumbersToOthers) {
  const LeafSpec left = LeafSpec::Box("left", DataType::kUint8, {1, 2, 2}, {0}, {255});
  LeafSpec right = left;
  right.name = "right";
  try {
    const ObservationEncoder encoder(Spec({left, right}));
    FAIL() << "two images were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("'left' and 'right' are images"));
  }
  EXPECT_EQ(ObservationEncoder(Spec({left, right}), 1, /*reads_frames=*/false).numbers(), 8);
}

TEST(ObservationEncoderTest, PixelsAreNumbersToANetworkThatReadsNoFrames) {
  const Spec spec({LeafSpec::Box("observation/image", DataType::kUint8, {1, 1, 2}, {0}, {255}),
                   LeafSpec::Box("observation/place", DataType::kFloat32, {1}, {0}, {9})});
  Slab slab({.observation = spec,
             .action = Spec({LeafSpec::Discrete("action", 2)}),
             .horizon = 1,
             .columns = ColumnLayout::Single(1)});
  slab.observation<std::uint8_t>(0, 0)[0] = 255;
  slab.observation<std::uint8_t>(0, 0)[1] = 51;
  *slab.observation<float>(1, 0) = 8;
  const ObservationEncoder encoder(spec, /*frame_stack=*/1, /*reads_frames=*/false);
  float out[3];
  encoder.Encode(slab, 0, 0, 1, {.numbers = out});
  EXPECT_THAT(out, ElementsAre(1, 0.2F, 8));
  const ObservationEncoder alone(Spec({spec[0]}), /*frame_stack=*/1, /*reads_frames=*/false);
  EXPECT_EQ(alone.encoded().dtype, DataType::kFloat32);
  EXPECT_EQ(alone.numbers_in_place(), -1);
}

}  // namespace
}  // namespace menger
