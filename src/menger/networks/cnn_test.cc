#include "menger/networks/cnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"

// Agreement with libtorch is tested where that is linked: torch/torch_agreement_test.cc.

namespace menger {
namespace {

using ::testing::HasSubstr;

NetworkSpec SpecOf(const std::string& kind, std::vector<std::int64_t> shape = {2, 46, 38}) {
  NetworkSpec spec;
  spec.options.kind = kind;
  spec.precision = "bf16";
  spec.observation =
      LeafSpec::Box("observation", DataType::kUint8, std::move(shape), {0.0}, {255.0});
  spec.heads = {{.name = "policy", .width = 6, .gain = 0.5},
                {.name = "log_std", .width = 2, .constant = true, .bias = -0.5},
                {.name = "value", .width = 1, .bias = 0.25}};
  return spec;
}

std::unique_ptr<CnnNetwork> Make(const NetworkSpec& spec, int threads = 1) {
  Random random = Random::FromSeed(7);
  return std::make_unique<CnnNetwork>(spec, random, threads);
}

std::vector<std::uint8_t> Pixels(const NetworkSpec& spec, int rows) {
  Random random = Random::FromSeed(3);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(spec.observation.elements() * rows));
  for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random.Integers(0, 256));
  return pixels;
}

std::vector<float> Copy(std::span<const Matrix> outputs) {
  std::vector<float> values;
  for (const Matrix& output : outputs) {
    for (int row = 0; row < output.rows; ++row) {
      values.insert(values.end(), output.row(row), output.row(row) + output.columns);
    }
  }
  return values;
}

std::vector<float> GradientsOf(CnnNetwork& network, const std::vector<std::uint8_t>& pixels,
                               int rows) {
  const auto outputs = network.Forward({.observations = pixels.data(), .rows = rows});
  Random random = Random::FromSeed(5);
  std::vector<float> numbers(static_cast<std::size_t>(rows) * 6);
  for (float& number : numbers) number = static_cast<float>(random.Normal());
  std::vector<Matrix> gradients;
  for (const Matrix& output : outputs) {
    gradients.push_back({numbers.data(), rows, output.columns, /*stride=*/6});
  }
  network.Backward(gradients);
  return {network.gradients().begin(), network.gradients().end()};
}

template <typename Body>
std::string TextOf(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class CnnTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  }
};

// 8,224 + 32,832 + 36,928 + 1,606,144 in the trunk, 3,078 + 513 in the heads (Mnih et al. 2015 for
// four frames).
TEST_F(CnnTest, TheNatureCnnHasItsPublishedSizeAndNeedsNoTorch) {
  NetworkSpec spec = SpecOf("nature_cnn", {4, 84, 84});
  spec.heads = {{.name = "policy", .width = 6}, {.name = "value", .width = 1}};
  spec.options.shared_trunk = true;
  Random random = Random::FromSeed(1);
  const auto network = MakeNetwork(spec, random, /*threads=*/1);
  EXPECT_EQ(network->manifest().size(), 1'687'719);
  spec.options.shared_trunk = false;  // Wang et al. 2016: a linear layer for each stream.
  EXPECT_EQ(MakeNetwork(spec, random, 1)->manifest().size(), 1'687'719 + 1'606'144);
  EXPECT_TRUE(network->batch_invariant());
}

TEST_F(CnnTest, NeitherTheBatchNorTheThreadsChangeABitOfTheOutputs) {
  for (const char* const kind : {"nature_cnn", "a3c_cnn"}) {
    const NetworkSpec spec = SpecOf(kind);
    constexpr int kRows = 37;
    const auto pixels = Pixels(spec, kRows);
    const NetworkInput input = {.observations = pixels.data(), .rows = kRows};
    const std::vector<float> expected = Copy(Make(spec)->Forward(input));
    const auto network = Make(spec, /*threads=*/3);
    EXPECT_EQ(Copy(network->Forward(input)), expected);
    EXPECT_EQ(Copy(network->Infer(input)), expected);
    for (int row = 0; row < kRows; ++row) {
      const NetworkInput one = {.observations = pixels.data() + row * spec.observation.elements(),
                                .rows = 1};
      const auto outputs = network->Infer(one);
      for (int action = 0; action < 6; ++action) {
        ASSERT_EQ(outputs[0].row(0)[action], expected[row * 6 + action]) << kind << " row " << row;
      }
    }
  }
}

TEST_F(CnnTest, TheThreadsDoNotChangeABitOfTheGradients) {
  for (const char* const kind : {"nature_cnn", "a3c_cnn"}) {
    const NetworkSpec spec = SpecOf(kind);
    for (const int rows : {1, 2, 99, 163}) {
      const auto pixels = Pixels(spec, rows);
      const std::vector<float> expected = GradientsOf(*Make(spec), pixels, rows);
      EXPECT_EQ(GradientsOf(*Make(spec, /*threads=*/3), pixels, rows), expected)
          << kind << " rows " << rows;
    }
  }
}

