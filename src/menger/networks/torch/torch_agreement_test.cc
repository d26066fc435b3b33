#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/cnn.h"
#include "menger/networks/network.h"
#include "menger/networks/torch/torch_network.h"

// One network, two implementations: vector kernels of ours, and libtorch.

namespace menger {
namespace {

NetworkSpec PolicyAndValue(std::vector<std::int64_t> hidden, bool shared_trunk) {
  NetworkSpec spec;
  spec.options.hidden = std::move(hidden);
  spec.options.shared_trunk = shared_trunk;
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {6}, {-10.0}, {10.0});
  spec.heads = {{.name = "policy", .width = 4, .gain = 0.5},
                {.name = "log_std", .width = 4, .constant = true, .bias = -0.5},
                {.name = "value", .width = 1, .bias = 0.25}};
  return spec;
}

void ExpectNear(std::span<const float> actual, std::span<const float> expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
  }
}

void ExpectAgreement(const NetworkSpec& spec) {
  Random for_ours = Random::FromSeed(7);
  Random for_torch = Random::FromSeed(7);
  const std::unique_ptr<Network> ours = MakeNetwork(spec, for_ours, /*threads=*/1);
  const std::unique_ptr<Network> torch(menger_make_torch_network(&spec, &for_torch, /*threads=*/1));
  ASSERT_EQ(torch->manifest().ToText(), ours->manifest().ToText());
  ExpectNear(torch->parameters(), ours->parameters(), 0.0);

  constexpr int kRows = 37;
  Random random = Random::FromSeed(3);
  std::vector<float> observations(kRows * 6);
  for (float& value : observations) value = static_cast<float>(random.Normal());
  std::vector<float> weights(kRows * 4);
  for (float& value : weights) value = static_cast<float>(random.Normal() / kRows);
  const NetworkInput input{.observations = observations.data(), .rows = kRows};
  const auto ours_outputs = ours->Forward(input);
  const auto torch_outputs = torch->Forward(input);
  std::vector<Matrix> gradients;
  for (std::size_t head = 0; head < ours_outputs.size(); ++head) {
    const int columns = ours_outputs[head].columns;
    ASSERT_EQ(torch_outputs[head].columns, columns);
    for (int row = 0; row < kRows; ++row) {
      const auto size = static_cast<std::size_t>(columns);
      ExpectNear({torch_outputs[head].row(row), size}, {ours_outputs[head].row(row), size}, 1e-5);
    }
    gradients.push_back({weights.data(), kRows, columns, /*stride=*/4});
  }
  ours->Backward(gradients);
  torch->Backward(gradients);
  ExpectNear(torch->gradients(), ours->gradients(), 1e-5);
}

TEST(TorchAgreementTest, OurKernelsAndLibtorchStartAlikeAndAgree) {
  for (const char* const activation : {"tanh", "relu"}) {
    for (const bool shared_trunk : {false, true}) {
      NetworkSpec spec = PolicyAndValue({64, 48}, shared_trunk);
      spec.options.activation = activation;
      ExpectAgreement(spec);
    }
  }
}

TEST(TorchAgreementTest, OurKernelsAndLibtorchAgreeWithoutHiddenLayers) {
  ExpectAgreement(PolicyAndValue({}, /*shared_trunk=*/false));
  ExpectAgreement(PolicyAndValue({}, /*shared_trunk=*/true));
}

// The cosine of the angle between two arrays; 1 if both are zero.
double Cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0.0;
  double squares[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    squares[0] += double{a[i]} * a[i];
    squares[1] += double{b[i]} * b[i];
  }
  if (squares[0] == 0.0 && squares[1] == 0.0) return 1.0;
  return product / std::sqrt(squares[0] * squares[1]);
}

// Bright rectangles on a dark ground, as in games: noise would look alike in all rows.
std::vector<std::uint8_t> Screens(const Shape& shape, int rows, Random& random) {
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random.Integers(0, below));
  };
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(rows * shape[0] * shape[1] * shape[2]),
                                   20);
  for (std::int64_t frame = 0; frame < rows * shape[0]; ++frame) {
    for (int rectangle = 0; rectangle < 4; ++rectangle) {
      const std::int64_t top = draw(shape[1] - 8);
      const std::int64_t left = draw(shape[2] - 8);
      const std::int64_t height = 2 + draw(shape[1] - top - 2);
      const std::int64_t width = 2 + draw(shape[2] - left - 2);
      const auto colour = static_cast<std::uint8_t>(draw(256));
      for (std::int64_t y = top; y < top + height; ++y) {
        std::fill_n(pixels.begin() + (frame * shape[1] + y) * shape[2] + left, width, colour);
      }
    }
  }
  return pixels;
}

