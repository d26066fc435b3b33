// MlpNetwork with network.layer_norm.
#include "menger/networks/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/layer_norm_test_values.h"
#include "menger/networks/mlp_testing.h"
#include "menger/networks/noisy_network.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

NetworkSpec NormalisedTanh() {
  NetworkSpec spec =
      MakeSpec(5, {11, 40}, {{.name = "policy", .width = 2}, {.name = "value", .width = 1}});
  spec.options.layer_norm = true;
  return spec;
}

NetworkSpec NormalisedRelu() {
  NetworkSpec spec = MakeSpec(3, {12, 20},
                              {{.name = "policy", .width = 4},
                               {.name = "log_std", .width = 3, .constant = true},
                               {.name = "value", .width = 1}});
  spec.options.layer_norm = true;
  spec.options.shared_trunk = true;
  spec.options.activation = "relu";
  return spec;
}

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all = {&Avx2Kernels()};
  if (HasAvx512()) all.push_back(&Avx512Kernels());
  return all;
}

float Largest(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Every number, or every few, of what torch computed: within 1e-5 of the largest of its array.
void ExpectRecorded(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-5f * Largest(actual)) << i;
  }
}

void ExpectRecordedGradient(Network& network, std::span<const float> expected, int every) {
  for (const ParameterEntry& entry : network.manifest().entries()) {
    const float largest = Largest(
        network.gradients().subspan(entry.offset, static_cast<std::size_t>(entry.elements())));
    for (std::int64_t i = entry.offset; i < entry.offset + entry.elements(); ++i) {
      if (i % every != 0) continue;
      ASSERT_LT(i / every, std::ssize(expected));
      EXPECT_NEAR(network.gradients()[i], expected[i / every], 1e-5f * largest) << entry.name << i;
    }
  }
}

std::vector<float> InputGradient(Network& network, const NetworkSpec& spec, int rows) {
  const auto x = RecordedInput(rows * spec.observation.elements(), 2, 1.0f);
  std::vector<float> gradient(x.size(), 7.0f);
  network.Forward({.observations = x.data(), .rows = rows});
  network.Backward(OutputGradients(spec, rows).matrices, {.inputs = gradient.data()});
  return gradient;
}

TEST(LayerNormTest, OutputsAndGradientsAreWhatTorchGives) {
  for (const Kernels* const kernels : AllKernels()) {
    MlpNetwork tanh = MakeRecorded(NormalisedTanh(), 1, *kernels);
    SetRecordedParameters(tanh);
    ExpectRecorded(InputGradient(tanh, NormalisedTanh(), 9), recorded::kNormTanhInputGradient);
    ExpectRecordedGradient(tanh, recorded::kNormTanhGradient, 7);
    ExpectRecorded(RunPass(tanh, NormalisedTanh(), 9).outputs, recorded::kNormTanhOutputs);
    MlpNetwork relu = MakeRecorded(NormalisedRelu(), 1, *kernels);
    SetRecordedParameters(relu);
    ExpectRecorded(InputGradient(relu, NormalisedRelu(), 7), recorded::kNormReluInputGradient);
    ExpectRecordedGradient(relu, recorded::kNormReluGradient, 5);
    ExpectRecorded(RunPass(relu, NormalisedRelu(), 7).outputs, recorded::kNormReluOutputs);
  }
}

TEST(LayerNormTest, TheGradientOfTheInputsIsThatOfDifferences) {
  for (NetworkSpec spec : {NormalisedTanh(), NormalisedRelu()}) {
    spec.options.activation = "tanh";  // Smooth.
    MlpNetwork network = MakeRecorded(spec);
    const auto gradient = InputGradient(network, spec, 5);
    const auto expected = InputDifferences(network, spec, 5);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(gradient[i], expected[i], 2e-3 * (1.0 + std::abs(expected[i]))) << i;
    }
  }
}

