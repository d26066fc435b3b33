#include "menger/networks/mlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/mlp_testing.h"
#include "menger/networks/network_test_values.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

NetworkSpec SeparateSpec() {
  return MakeSpec(4, {64, 64}, {{.name = "policy", .width = 2}, {.name = "value", .width = 1}});
}

NetworkSpec SharedSpec() {
  NetworkSpec spec = MakeSpec(5, {12, 20},
                              {{.name = "policy", .width = 18},
                               {.name = "log_std", .width = 3, .constant = true, .bias = -0.5},
                               {.name = "value", .width = 1}});
  spec.options.shared_trunk = true;
  spec.options.activation = "relu";
  return spec;
}

void ExpectNear(std::span<const float> actual, std::span<const float> expected, int every,
                float tolerance) {
  ASSERT_EQ((actual.size() + every - 1) / every, expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i * every], expected[i], tolerance) << i;
  }
}

TEST(MlpTest, SeparateTanhLayersGiveWhatTorchGives) {
  for (const bool wide : {false, true}) {
    if (wide && !HasAvx512()) continue;
    MlpNetwork network = MakeRecorded(SeparateSpec(), 1, wide ? Avx512Kernels() : Avx2Kernels());
    SetRecordedParameters(network);
    const Pass pass = RunPass(network, SeparateSpec(), 37);
    ExpectNear(pass.outputs, recorded::kSeparateOutputs, 1, 1e-5f);
    ExpectNear(pass.gradients, recorded::kSeparateGradient, 101, 1e-5f);
    EXPECT_EQ(pass.inferred, pass.outputs);
  }
}

TEST(MlpTest, ASharedReluTrunkWithAConstantHeadGivesWhatTorchGives) {
  MlpNetwork network = MakeRecorded(SharedSpec());
  SetRecordedParameters(network);
  const Pass pass = RunPass(network, SharedSpec(), 9);
  ExpectNear(pass.outputs, recorded::kSharedOutputs, 1, 1e-5f);
  ExpectNear(pass.gradients, recorded::kSharedGradient, 7, 1e-5f);
  EXPECT_EQ(pass.inferred, pass.outputs);
}

TEST(MlpTest, WithoutHiddenLayersItIsLinearAndGivesWhatTorchGives) {
  const NetworkSpec spec = MakeSpec(3, {}, {{.name = "policy", .width = 2}});
  MlpNetwork network = MakeRecorded(spec);
  SetRecordedParameters(network);
  const Pass pass = RunPass(network, spec, 4);
  ExpectNear(pass.outputs, recorded::kLinearOutputs, 1, 1e-6f);
  ExpectNear(pass.gradients, recorded::kLinearGradient, 1, 1e-6f);
}

// The loss of the recording, from the network's own outputs.
double Loss(Network& network, const NetworkSpec& spec, int rows) {
  const auto x = RecordedInput(rows * spec.observation.elements(), 2, 1.0f);
  const auto outputs = Flatten(network.Infer({.observations = x.data(), .rows = rows}));
  double loss = 0;
  std::size_t i = 0;
  for (const auto& gradient : OutputGradients(spec, rows).values) {
    for (const float value : gradient) loss += static_cast<double>(value) * outputs[i++];
  }
  return loss;
}

TEST(MlpTest, GradientsEqualFiniteDifferences) {
  NetworkSpec spec = SharedSpec();
  spec.options.activation = "tanh";
  MlpNetwork network = MakeRecorded(spec);
  const Pass pass = RunPass(network, spec, 5);
  const float step = 0x1p-8f;
  for (std::size_t i = 0; i < pass.gradients.size(); i += 3) {
    float& parameter = network.parameters()[i];
    const float before = parameter;
    parameter = before + step;
    network.ParametersChanged();
    const double above = Loss(network, spec, 5);
    parameter = before - step;
    network.ParametersChanged();
    const double below = Loss(network, spec, 5);
    parameter = before;
    network.ParametersChanged();
    const double slope = (above - below) / (2.0 * step);
    EXPECT_NEAR(pass.gradients[i], slope, 2e-3 * (1.0 + std::abs(slope))) << i;
  }
}

