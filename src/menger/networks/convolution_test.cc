#include "menger/networks/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

// Everything here is computed from small integers: exact in any order, and so compared to the last
// bit with the definition of a convolution.

Bf16 Rounded(float value) {  // To nearest, ties to even.
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<Bf16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float Float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

using Geometry = Convolution::Shape;

// Images in planes, [channels][height][width], as parameters count them.
struct Reference {
  explicit Reference(const Geometry& shape, std::uint64_t seed)
      : shape(shape),
        out_height((shape.height - shape.kernel) / shape.stride + 1),
        out_width((shape.width - shape.kernel) / shape.stride + 1) {
    Random random = Random::FromSeed(seed);
    const auto fill = [&](std::vector<float>& values, int size, int low, int high) {
      for (int i = 0; i < size; ++i) {
        values.push_back(
            static_cast<float>(low + static_cast<int>(random.Integers(0, high - low))));
      }
    };
    fill(input, shape.channels * shape.height * shape.width, 0, 4);
    fill(weights, shape.outputs * shape.channels * shape.kernel * shape.kernel, -1, 2);
    fill(bias, shape.outputs, -3, 4);
    fill(gradient, shape.outputs * out_height * out_width, -2, 3);
  }

  // visit(input, weight, output): every product of the convolution, by its indices.
  template <typename Visit>
  void ForAll(Visit&& visit) const {
    for (int o = 0; o < shape.outputs; ++o) {
      for (int c = 0; c < shape.channels; ++c) {
        for (int i = 0; i < shape.kernel * shape.kernel; ++i) {
          const int weight = (o * shape.channels + c) * shape.kernel * shape.kernel + i;
          for (int pixel = 0; pixel < out_height * out_width; ++pixel) {
            const int y = pixel / out_width * shape.stride + i / shape.kernel;
            const int x = pixel % out_width * shape.stride + i % shape.kernel;
            visit((c * shape.height + y) * shape.width + x, weight,
                  o * out_height * out_width + pixel);
          }
        }
      }
    }
  }

  const Geometry shape;
  const int out_height;
  const int out_width;
  std::vector<float> input;
  std::vector<float> weights;
  std::vector<float> bias;
  std::vector<float> gradient;
};

// From planes to channels last; `start` and `row` as of a padded gradient.
std::vector<Bf16> ChannelsLast(const std::vector<float>& planes, int channels, int width,
                               std::ptrdiff_t size, std::ptrdiff_t start, std::ptrdiff_t row) {
  std::vector<Bf16> image(static_cast<std::size_t>(size));
  const int pixels = static_cast<int>(planes.size()) / channels;
  for (int c = 0; c < channels; ++c) {
    for (int pixel = 0; pixel < pixels; ++pixel) {
      image[start + pixel / width * row + pixel % width * channels + c] =
          Rounded(planes[c * pixels + pixel]);
    }
  }
  return image;
}

// What the convolution under test reads.
std::vector<Bf16> InputOf(const Reference& reference, const Convolution& convolution) {
  const Geometry& shape = reference.shape;
  if (!shape.reads_blocks) {
    return ChannelsLast(reference.input, shape.channels, shape.width, convolution.input_size(), 0,
                        shape.width * shape.channels);
  }
  const std::vector<std::uint8_t> pixels(reference.input.begin(), reference.input.end());
  std::vector<Bf16> blocks(static_cast<std::size_t>(convolution.input_size()));
  BlocksOfFrames({.frames = shape.channels,
                  .height = shape.height,
                  .width = shape.width,
                  .rows = convolution.out_height() + 1,
                  .columns = convolution.out_width() + 1},
                 pixels.data(), blocks.data());
  return blocks;
}

std::vector<Bf16> GradientOf(const Reference& reference, const Convolution& convolution) {
  return ChannelsLast(reference.gradient, reference.shape.outputs, reference.out_width,
                      convolution.gradient_size(), convolution.gradient_start(),
                      convolution.gradient_row());
}

class ConvolutionTest : public testing::TestWithParam<Geometry> {
 protected:
  void SetUp() override {
    if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  }
};

TEST_P(ConvolutionTest, ItsOutputsAreThoseOfItsDefinition) {
  const Reference reference(GetParam(), /*seed=*/1);
  Convolution convolution(GetParam(), /*scale=*/0.5f);
  convolution.SetWeights(reference.weights.data());
  std::vector<float> expected(reference.gradient.size());
  reference.ForAll([&](int input, int weight, int output) {
    expected[output] += reference.input[input] * reference.weights[weight] * 0.5f;
  });
  const int pixels = reference.out_height * reference.out_width;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::max(expected[i] + reference.bias[i / pixels], 0.0f);
  }
  std::vector<Bf16> actual(expected.size());
  convolution.Forward(InputOf(reference, convolution).data(), reference.bias.data(), actual.data());
  EXPECT_EQ(actual,
            ChannelsLast(expected, GetParam().outputs, reference.out_width,
                         convolution.output_size(), 0, reference.out_width * GetParam().outputs));
}