TEST(LayerNormTest, InferGivesTheBitsOfForwardWhateverTheBatch) {
  for (const NetworkSpec& spec : {NormalisedTanh(), NormalisedRelu()}) {
    MlpNetwork network = MakeRecorded(spec);
    SetRecordedParameters(network);
    const auto elements = spec.observation.elements();
    const auto x = RecordedInput(200 * elements, 2, 1.0f);
    const auto whole = Flatten(network.Forward({.observations = x.data(), .rows = 200}));
    EXPECT_EQ(Flatten(network.Infer({.observations = x.data(), .rows = 200})), whole);
    for (const int rows : {1, 2, 13, 65}) {
      const auto outputs = network.Infer({.observations = x.data() + 7 * elements, .rows = rows});
      std::size_t head_start = 0;
      for (const Matrix& output : outputs) {
        for (int i = 0; i < rows * output.columns; ++i) {
          ASSERT_EQ(output.row(i / output.columns)[i % output.columns],
                    whole[head_start + 7 * output.columns + i]);
        }
        head_start += 200 * static_cast<std::size_t>(output.columns);
      }
    }
  }
}

TEST(LayerNormTest, NothingDependsOnThreadsOrInstructionSetToTheLastBit) {
  for (NetworkSpec spec : {NormalisedTanh(), NormalisedRelu()}) {
    spec.options.hidden = {64, 72};
    for (const int rows : {1, 60, 300, 700}) {
      MlpNetwork one = MakeRecorded(spec, 1, Avx2Kernels());
      const Pass expected = RunPass(one, spec, rows);
      const auto expected_inputs = InputGradient(one, spec, rows);
      EXPECT_EQ(expected.inferred, expected.outputs);
      for (const Kernels* const kernels : AllKernels()) {
        for (const int threads : {1, 2, 3}) {
          MlpNetwork several = MakeRecorded(spec, threads, *kernels);
          EXPECT_EQ(RunPass(several, spec, rows), expected) << threads << " threads, " << rows;
          EXPECT_EQ(InputGradient(several, spec, rows), expected_inputs);
          EXPECT_EQ(RunPass(*several.Clone(threads), spec, rows), expected);
        }
      }
    }
  }
}

TEST(LayerNormTest, GradientsOfInputsAloneAreThoseBesideParametersAndLeaveTheseAlone) {
  const NetworkSpec spec = NormalisedTanh();
  MlpNetwork network = MakeRecorded(spec);
  const auto together = InputGradient(network, spec, 300);
  const auto x = RecordedInput(300 * 5, 2, 1.0f);
  std::vector<float> alone(x.size());
  network.Forward({.observations = x.data(), .rows = 300});
  std::ranges::fill(network.gradients(), 5.0f);
  network.Backward(OutputGradients(spec, 300).matrices,
                   {.parameters = false, .inputs = alone.data()});
  EXPECT_EQ(alone, together);
  EXPECT_TRUE(std::ranges::all_of(network.gradients(), [](float g) { return g == 5.0f; }));
}

// Of a layer of one unit all that is left is the bias, of rows that are one number nothing is
// divided by zero.
TEST(LayerNormTest, OneUnitAndRowsWithoutVarianceAreFinite) {
  NetworkSpec spec = MakeSpec(2, {1, 9}, {{.name = "value"}});
  spec.options.layer_norm = true;
  MlpNetwork network = MakeRecorded(spec);
  std::ranges::fill(network.parameters(), 0.5f);
  network.ParametersChanged();
  for (const float value : RunPass(network, spec, 3).outputs) {
    EXPECT_NEAR(value, 0.5 + 9 * 0.5 * std::tanh(0.5), 1e-6);
  }
  for (const float slope : InputGradient(network, spec, 3)) EXPECT_EQ(slope, 0.0f);
}

// Values of two passes by hand, in double precision.
TEST(LayerNormTest, RowsOfAnyWidthAndMeanAreNormalised) {
  for (const int columns : {1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 256}) {
    for (const float mean : {0.0f, 1000.0f}) {
      std::vector<float> row(Padded(columns));
      const auto values = RecordedInput(columns, 4, 2.0f);
      double sum = 0;
      for (int i = 0; i < columns; ++i) sum += row[i] = values[i] + mean;
      double squares = 0;
      for (int i = 0; i < columns; ++i) squares += std::pow(row[i] - sum / columns, 2);
      const auto gain = RecordedInput(Padded(columns), 5, 1.0f);
      const auto bias = RecordedInput(Padded(columns), 6, 1.0f);
      for (const Kernels* const kernels : AllKernels()) {
        std::vector<float> normalised(row.size());
        std::vector<float> output(row.size());
        float inverse = 0;
        kernels->layer_norm({row.data(), normalised.data(), &inverse, output.data(), gain.data(),
                             bias.data(), /*rows=*/1, columns});
        const double scale = 1 / std::sqrt(squares / columns + kLayerNormEpsilon);
        EXPECT_NEAR(inverse, scale, 2e-4 * scale);
        for (int i = 0; i < columns; ++i) {
          const double expected = (row[i] - sum / columns) * scale;
          EXPECT_NEAR(normalised[i], expected, mean > 0 ? 5e-4 : 1e-6) << columns;
          EXPECT_NEAR(output[i], normalised[i] * double{gain[i]} + bias[i], 1e-6);
        }
        EXPECT_TRUE(std::all_of(normalised.begin() + columns, normalised.end(),
                                [](float padding) { return padding == 0.0f; }));
      }
    }
  }
}