TEST(MlpTest, ARowDoesNotDependOnItsBatchToTheLastBit) {
  for (const NetworkSpec& spec : {SeparateSpec(), SharedSpec()}) {
    MlpNetwork network = MakeRecorded(spec);
    const auto elements = spec.observation.elements();
    const auto x = RecordedInput(200 * elements, 2, 1.0f);
    const auto whole = Flatten(network.Infer({.observations = x.data(), .rows = 200}));
    for (const int rows : {1, 2, 3, 5, 8, 13, 64, 65, 77}) {
      const auto outputs = network.Infer({.observations = x.data() + 7 * elements, .rows = rows});
      std::size_t head_start = 0;
      for (const Matrix& output : outputs) {
        for (int row = 0; row < rows; ++row) {
          for (int i = 0; i < output.columns; ++i) {
            ASSERT_EQ(output.row(row)[i], whole[head_start + (row + 7) * output.columns + i]);
          }
        }
        head_start += 200 * static_cast<std::size_t>(output.columns);
      }
    }
  }
}

TEST(MlpTest, NothingDependsOnTheNumberOfThreadsToTheLastBit) {
  for (const NetworkSpec& spec : {SeparateSpec(), SharedSpec()}) {
    for (const int rows : {1, 60, 300, 700}) {
      MlpNetwork one = MakeRecorded(spec, 1);
      const Pass expected = RunPass(one, spec, rows);
      for (const int threads : {2, 3}) {
        MlpNetwork several = MakeRecorded(spec, threads);
        EXPECT_EQ(RunPass(several, spec, rows), expected) << threads << " threads, " << rows;
      }
    }
  }
}

TEST(MlpTest, BothInstructionSetsGiveTheSameBits) {
  if (!HasAvx512()) GTEST_SKIP() << "this processor has no AVX-512";
  for (const NetworkSpec& spec : {SeparateSpec(), SharedSpec()}) {
    MlpNetwork narrow = MakeRecorded(spec, 1, Avx2Kernels());
    MlpNetwork wide = MakeRecorded(spec, 1, Avx512Kernels());
    EXPECT_EQ(RunPass(narrow, spec, 301), RunPass(wide, spec, 301));
  }
}

TEST(MlpTest, TheGradientOfTheInputsIsThatOfDifferences) {
  for (NetworkSpec spec : {SeparateSpec(), SharedSpec(), MakeSpec(3, {}, {{.name = "only"}})}) {
    spec.options.activation = "tanh";  // Smooth.
    const int rows = 5;
    MlpNetwork network = MakeRecorded(spec);
    SetRecordedParameters(network);
    const auto x = RecordedInput(rows * spec.observation.elements(), 2, 1.0f);
    network.Forward({.observations = x.data(), .rows = rows});
    std::vector<float> gradient(x.size(), 7.0f);
    network.Backward(OutputGradients(spec, rows).matrices, {.inputs = gradient.data()});
    const auto expected = InputDifferences(network, spec, rows);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(gradient[i], expected[i], 2e-3) << i;
  }
}

TEST(MlpTest, WhatABackwardIsNotAskedForStaysAndWhatItIsDoesNotChange) {
  const int rows = 300;
  for (const int threads : {1, 2, 3}) {
    MlpNetwork network = MakeRecorded(SeparateSpec(), threads);
    SetRecordedParameters(network);
    const Pass pass = RunPass(network, SeparateSpec(), rows);
    const auto x = RecordedInput(rows * 4, 2, 1.0f);
    std::vector<float> alone(x.size());
    std::vector<float> together(x.size());
    network.Forward({.observations = x.data(), .rows = rows});
    std::ranges::fill(network.gradients(), 5.0f);
    network.Backward(OutputGradients(SeparateSpec(), rows).matrices,
                     {.parameters = false, .inputs = alone.data()});
    EXPECT_TRUE(std::ranges::all_of(network.gradients(), [](float g) { return g == 5.0f; }));
    network.Forward({.observations = x.data(), .rows = rows});
    network.Backward(OutputGradients(SeparateSpec(), rows).matrices, {.inputs = together.data()});
    EXPECT_EQ(alone, together);
    EXPECT_TRUE(std::ranges::equal(network.gradients(), pass.gradients));
    // A network of one thread is what others are compared with.
    MlpNetwork single = MakeRecorded(SeparateSpec(), 1);
    SetRecordedParameters(single);
    single.Forward({.observations = x.data(), .rows = rows});
    single.Backward(OutputGradients(SeparateSpec(), rows).matrices, {.inputs = together.data()});
    EXPECT_EQ(alone, together);
  }
}

