#include "menger/networks/noisy_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kInputs = 3;
constexpr int kRows = 5;

NetworkSpec SmallSpec() {
  NetworkSpec spec;
  spec.options.hidden = {6};
  spec.options.shared_trunk = true;
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {kInputs}, {-1}, {1});
  spec.heads = {{.name = "advantage", .width = 2}, {.name = "value", .width = 1}};
  return spec;
}

std::unique_ptr<Network> Plain() {
  Random random = Random::FromSeed(3);
  return MakeNetwork(SmallSpec(), random, 1);
}

std::vector<float> Normals(std::size_t count, std::uint64_t seed) {
  Random random = Random::FromSeed(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

const std::vector<float> kObservations = Normals(kRows * kInputs, 1);
const NetworkInput kInput = {.observations = kObservations.data(), .rows = kRows};
const CounterRandom kRandom(/*seed=*/7, /*stream=*/1);

std::vector<float> Outputs(Network& network) {
  std::vector<float> all;
  for (const Matrix& output : network.Infer(kInput)) {
    for (int row = 0; row < output.rows; ++row) {
      all.insert(all.end(), output.row(row), output.row(row) + output.columns);
    }
  }
  return all;
}

TEST(NoisyNetworkTest, WithoutADrawItIsTheNetworkInside) {
  NoisyNetwork noisy(Plain(), 0.5);
  EXPECT_EQ(Outputs(noisy), Outputs(*Plain()));
}

TEST(NoisyNetworkTest, SigmaStartsAtItsOptionOverTheRootOfTheInputs) {
  NoisyNetwork noisy(Plain(), 0.5);
  const auto plain = Plain();
  EXPECT_EQ(noisy.manifest().size(), 2 * plain->manifest().size());  // All its layers are dense.
  const ParameterEntry& entry = *noisy.manifest().Find("trunk/0/weight/sigma");
  EXPECT_EQ(entry.shape, (Shape{kInputs, 6}));
  for (std::int64_t i = 0; i < entry.elements(); ++i) {
    EXPECT_FLOAT_EQ(noisy.parameters()[entry.offset + i], 0.5 / std::sqrt(kInputs));
  }
}

TEST(NoisyNetworkTest, NoiseIsAFunctionOfSeedAndStepAndDiffersBetweenSteps) {
  NoisyNetwork first(Plain(), 0.5);
  NoisyNetwork second(Plain(), 0.5);
  first.DrawNoise(kRandom, 1);
  second.DrawNoise(kRandom, 2);
  EXPECT_NE(Outputs(first), Outputs(second));
  second.DrawNoise(kRandom, 1);
  EXPECT_EQ(Outputs(first), Outputs(second));
  const auto clone = first.Clone(1);
  EXPECT_EQ(Outputs(*clone), Outputs(*Plain()));
}

// The noise of one dense layer without hidden ones is read off the identity: outputs of unit
// vectors are rows of the weights.
TEST(NoisyNetworkTest, NoiseOfALayerIsAnOuterProductOfTransformedNormals) {
  NetworkSpec spec;
  spec.options.hidden = {};
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {2}, {-1}, {1});
  spec.heads = {{.name = "value", .width = 3}};
  Random random = Random::FromSeed(3);
  NoisyNetwork noisy(MakeNetwork(spec, random, 1), std::sqrt(2.0));  // sigma = 1.
  std::ranges::fill(noisy.parameters().first(2 * 3 + 3), 0.0F);      // mu = 0.
  noisy.ParametersChanged();

  const std::vector<float> probes = {0, 0, 1, 0, 0, 1};
  double squares = 0;
  double fourth_powers = 0;
  constexpr int kDraws = 20'000;
  for (int draw = 0; draw < kDraws; ++draw) {
    noisy.DrawNoise(kRandom, draw);
    const Matrix out = noisy.Infer({.observations = probes.data(), .rows = 3})[0];
    const float* const bias = out.row(0);                      // f(y)
    const double input = (out.row(1)[0] - bias[0]) / bias[0];  // f(x_0)
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(out.row(1)[j] - bias[j], input * bias[j], 1e-4 * (1 + std::abs(input)));
    }
    squares += bias[1] * bias[1];
    fourth_powers += std::pow(bias[1], 4);
  }
  // f(y)^2 = |y|: its mean is sqrt(2/pi), and f(y)^4 = y^2 has mean 1.
  EXPECT_NEAR(squares / kDraws, std::sqrt(2 / M_PI), 0.02);
  EXPECT_NEAR(fourth_powers / kDraws, 1.0, 0.05);
}

TEST(NoisyNetworkTest, GradientsOfMuAndSigmaEqualDifferenceQuotients) {
  NoisyNetwork noisy(Plain(), 0.5);
  noisy.DrawNoise(kRandom, 5);
  const auto slopes = Normals(kRows * 3, 2);
  std::vector<float> copy = slopes;
  const Matrix gradients[] = {
      {.data = copy.data(), .rows = kRows, .columns = 2, .stride = 2},
      {.data = copy.data() + kRows * 2L, .rows = kRows, .columns = 1, .stride = 1}};
  const auto loss = [&] {
    noisy.ParametersChanged();
    const auto outputs = Outputs(noisy);
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      sum += static_cast<double>(outputs[i]) * slopes[i];
    }
    return sum;
  };
  noisy.Forward(kInput);
  noisy.Backward(gradients);
  for (std::size_t i = 0; i < noisy.parameters().size(); ++i) {
    constexpr float kStep = 1e-2F;
    float& parameter = noisy.parameters()[i];
    const float kept = parameter;
    parameter = kept + kStep;
    const double above = loss();
    parameter = kept - kStep;
    const double below = loss();
    parameter = kept;
    EXPECT_NEAR(noisy.gradients()[i], (above - below) / (2 * kStep), 2e-3) << i;
  }
}

TEST(NoisyNetworkTest, ANetworkWithoutADenseLayerIsRefused) {
  NetworkSpec spec = SmallSpec();
  spec.heads = {{.name = "log_std", .width = 2, .constant = true}};
  spec.options.shared_trunk = false;
  Random random = Random::FromSeed(3);
  EXPECT_THROW(NoisyNetwork(MakeNetwork(spec, random, 1), 0.5), Error);
}

}  // namespace
}  // namespace menger