TEST_P(ConvolutionTest, TheGradientOfItsInputIsThatOfItsDefinition) {
  if (GetParam().reads_blocks) return;  // It has none.
  const Reference reference(GetParam(), /*seed=*/2);
  Convolution convolution(GetParam(), /*scale=*/1.0f);
  convolution.SetWeights(reference.weights.data());
  std::vector<float> expected(reference.input.size());
  reference.ForAll([&](int input, int weight, int output) {
    expected[input] += reference.gradient[output] * reference.weights[weight];
  });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (reference.input[i] == 0) expected[i] = 0;  // Through the relu that made the input.
  }
  const Geometry& shape = GetParam();
  const std::ptrdiff_t row = shape.width * shape.channels;
  std::vector<Bf16> actual(static_cast<std::size_t>(convolution.input_size()));
  convolution.InputGradient(GradientOf(reference, convolution).data(),
                            InputOf(reference, convolution).data(), actual.data(), row);
  // 0 and -0 are the same gradient.
  std::ranges::replace(actual, Bf16{0x8000}, Bf16{0});
  EXPECT_EQ(actual,
            ChannelsLast(expected, shape.channels, shape.width, convolution.input_size(), 0, row));
}

TEST_P(ConvolutionTest, TheGradientOfItsWeightsSumsOverThePairAndTheSlices) {
  const Convolution convolution(GetParam(), /*scale=*/0.5f);
  const std::ptrdiff_t distance = convolution.weights() + GetParam().outputs;
  std::vector<float> expected(static_cast<std::size_t>(convolution.weights()));
  std::vector<float> expected_bias(GetParam().outputs);
  std::vector<float> sums(static_cast<std::size_t>(2 * distance), 99.0f);
  std::vector<Bf16Pair> inputs(static_cast<std::size_t>(convolution.input_size()));
  std::vector<Bf16Pair> gradients(static_cast<std::size_t>(convolution.output_size()));
  for (const int slice : {0, 1, 1}) {  // The second slice sums the same two pairs twice.
    const Reference first(GetParam(), 3 + slice);
    const Reference second(GetParam(), 5 + slice);
    for (const Reference* const reference : {&first, &second}) {
      reference->ForAll([&](int input, int weight, int output) {
        expected[weight] += reference->input[input] * reference->gradient[output] * 0.5f;
      });
      const int pixels = reference->out_height * reference->out_width;
      for (std::size_t i = 0; i < reference->gradient.size(); ++i) {
        expected_bias[i / pixels] += reference->gradient[i];
      }
    }
    const std::vector<Bf16> images[] = {InputOf(first, convolution), InputOf(second, convolution)};
    Interleave(images[0].data(), images[1].data(), convolution.input_size(), inputs.data());
    convolution.InterleaveGradients(GradientOf(first, convolution).data(),
                                    GradientOf(second, convolution).data(), gradients.data());
    convolution.WeightGradient(inputs.data(), gradients.data(), sums[slice * distance] != 99.0f,
                               sums.data() + slice * distance);
  }
  std::vector<float> actual(expected.size());
  convolution.AddUp(sums.data(), 2, distance, actual.data());
  EXPECT_EQ(actual, expected);
  for (int output = 0; output < GetParam().outputs; ++output) {
    const std::ptrdiff_t place = convolution.weights() + output;
    EXPECT_EQ(sums[place] + sums[distance + place], expected_bias[output]);
  }
}

// Nature's three layers and the two of A3C in small, with widths that leave rests everywhere.
INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTest,
    testing::Values(Geometry{4, 84, 84, 32, 8, 4, true}, Geometry{32, 20, 20, 64, 4, 2},
                    Geometry{64, 9, 9, 64, 3, 1}, Geometry{3, 39, 30, 16, 8, 4, true},
                    Geometry{1, 8, 13, 32, 8, 4, true}, Geometry{16, 7, 30, 32, 4, 2},
                    Geometry{16, 4, 5, 16, 3, 1}));

TEST(Bf16KernelsTest, PixelsOfTwoScreensInterleaveAsTheirBlocksDo) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const FrameBlocks shape = {.frames = 2, .height = 13, .width = 23, .rows = 3, .columns = 5};
  Random random = Random::FromSeed(8);
  std::vector<std::uint8_t> screens(2 * 2 * 13 * 23);
  for (auto& pixel : screens) pixel = static_cast<std::uint8_t>(random.Integers(0, 256));
  const std::uint8_t* const second = screens.data() + screens.size() / 2;
  const int size = 3 * 5 * 2 * 16;
  std::vector<Bf16> blocks(2 * size);
  BlocksOfFrames(shape, screens.data(), blocks.data());
  BlocksOfFrames(shape, second, blocks.data() + size);
  EXPECT_EQ(Float(blocks[(1 * 5 + 3) * 32 + 16 + 2 * 4 + 1]),  // Block (1, 3), frame 1, (2, 1).
            screens[13 * 23 + (4 + 2) * 23 + 12 + 1]);
  std::vector<Bf16Pair> expected(size);
  std::vector<Bf16Pair> actual(size);
  for (const bool both : {true, false}) {
    Interleave(blocks.data(), both ? blocks.data() + size : nullptr, size, expected.data());
    InterleavedBlocks(shape, screens.data(), both ? second : nullptr, actual.data());
    EXPECT_EQ(actual, expected);
  }
}

TEST(Bf16KernelsTest, ATransposedPanelHoldsPairsOfNeighboursInARow) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  Random random = Random::FromSeed(9);
  std::vector<float> weights(32 * 64);
  for (float& weight : weights) weight = static_cast<float>(random.Normal());
  std::vector<Bf16Pair> panel(32 * 32);
  PackTransposedPanel(weights.data(), 32, 64, panel.data());
  for (int pair = 0; pair < 32; ++pair) {
    for (int row = 0; row < 32; ++row) {
      const float* const two = weights.data() + row * 64 + 2 * pair;
      ASSERT_EQ(panel[pair * 32 + row], Rounded(two[0]) | Bf16Pair{Rounded(two[1])} << 16);
    }
  }
}

}  // namespace
}  // namespace menger