TEST_F(CnnTest, WhatIsReusedLeavesNothingBehind) {
  const NetworkSpec spec = SpecOf("nature_cnn");
  const auto pixels = Pixels(spec, 64);
  const auto network = Make(spec);
  const std::vector<float> small = GradientsOf(*Make(spec), pixels, 5);
  GradientsOf(*network, pixels, 64);
  EXPECT_EQ(GradientsOf(*network, pixels, 5), small);
}

TEST_F(CnnTest, InferBetweenForwardAndBackwardTakesNothingAway) {
  const NetworkSpec spec = SpecOf("a3c_cnn");
  const auto pixels = Pixels(spec, 8);
  const auto network = Make(spec);
  const std::vector<float> expected = GradientsOf(*network, pixels, 4);
  const auto outputs = network->Forward({.observations = pixels.data(), .rows = 4});
  Random random = Random::FromSeed(5);
  std::vector<float> numbers(4 * 6);
  for (float& number : numbers) number = static_cast<float>(random.Normal());
  std::vector<Matrix> gradients;
  for (const Matrix& output : outputs) gradients.push_back({numbers.data(), 4, output.columns, 6});
  network->Infer({.observations = pixels.data() + 3, .rows = 7});
  network->Backward(gradients);
  EXPECT_TRUE(std::ranges::equal(network->gradients(), expected));
}

TEST_F(CnnTest, NewParametersAreSeenAndAClonesAreItsOwn) {
  const NetworkSpec spec = SpecOf("nature_cnn");
  const auto pixels = Pixels(spec, 3);
  const NetworkInput input = {.observations = pixels.data(), .rows = 3};
  const auto network = Make(spec);
  const std::vector<float> before = Copy(network->Infer(input));
  const auto clone = network->Clone(/*threads=*/2);
  EXPECT_EQ(Copy(clone->Infer(input)), before);
  std::ranges::fill(clone->parameters(), 0.0f);
  clone->ParametersChanged();
  EXPECT_EQ(Copy(clone->Infer(input)), std::vector<float>(before.size(), 0.0f));
  EXPECT_EQ(Copy(network->Infer(input)), before);
}

TEST_F(CnnTest, ALossFallsAlongItsGradient) {
  const NetworkSpec spec = SpecOf("nature_cnn");
  constexpr int kRows = 16;
  const auto pixels = Pixels(spec, kRows);
  const NetworkInput input = {.observations = pixels.data(), .rows = kRows};
  const auto network = Make(spec);
  const auto loss = [&] {  // Of values that should be row / 16.
    const Matrix values = network->Infer(input)[2];
    double sum = 0.0;
    for (int row = 0; row < kRows; ++row) {
      const double error = *values.row(row) - row / 16.0;
      sum += error * error / kRows;
    }
    return sum;
  };
  const double before = loss();
  std::vector<float> zeros(kRows * 6);
  std::vector<float> errors(kRows);
  for (int step = 0; step < 300; ++step) {
    const auto outputs = network->Forward(input);
    for (int row = 0; row < kRows; ++row) {
      errors[row] = 2.0f / kRows * (*outputs[2].row(row) - static_cast<float>(row) / 16.0f);
    }
    const Matrix gradients[] = {
        {zeros.data(), kRows, 6, 6}, {zeros.data(), kRows, 2, 6}, {errors.data(), kRows, 1, 1}};
    network->Backward(gradients);
    for (std::size_t i = 0; i < network->parameters().size(); ++i) {
      network->parameters()[i] -= 0.01f * network->gradients()[i];
    }
    network->ParametersChanged();
  }
  EXPECT_LT(loss(), 0.1 * before);
}

TEST_F(CnnTest, WhatDoesNotFitIsRefused) {
  NetworkSpec vector = SpecOf("nature_cnn");
  vector.observation = LeafSpec::Box("observation", DataType::kFloat32, {4}, {-1.0}, {1.0});
  EXPECT_THAT(TextOf([&] { Make(vector); }), HasSubstr("uint8 images"));
  EXPECT_THAT(TextOf([&] { Make(SpecOf("nature_cnn", {4, 20, 84})); }), HasSubstr("too small"));
  const NetworkSpec spec = SpecOf("a3c_cnn");
  const auto network = Make(spec);
  const auto pixels = Pixels(spec, 2);
  EXPECT_THAT(TextOf([&] { network->Infer({.observations = pixels.data(), .rows = 0}); }),
              HasSubstr("0 rows"));
  EXPECT_THAT(TextOf([&] { network->Backward({}); }), HasSubstr("Forward"));
  const auto outputs = network->Forward({.observations = pixels.data(), .rows = 2});
  EXPECT_THAT(TextOf([&] { network->Backward(outputs.first(1)); }), HasSubstr("3 heads"));
}

}  // namespace
}  // namespace menger