TEST(MlpTest, AnInferBetweenForwardAndBackwardChangesNoGradient) {
  const NetworkSpec spec = SeparateSpec();
  MlpNetwork network = MakeRecorded(spec);
  const auto x = RecordedInput(50 * 4, 2, 1.0f);
  const auto other = RecordedInput(80 * 4, 9, 1.0f);
  network.Forward({.observations = x.data(), .rows = 50});
  network.Backward(OutputGradients(spec, 50).matrices);
  const std::vector<float> expected(network.gradients().begin(), network.gradients().end());
  network.Forward({.observations = x.data(), .rows = 50});
  network.Infer({.observations = other.data(), .rows = 80});
  network.Backward(OutputGradients(spec, 50).matrices);
  EXPECT_EQ(std::vector<float>(network.gradients().begin(), network.gradients().end()), expected);
}

TEST(MlpTest, ItsManifestNamesLayersByHeadAndDepth) {
  EXPECT_EQ(MakeRecorded(SeparateSpec()).manifest().entries().front().name, "policy/0/weight");
  const MlpNetwork network = MakeRecorded(SharedSpec());
  std::vector<std::string> names;
  for (const ParameterEntry& entry : network.manifest().entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"trunk/0/weight", "trunk/0/bias", "trunk/1/weight",
                                             "trunk/1/bias", "policy/0/weight", "policy/0/bias",
                                             "log_std/bias", "value/0/weight", "value/0/bias"}));
  EXPECT_EQ(network.manifest().Find("policy/0/weight")->shape, (Shape{20, 18}));
}

TEST(MlpTest, ItStartsOrthogonalWithTheGainOfEachLayer) {
  NetworkSpec spec = SeparateSpec();
  spec.heads[0].gain = 0.01;
  spec.heads[1].bias = 3.0;
  MlpNetwork network = MakeRecorded(spec);
  const auto column_norm = [&](const std::string& name) {
    const ParameterEntry& entry = *network.manifest().Find(name);
    double sum = 0;
    for (std::int64_t i = 0; i < entry.shape[0]; ++i) {
      const double value = network.parameters()[entry.offset + i * entry.shape[1]];
      sum += value * value;
    }
    return std::sqrt(sum);
  };
  EXPECT_NEAR(column_norm("policy/1/weight"), std::sqrt(2.0), 1e-5);
  EXPECT_NEAR(column_norm("policy/2/weight"), 0.01, 1e-7);
  EXPECT_NEAR(column_norm("value/2/weight"), 1.0, 1e-5);
  EXPECT_EQ(network.parameters()[network.manifest().Find("value/2/bias")->offset], 3.0f);
  EXPECT_EQ(network.parameters()[network.manifest().Find("policy/1/bias")->offset], 0.0f);
}