void ExpectBfloatAgreement(const std::string& kind, const Shape& shape, int rows, int threads,
                           bool shared_trunk) {
  SCOPED_TRACE(fmt::format("{} {} rows {} threads {}", kind, ToString(shape), rows, threads));
  NetworkSpec spec;
  spec.options.kind = kind;
  spec.options.shared_trunk = shared_trunk;
  spec.observation = LeafSpec::Box("observation", DataType::kUint8, shape, {0.0}, {255.0});
  spec.heads = {{.name = "policy", .width = 6, .gain = 0.5},
                {.name = "log_std", .width = 4, .constant = true, .bias = -0.5},
                {.name = "value", .width = 1, .bias = 0.25}};
  Random for_ours = Random::FromSeed(7);
  Random for_torch = Random::FromSeed(7);
  const auto torch = std::unique_ptr<Network>(menger_make_torch_network(&spec, &for_torch, 1));
  spec.precision = "bf16";
  CnnNetwork ours(spec, for_ours, threads);
  ASSERT_EQ(ours.manifest().ToText(), torch->manifest().ToText());
  ExpectNear(ours.parameters(), torch->parameters(), 0.0);

  Random random = Random::FromSeed(3);
  for (const ParameterEntry& entry : ours.manifest().entries()) {
    if (entry.shape.size() > 1) continue;
    for (std::int64_t i = 0; i < entry.elements(); ++i) {
      ours.parameters()[entry.offset + i] += static_cast<float>(random.Uniform(-0.1, 0.1));
    }
  }
  std::ranges::copy(ours.parameters(), torch->parameters().begin());
  ours.ParametersChanged();
  torch->ParametersChanged();

  const std::vector<std::uint8_t> pixels = Screens(shape, rows, random);
  std::vector<float> weights(static_cast<std::size_t>(rows) * 6);
  for (float& weight : weights) weight = static_cast<float>(random.Normal() / rows);
  const NetworkInput input{.observations = pixels.data(), .rows = rows};
  const auto expected = torch->Forward(input);
  const auto outputs = ours.Forward(input);
  std::vector<Matrix> gradients;
  for (std::size_t head = 0; head < expected.size(); ++head) {
    const auto size = static_cast<std::size_t>(expected[head].columns);
    for (int row = 0; row < rows; ++row) {
      ExpectNear({outputs[head].row(row), size}, {expected[head].row(row), size}, 0.02);
    }
    gradients.push_back({weights.data(), rows, expected[head].columns, /*stride=*/6});
  }
  torch->Backward(gradients);
  ours.Backward(gradients);
  for (const ParameterEntry& entry : ours.manifest().entries()) {
    const auto part = [&](Network& network) {
      return network.gradients().subspan(static_cast<std::size_t>(entry.offset),
                                         static_cast<std::size_t>(entry.elements()));
    };
    // libtorch's own bfloat16 gives .991 to .9997 here.
    EXPECT_GT(Cosine(part(ours), part(*torch)), 0.985) << entry.name;
    double lengths[2] = {0.0, 0.0};
    for (const float value : part(ours)) lengths[0] += double{value} * value;
    for (const float value : part(*torch)) lengths[1] += double{value} * value;
    EXPECT_NEAR(std::sqrt(lengths[0] / lengths[1]), 1.0, 0.08) << entry.name;
  }
}

TEST(TorchAgreementTest, ConvolutionsInBfloatFollowLibtorchInSinglePrecision) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  ExpectBfloatAgreement("nature_cnn", {4, 84, 84}, /*rows=*/67, /*threads=*/2,
                        /*shared_trunk=*/true);
  ExpectBfloatAgreement("nature_cnn", {1, 46, 37}, /*rows=*/35, /*threads=*/1,
                        /*shared_trunk=*/false);
  ExpectBfloatAgreement("a3c_cnn", {4, 84, 84}, /*rows=*/64, /*threads=*/2, /*shared_trunk=*/true);
  ExpectBfloatAgreement("a3c_cnn", {3, 80, 104}, /*rows=*/33, /*threads=*/3,
                        /*shared_trunk=*/false);
}

TEST(TorchAgreementTest, MakeNetworkOpensTheLibraryForWhatOurKernelsCannotDo) {
  setenv("MENGER_TORCH_LIBRARY", TORCH_LIBRARY_FILE, /*overwrite=*/1);
  NetworkSpec spec = PolicyAndValue({16}, /*shared_trunk=*/false);
  spec.options.kind = "lstm";
  Random random = Random::FromSeed(7);
  const std::unique_ptr<Network> network = MakeNetwork(spec, random, /*threads=*/1);
  EXPECT_EQ(network->state_width(), 128);
}

}  // namespace
}  // namespace menger
