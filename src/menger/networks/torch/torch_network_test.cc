#include "menger/networks/torch/torch_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/torch/torch_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;

TEST(TorchNetworkTest, TheGradientOfAnMlpEqualsFiniteDifferences) {
  for (const bool shared : {false, true}) {
    NetworkSpec spec = SpecOf("mlp", Vector(4));
    spec.options.shared_trunk = shared;
    auto network = Make(spec);
    CheckGradient(*network, Batch(spec, /*rows=*/9, /*steps=*/1, 0).input);
  }
}

TEST(TorchNetworkTest, TheGradientOfTheNatureCnnEqualsFiniteDifferences) {
  const NetworkSpec spec = SpecOf("nature_cnn", Image({2, 44, 36}));
  auto network = Make(spec);
  CheckGradient(*network, Batch(spec, /*rows=*/3, /*steps=*/1, 0).input);
}

TEST(TorchNetworkTest, TheGradientOfTheA3cCnnEqualsFiniteDifferences) {
  const NetworkSpec spec = SpecOf("a3c_cnn", Image({3, 36, 40}));
  auto network = Make(spec);
  CheckGradient(*network, Batch(spec, /*rows=*/3, /*steps=*/1, 0).input);
}

TEST(TorchNetworkTest, TheGradientOfAnLstmEqualsFiniteDifferencesAcrossEpisodeStarts) {
  const NetworkSpec spec = SpecOf("lstm", Vector(4));
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/18, /*steps=*/6, network->state_width());
  for (const int row : {1, 7, 8, 17}) batch.is_first[row] = 1;
  CheckGradient(*network, batch.input);
}

// tanh(x W0 + b0) ... W + b in double precision, straight from the manifest.
TEST(TorchNetworkTest, AnMlpIsWhatItsManifestSays) {
  const NetworkSpec spec = SpecOf("mlp", Vector(4));
  auto network = Make(spec);
  const Batch batch(spec, /*rows=*/5, /*steps=*/1, 0);
  const auto array = [&](const std::string& name) {
    const ParameterEntry* entry = network->manifest().Find(name);
    if (entry == nullptr) throw NotFound("no array '{}'", name);
    return network->parameters().data() + entry->offset;
  };
  const std::vector<float> biases = LossWeights(8);
  std::copy(biases.begin(), biases.end(), array("policy/0/bias"));
  network->ParametersChanged();

  std::vector<float> expected;
  for (int row = 0; row < 5; ++row) {
    std::vector<double> x(batch.floats.begin() + row * 4, batch.floats.begin() + row * 4 + 4);
    const std::vector<int> widths = {8, 6, 3};
    for (std::size_t layer = 0; layer < widths.size(); ++layer) {
      const float* weight = array(fmt::format("policy/{}/weight", layer));
      const float* bias = array(fmt::format("policy/{}/bias", layer));
      std::vector<double> y(bias, bias + widths[layer]);
      for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t o = 0; o < y.size(); ++o) y[o] += x[i] * weight[i * y.size() + o];
      }
      if (layer < 2) std::ranges::transform(y, y.begin(), [](double v) { return std::tanh(v); });
      x = y;
    }
    expected.insert(expected.end(), x.begin(), x.end());
  }
  const auto outputs = network->Infer(batch.input);
  ExpectNear(Copy(outputs.first(1)), expected, 1e-5);
  ExpectNear(Copy(outputs.last(1)), std::vector<float>(10, -0.5f), 0.0);
}