// As if nothing had asked for the outputs of the second critic.
TEST(MlpTest, HeadsThatNobodyAsksForAreLeftOut) {
  NetworkSpec spec = MakeSpec(
      7, {64, 48}, {{.name = "first"}, {.name = "bias", .constant = true}, {.name = "second"}});
  for (const bool layer_norm : {false, true}) {
    spec.options.layer_norm = layer_norm;
    for (const int threads : {1, 2}) {
      MlpNetwork network = MakeRecorded(spec, threads);
      SetRecordedParameters(network);
      const int rows = 100;
      const auto x = RecordedInput(rows * 7, 2, 1.0f);
      OutputGradients gradients(spec, rows);
      std::ranges::fill(gradients.values[2], 0.0f);
      std::vector<float> slopes(x.size()), all_slopes(x.size());
      const auto gradient = [&](int heads, std::vector<float>& of_inputs) {
        network.Forward({.observations = x.data(), .rows = rows, .heads = heads});
        network.Backward(gradients.matrices, {.inputs = of_inputs.data()});
        return std::vector<float>(network.gradients().begin(), network.gradients().end());
      };
      const auto outputs = network.Forward({.observations = x.data(), .rows = rows, .heads = 2});
      EXPECT_EQ(outputs[2].data, nullptr);
      EXPECT_NE(outputs[1].data, nullptr);
      const std::vector<float> expected = gradient(/*heads=*/0, all_slopes);
      network.gradients()[network.manifest().Find("second/0/weight")->offset] = 5;
      EXPECT_EQ(gradient(/*heads=*/2, slopes), expected);
      EXPECT_EQ(slopes, all_slopes);
    }
  }
}

TEST(MlpTest, NetworksMayShareThreads) {
  const NetworkSpec spec = SeparateSpec();
  MlpNetwork network = MakeRecorded(spec);
  const Pass expected = RunPass(network, spec, 300);
  const SharedWorkerPool threads = 3;
  const auto one = network.Clone(threads);
  const auto other = one->Clone(threads);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunPass(*one, spec, 300), expected);
    EXPECT_EQ(RunPass(*other, spec, 300), expected);
  }
}

TEST(MlpTest, ACloneHasItsOwnCopyOfTheSameParameters) {
  const NetworkSpec spec = SharedSpec();
  MlpNetwork network = MakeRecorded(spec);
  const auto clone = network.Clone(/*threads=*/2);
  const Pass expected = RunPass(network, spec, 100);
  EXPECT_EQ(RunPass(*clone, spec, 100), expected);
  clone->parameters()[0] += 1.0f;
  clone->ParametersChanged();
  EXPECT_EQ(RunPass(network, spec, 100), expected);
  EXPECT_NE(RunPass(*clone, spec, 100), expected);
}

TEST(MlpTest, WrongCallsAreRefusedWithWhatWouldBeRight) {
  const auto text_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const NetworkSpec spec = SeparateSpec();
  MlpNetwork network = MakeRecorded(spec);
  OutputGradients gradients(spec, 3);
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices); }), HasSubstr("of its own"));
  EXPECT_THAT(text_of([&] { network.Infer({}); }), HasSubstr("at least 1"));
  EXPECT_THAT(text_of([&] { network.Forward({.rows = 1, .heads = 3}); }), HasSubstr("has 2"));
  const auto x = RecordedInput(2 * 4, 2, 1.0f);
  network.Forward({.observations = x.data(), .rows = 2});
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices); }), HasSubstr("[3, 2]"));
  for (Matrix& gradient : gradients.matrices) gradient.rows = 2;
  std::vector<float> beside(2 * 3);
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices, {.vector = beside.data()}); }),
              HasSubstr("gradient of a vector"));
  EXPECT_THAT(text_of([&] {
                network.Forward({.observations = x.data(), .vector = beside.data(), .rows = 2});
              }),
              HasSubstr("vector_elements = 0"));
  gradients.matrices[0].stride = 0;
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices); }), HasSubstr("has stride 0"));
  gradients.matrices[0].stride = gradients.matrices[0].columns;
  network.Backward(gradients.matrices);
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices); }),
              HasSubstr("one Forward serves one Backward"));
  network.Forward({.observations = x.data(), .rows = 2});
  gradients.matrices.pop_back();
  EXPECT_THAT(text_of([&] { network.Backward(gradients.matrices); }), HasSubstr("2 heads"));
}

}  // namespace
}  // namespace menger