TEST(LayerNormTest, TheManifestHasAGainAndABiasForEachHiddenLayer) {
  MlpNetwork network = MakeRecorded(NormalisedRelu());
  std::vector<std::string> names;
  for (const ParameterEntry& entry : network.manifest().entries()) {
    if (entry.name.find("norm") != std::string::npos) names.push_back(entry.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"trunk/0/norm/gain", "trunk/0/norm/bias",
                                             "trunk/1/norm/gain", "trunk/1/norm/bias"}));
  const ParameterEntry& gain = *network.manifest().Find("trunk/1/norm/gain");
  const ParameterEntry& bias = *network.manifest().Find("trunk/1/norm/bias");
  EXPECT_EQ(gain.shape, (Shape{20}));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(network.parameters()[gain.offset + i], 1.0f);
    EXPECT_EQ(network.parameters()[bias.offset + i], 0.0f);
  }
}

TEST(LayerNormTest, NoiseIsInWeightsNotInGains) {
  const NetworkSpec spec = NormalisedRelu();
  Random random = Random::FromSeed(3);
  NoisyNetwork noisy(MakeNetwork(spec, random, 1), 0.5);
  EXPECT_NE(noisy.manifest().Find("trunk/0/weight/sigma"), nullptr);
  EXPECT_EQ(noisy.manifest().Find("trunk/0/norm/gain/sigma"), nullptr);
  EXPECT_EQ(noisy.manifest().Find("trunk/0/norm/bias/sigma"), nullptr);
  noisy.DrawNoise(CounterRandom(/*seed=*/7, /*stream=*/1), 3);
  const Pass pass = RunPass(noisy, spec, 6);
  EXPECT_EQ(pass.inferred, pass.outputs);
  const auto loss = [&] {
    noisy.ParametersChanged();
    const auto outputs = RunPass(noisy, spec, 6).outputs;
    double sum = 0;
    std::size_t i = 0;
    for (const auto& gradient : OutputGradients(spec, 6).values) {
      for (const float slope : gradient) sum += double{slope} * outputs[i++];
    }
    return sum;
  };
  for (const char* const name : {"trunk/1/norm/gain", "trunk/1/norm/bias", "policy/0/bias/sigma"}) {
    const std::int64_t at = noisy.manifest().Find(name)->offset;
    const float before = noisy.parameters()[at];
    noisy.parameters()[at] = before + 0x1p-8f;
    const double above = loss();
    noisy.parameters()[at] = before - 0x1p-8f;
    const double slope = (above - loss()) * 0x1p7;
    noisy.parameters()[at] = before;
    EXPECT_NEAR(pass.gradients[at], slope, 5e-3 * (1 + std::abs(slope))) << name;
  }
}

TEST(LayerNormTest, WhatIsNotNormalisedIsRefusedByName) {
  const auto text_of = [](const NetworkSpec& spec) -> std::string {
    Random random = Random::FromSeed(1);
    try {
      MakeNetwork(spec, random, 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  };
  for (const char* const kind : {"lstm", "nature_cnn", "a3c_cnn"}) {
    NetworkSpec spec = NormalisedTanh();
    spec.options.kind = kind;
    EXPECT_THAT(text_of(spec), AllOf(HasSubstr("network.layer_norm = true"), HasSubstr(kind),
                                     HasSubstr("\"mlp\""), HasSubstr("false")));
  }
  NetworkSpec spec = NormalisedTanh();
  spec.precision = "bf16";
  EXPECT_THAT(text_of(spec), AllOf(HasSubstr("network.layer_norm = true"), HasSubstr("bf16")));
  spec = NormalisedTanh();
  spec.device = "cuda";
  EXPECT_THAT(text_of(spec), AllOf(HasSubstr("network.layer_norm = true"), HasSubstr("\"cuda\"")));
}

}  // namespace
}  // namespace menger