// The equations of Hochreiter and Schmidhuber (1997) with a forget gate, in double precision, one
// cell at a time.
TEST(TorchNetworkTest, AnLstmIsWhatItsManifestSays) {
  NetworkSpec spec = SpecOf("lstm", Vector(4));
  spec.options.hidden = {};
  auto network = Make(spec);
  const Batch batch(spec, /*rows=*/3, /*steps=*/3, network->state_width());
  const auto array = [&](const std::string& name) {
    const ParameterEntry* entry = network->manifest().Find(name);
    if (entry == nullptr) throw NotFound("no array '{}'", name);
    return network->parameters().data() + entry->offset;
  };
  const std::vector<float> biases = LossWeights(20);
  std::copy(biases.begin(), biases.end(), array("trunk/lstm/bias"));
  network->ParametersChanged();

  std::vector<double> hidden(batch.state.begin(), batch.state.begin() + 5);
  std::vector<double> cell(batch.state.begin() + 5, batch.state.end());
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  for (int step = 0; step < 3; ++step) {
    std::vector<double> sums(biases.begin(), biases.end());
    for (int o = 0; o < 20; ++o) {
      for (int i = 0; i < 4; ++i) {
        sums[o] +=
            batch.floats[step * 4 + i] * double{array("trunk/lstm/input_weight")[i * 20 + o]};
      }
      for (int i = 0; i < 5; ++i) {
        sums[o] += hidden[i] * array("trunk/lstm/hidden_weight")[i * 20 + o];
      }
    }
    for (int unit = 0; unit < 5; ++unit) {
      cell[unit] =
          sigmoid(sums[10 + unit]) * cell[unit] + sigmoid(sums[5 + unit]) * std::tanh(sums[unit]);
      hidden[unit] = sigmoid(sums[15 + unit]) * std::tanh(cell[unit]);
    }
  }
  network->Infer(batch.input);
  const std::vector<float> state(network->next_state(), network->next_state() + 10);
  hidden.insert(hidden.end(), cell.begin(), cell.end());
  ExpectNear(state, std::vector<float>(hidden.begin(), hidden.end()), 1e-5);
}

TEST(TorchNetworkTest, SplittingASequenceAndCarryingTheStateChangesNothing) {
  const NetworkSpec spec = SpecOf("lstm", Vector(4));
  auto network = Make(spec);
  const Batch batch(spec, /*rows=*/12, /*steps=*/6, network->state_width());
  const std::vector<float> whole = Copy(network->Infer(batch.input).first(1));
  const std::vector<float> end(network->next_state(), network->next_state() + 20);

  NetworkInput part = batch.input;
  part.rows = 4;
  part.steps = 2;
  std::vector<float> pieces;
  std::vector<float> state = batch.state;
  for (int start = 0; start < 12; start += 4) {
    part.observations = batch.floats.data() + start * 4;
    part.state = state.data();
    const std::vector<float> piece = Copy(network->Infer(part).first(1));
    pieces.insert(pieces.end(), piece.begin(), piece.end());
    state.assign(network->next_state(), network->next_state() + 20);
  }
  ExpectNear(pieces, whole, 1e-6);
  ExpectNear(state, end, 1e-6);
}

TEST(TorchNetworkTest, AnEpisodeStartInTheMiddleEqualsTwoSequences) {
  const NetworkSpec spec = SpecOf("lstm", Vector(4));
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/6, /*steps=*/6, network->state_width());
  batch.is_first[2] = 1;
  const std::vector<float> whole = Copy(network->Infer(batch.input).first(1));

  NetworkInput part = batch.input;
  part.is_first = nullptr;
  part.rows = part.steps = 2;
  std::vector<float> pieces = Copy(network->Infer(part).first(1));
  part.rows = part.steps = 4;
  part.observations = batch.floats.data() + 2 * 4;
  part.state = nullptr;
  const std::vector<float> second = Copy(network->Infer(part).first(1));
  pieces.insert(pieces.end(), second.begin(), second.end());
  ExpectNear(pieces, whole, 1e-6);
}

TEST(TorchNetworkTest, AForgottenStateMayBeNotANumber) {
  const NetworkSpec spec = SpecOf("lstm", Vector(4));
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/2, /*steps=*/1, network->state_width());
  std::fill(batch.state.begin(), batch.state.begin() + 10, std::nanf(""));
  batch.is_first[0] = 1;
  for (const float value : Copy(network->Forward(batch.input))) EXPECT_TRUE(std::isfinite(value));
}

// 8,224 + 32,832 + 36,928 + 1,606,144 in the trunk, 3,078 + 513 in the heads (Mnih et al. 2015 for
// four frames).
TEST(TorchNetworkTest, TheNatureCnnHasItsPublishedSize) {
  NetworkSpec spec = SpecOf("nature_cnn", Image({4, 84, 84}));
  spec.heads = {{.name = "policy", .width = 6}, {.name = "value", .width = 1}};
  spec.options.shared_trunk = true;
  auto network = Make(spec);
  EXPECT_EQ(network->manifest().size(), 1'687'719);
  EXPECT_EQ(network->manifest().Find("trunk/conv0/weight")->shape, (Shape{32, 4, 8, 8}));
  EXPECT_EQ(network->manifest().Find("policy/0/weight")->shape, (Shape{512, 6}));
  const auto outputs = network->Infer(Batch(spec, /*rows=*/2, /*steps=*/1, 0).input);
  EXPECT_EQ(outputs[0].rows, 2);
  EXPECT_EQ(outputs[0].columns, 6);
  EXPECT_EQ(outputs[1].columns, 1);
}

TEST(TorchNetworkTest, InferGivesWhatForwardGives) {
  for (const char* const kind : {"mlp", "a3c_cnn", "nature_cnn", "lstm"}) {
    const bool image = std::string(kind).ends_with("cnn");
    const NetworkSpec spec = SpecOf(kind, image ? Image({2, 36, 36}) : Vector(4));
    auto network = Make(spec);
    const Batch batch(spec, /*rows=*/6, /*steps=*/2, network->state_width());
    const std::vector<float> kept = Copy(network->Forward(batch.input));
    ExpectNear(Copy(network->Infer(batch.input)), kept, 1e-6);
  }
}

TEST(TorchNetworkTest, ACloneGivesTheSameAndThenGoesItsOwnWay) {
  const NetworkSpec spec = SpecOf("a3c_cnn", Image({1, 36, 36}));
  auto network = Make(spec);
  auto clone = network->Clone(/*threads=*/2);
  const Batch batch(spec, /*rows=*/3, /*steps=*/1, 0);
  EXPECT_EQ(clone->manifest().ToText(), network->manifest().ToText());
  const std::vector<float> before = Copy(network->Infer(batch.input));
  ExpectNear(Copy(clone->Infer(batch.input)), before, 1e-6);
  std::ranges::fill(clone->parameters(), 0.0f);
  clone->ParametersChanged();
  ExpectNear(Copy(clone->Infer(batch.input)), std::vector<float>(before.size(), 0.0f), 0.0);
  ExpectNear(Copy(network->Infer(batch.input)), before, 0.0);
}

TEST(TorchNetworkTest, BackwardOverwritesAndOutlivesTheCallersBatch) {
  const NetworkSpec spec = SpecOf("mlp", Vector(4));
  auto network = Make(spec);
  std::vector<std::vector<float>> results;
  for (int round = 0; round < 2; ++round) {
    Batch batch(spec, /*rows=*/5, /*steps=*/1, 0);
    const auto outputs = network->Forward(batch.input);
    std::vector<float> weights = LossWeights(Copy(outputs).size());
    const std::vector<Matrix> gradients = AsGradients(outputs, weights);
    std::ranges::fill(batch.floats, 99.0f);
    network->Infer(batch.input);  // Keeps nothing, so takes nothing from Backward.
    network->Backward(gradients);
    results.emplace_back(network->gradients().begin(), network->gradients().end());
  }
  ExpectNear(results[1], results[0], 0.0);
  EXPECT_THROW(network->Backward({}), Error);
}

TEST(TorchNetworkTest, BfloatStaysNearSinglePrecisionAndItsGradientPointsTheSameWay) {
  for (const char* const kind : {"mlp", "a3c_cnn"}) {
    NetworkSpec spec = SpecOf(kind, kind[0] == 'm' ? Vector(4) : Image({2, 36, 36}));
    auto exact = Make(spec);
    spec.precision = "bf16";
    auto rounded = Make(spec);
    const Batch batch(spec, /*rows=*/4, /*steps=*/1, 0);
    for (Network* network : {exact.get(), rounded.get()}) {
      const auto outputs = network->Forward(batch.input);
      std::vector<float> weights = LossWeights(Copy(outputs).size());
      network->Backward(AsGradients(outputs, weights));
    }
    ExpectNear(Copy(rounded->Infer(batch.input)), Copy(exact->Infer(batch.input)), 0.03);
    double product = 0.0;
    double squares[2] = {0.0, 0.0};
    for (std::size_t i = 0; i < exact->gradients().size(); ++i) {
      const double a = exact->gradients()[i];
      const double b = rounded->gradients()[i];
      product += a * b;
      squares[0] += a * a;
      squares[1] += b * b;
    }
    EXPECT_GT(product / std::sqrt(squares[0] * squares[1]), 0.999) << kind;
  }
}

TEST(TorchNetworkTest, NewParametersAreSeenInEveryPrecision) {
  for (const char* const precision : {"fp32", "bf16"}) {
    NetworkSpec spec = SpecOf("mlp", Vector(4));
    spec.precision = precision;
    auto network = Make(spec);
    const Batch batch(spec, /*rows=*/2, /*steps=*/1, 0);
    const std::vector<float> before = Copy(network->Infer(batch.input));
    std::ranges::fill(network->parameters(), 0.0f);
    network->ParametersChanged();
    const std::vector<float> after = Copy(network->Infer(batch.input));
    EXPECT_NE(after, before);
    ExpectNear(after, std::vector<float>(after.size(), 0.0f), 0.0);
  }
}

TEST(TorchNetworkTest, AnyThreadMayCallOneAfterTheOther) {
  const NetworkSpec spec = SpecOf("a3c_cnn", Image({2, 36, 36}));
  auto network = Make(spec);
  const Batch batch(spec, /*rows=*/3, /*steps=*/1, 0);
  const std::vector<float> here = Copy(network->Forward(batch.input));
  std::vector<float> weights = LossWeights(here.size());
  std::vector<float> there;
  std::thread([&] {
    const auto outputs = network->Forward(batch.input);
    there = Copy(outputs);
    network->Backward(AsGradients(outputs, weights));
  }).join();
  ExpectNear(there, here, 0.0);
}

// The library holds its own copy of menger::Error; catching it here shows that both are one type to
// the run-time.
TEST(TorchNetworkTest, ErrorsCrossTheBorderOfTheLibraryAsOurs) {
  const auto error_of = [](auto change, LeafSpec observation = Vector(4)) {
    NetworkSpec spec = SpecOf("mlp", std::move(observation));
    change(spec);
    return ErrorOf([&] { Make(spec); });
  };
  const Error kind = error_of([](NetworkSpec& spec) { spec.options.kind = "lstn"; });
  EXPECT_EQ(kind.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(kind.what(), HasSubstr("did you mean 'lstm'"));
  const Error device = error_of([](NetworkSpec& spec) { spec.device = "abacus"; });
  EXPECT_EQ(device.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(device.what(), HasSubstr("abacus"));
  EXPECT_THAT(error_of([](NetworkSpec& spec) { spec.precision = "fp8"; }).what(), HasSubstr("fp8"));
  EXPECT_THAT(error_of([](NetworkSpec& spec) { spec.options.activation = "gelu"; }).what(),
              HasSubstr("'tanh' or 'relu'"));
  EXPECT_THAT(error_of([](NetworkSpec&) {}, Image({4, 84, 84})).what(), HasSubstr("float32"));
  const auto cnn = [](NetworkSpec& spec) { spec.options.kind = "nature_cnn"; };
  EXPECT_THAT(error_of(cnn).what(), HasSubstr("uint8 images"));
  EXPECT_THAT(error_of(cnn, Image({4, 20, 84})).what(), HasSubstr("too small"));
}

TEST(TorchNetworkTest, WrongBatchesAreRefused) {
  const NetworkSpec spec = SpecOf("lstm", Vector(4));
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/6, /*steps=*/2, network->state_width());
  batch.input.steps = 4;
  EXPECT_THAT(ErrorOf([&] { network->Infer(batch.input); }).what(), HasSubstr("6 rows"));
  batch.input.steps = 2;
  const auto outputs = network->Forward(batch.input);
  EXPECT_THAT(ErrorOf([&] { network->Backward(outputs.first(1)); }).what(), HasSubstr("3 heads"));
}

}  // namespace
}  // namespace menger
