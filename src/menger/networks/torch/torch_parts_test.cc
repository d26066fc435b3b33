// Networks of two parts, and networks that remember what convolutions saw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/recorded_input.h"
#include "menger/networks/torch/parts_test_values.h"
#include "menger/networks/torch/torch_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;

NetworkSpec PartsSpec(const std::string& kind, int vector_elements, Shape shape = {2, 36, 36}) {
  NetworkSpec spec = SpecOf(kind, Image(std::move(shape)));
  spec.vector_elements = vector_elements;
  return spec;
}

TEST(TorchPartsTest, TheGradientOfConvolutionsWithAVectorEqualsFiniteDifferences) {
  for (const char* const kind : {"a3c_cnn", "nature_cnn"}) {
    for (const bool shared : {false, true}) {
      NetworkSpec spec = PartsSpec(kind, /*vector_elements=*/3, {2, 44, 36});
      spec.options.shared_trunk = shared;
      auto network = Make(spec);
      CheckGradient(*network, Batch(spec, /*rows=*/3, /*steps=*/1, 0).input);
    }
  }
}

TEST(TorchPartsTest, TheGradientOfConvolutionsThatRememberEqualsFiniteDifferences) {
  for (const int vector_elements : {0, 3}) {
    const NetworkSpec spec = PartsSpec("a3c_cnn_lstm", vector_elements);
    auto network = Make(spec);
    Batch batch(spec, /*rows=*/12, /*steps=*/4, network->state_width());
    for (const int row : {1, 7, 8}) batch.is_first[row] = 1;
    CheckGradient(*network, batch.input);
  }
}

// Each number alone: the loss is smooth in it, but for the kinks of relu.
TEST(TorchPartsTest, TheGradientOfTheVectorEqualsFiniteDifferences) {
  const NetworkSpec spec = PartsSpec("a3c_cnn", /*vector_elements=*/3);
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/4, /*steps=*/1, 0);
  const auto outputs = network->Forward(batch.input);
  std::vector<float> weights = LossWeights(Copy(outputs).size());
  std::vector<float> gradient(12, 99.0F);
  network->Backward(AsGradients(outputs, weights),
                    {.parameters = false, .vector = gradient.data()});
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float at = batch.vector[i];
    double difference = 0;
    for (const double sign : {1.0, -1.0}) {
      batch.vector[i] = static_cast<float>(at + sign * 5e-3);
      difference += sign * Loss(*network, batch.input, weights);
    }
    batch.vector[i] = at;
    EXPECT_NEAR(gradient[i], difference / 1e-2, 0.02) << "number " << i;
  }
}

// What torch's own modules compute in float64 with the same numbers: tools/record_networks.py.
class RecordedPartsTest : public testing::Test {
 protected:
  static constexpr int kVector = 3;

  RecordedPartsTest(const std::string& kind, int rows, int steps)
      : spec_(PartsSpec(kind, kVector)), network_(MakeIt(kind)), rows_(rows) {
    const auto values = RecordedInput(network_->parameters().size(), 1, 0.0625F);
    std::ranges::copy(values, network_->parameters().begin());
    network_->ParametersChanged();
    for (const float value : RecordedInput(static_cast<std::size_t>(rows) * 2 * 36 * 36, 2, 1.0F)) {
      pixels_.push_back(static_cast<std::uint8_t>((value + 1.0F) * 128.0F));
    }
    vector_ = RecordedInput(static_cast<std::size_t>(rows) * kVector, 30, 2.0F);
    state_ =
        RecordedInput(static_cast<std::size_t>(rows / steps) * network_->state_width(), 31, 0.5F);
    is_first_.assign(rows, 0);
    input_ = {.observations = pixels_.data(),
              .vector = vector_.data(),
              .rows = rows,
              .steps = steps,
              .state = state_.empty() ? nullptr : state_.data(),
              .is_first = is_first_.data()};
  }

  std::unique_ptr<Network> MakeIt(const std::string& kind) {
    spec_.options.lstm_size = 5;
    spec_.heads = {{.name = "policy", .width = 3}, {.name = "value", .width = 1}};
    (void)kind;
    return Make(spec_);
  }

  void ExpectRecorded(std::span<const float> outputs, std::span<const float> gradient,
                      std::vector<float>* vector_gradient) {
    const auto given = network_->Forward(input_);
    ExpectClose(Copy(given), outputs);
    std::vector<std::vector<float>> values;
    std::vector<Matrix> gradients;
    for (std::size_t head = 0; head < given.size(); ++head) {
      const int width = given[head].columns;
      values.push_back(RecordedInput(static_cast<std::size_t>(rows_) * width, 3 + head, 1.0F));
      gradients.push_back({values.back().data(), rows_, width, width});
    }
    GradientRequest request;
    if (vector_gradient != nullptr) {
      vector_gradient->resize(vector_.size());
      request.vector = vector_gradient->data();
    }
    network_->Backward(gradients, request);
    std::vector<float> some;
    for (std::size_t i = 0; i < network_->gradients().size(); i += 1009) {
      some.push_back(network_->gradients()[i]);
    }
    ExpectClose(some, gradient);
  }

  static void ExpectClose(const std::vector<float>& actual, std::span<const float> expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 2e-5 + 2e-5 * std::abs(expected[i])) << "at " << i;
    }
  }

  NetworkSpec spec_;
  std::unique_ptr<Network> network_;
  const int rows_;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> vector_;
  std::vector<float> state_;
  std::vector<std::uint8_t> is_first_;
  NetworkInput input_;
};

class RecordedConvolutionsTest : public RecordedPartsTest {
 protected:
  RecordedConvolutionsTest() : RecordedPartsTest("a3c_cnn", /*rows=*/4, /*steps=*/1) {}
};

TEST_F(RecordedConvolutionsTest, AVectorIsReadBesideThePixelsAsTorchReadsIt) {
  std::vector<float> vector_gradient;
  ExpectRecorded(recorded::kPartsOutputs, recorded::kPartsGradient, &vector_gradient);
  ExpectClose(vector_gradient, recorded::kPartsVectorGradient);
}

class RecordedMemoryTest : public RecordedPartsTest {
 protected:
  RecordedMemoryTest() : RecordedPartsTest("nature_cnn_lstm", /*rows=*/10, /*steps=*/5) {}
};

TEST_F(RecordedMemoryTest, ConvolutionsRememberAsTorchsCellsDo) {
  is_first_[5] = 1;  // The second sequence, in the middle.
  ExpectRecorded(recorded::kMemoryOutputs, recorded::kMemoryGradient, nullptr);
}

TEST(TorchPartsTest, TheNumbersBesideAnImageAreTheLastRowsOfTheDenseLayer) {
  const NetworkSpec spec = PartsSpec("nature_cnn", /*vector_elements=*/7, {4, 84, 84});
  EXPECT_EQ(Make(spec)->manifest().Find("trunk/linear/weight")->shape, (Shape{3136 + 7, 1024}));
  const NetworkSpec remembers = PartsSpec("nature_cnn_lstm", /*vector_elements=*/7, {1, 84, 84});
  auto network = Make(remembers);
  EXPECT_EQ(network->manifest().Find("trunk/linear/weight")->shape, (Shape{3136 + 7, 512}));
  EXPECT_EQ(network->manifest().Find("trunk/lstm/input_weight")->shape, (Shape{512, 20}));
  EXPECT_EQ(network->manifest().Find("policy/0/weight")->shape, (Shape{5, 3}));
  EXPECT_EQ(network->state_width(), 10);
}

TEST(TorchPartsTest, WithoutAVectorNothingIsOtherThanItWas) {
  const NetworkSpec spec = PartsSpec("a3c_cnn", /*vector_elements=*/0);
  auto network = Make(spec);
  EXPECT_EQ(network->manifest().Find("trunk/linear/weight")->shape, (Shape{288, 512}));
  const Batch batch(spec, /*rows=*/2, /*steps=*/1, 0);
  const auto outputs = network->Forward(batch.input);
  std::vector<float> weights = LossWeights(Copy(outputs).size());
  float place = 0;
  EXPECT_THAT(
      ErrorOf([&] { network->Backward(AsGradients(outputs, weights), {.vector = &place}); }).what(),
      HasSubstr("no gradient of its vector"));
}

// 1/1024 is lost beside 1 in bfloat16.
TEST(TorchPartsTest, TheVectorKeepsItsDigitsInEveryPrecision) {
  NetworkSpec spec = PartsSpec("a3c_cnn", /*vector_elements=*/2);
  for (const char* const precision : {"fp32", "bf16"}) {
    spec.precision = precision;
    auto network = Make(spec);
    Batch batch(spec, /*rows=*/2, /*steps=*/1, 0);
    std::ranges::copy_n(batch.pixels.begin(), batch.pixels.size() / 2,
                        batch.pixels.begin() + batch.pixels.size() / 2);
    std::ranges::copy(std::vector<float>{1, 1, 1 + 1.0F / 1024, 1}, batch.vector.begin());
    const auto outputs = network->Infer(batch.input);
    EXPECT_NE(outputs[0].row(0)[0], outputs[0].row(1)[0]) << precision;
  }
}

TEST(TorchPartsTest, BfloatGivesNearlyTheSameGradients) {
  for (const char* const kind : {"a3c_cnn", "nature_cnn_lstm"}) {
    NetworkSpec spec = PartsSpec(kind, /*vector_elements=*/3);
    auto exact = Make(spec);
    spec.precision = "bf16";
    auto rounded = Make(spec);
    const Batch batch(spec, /*rows=*/4, /*steps=*/2, exact->state_width());
    for (Network* network : {exact.get(), rounded.get()}) {
      const auto outputs = network->Forward(batch.input);
      std::vector<float> weights = LossWeights(Copy(outputs).size());
      network->Backward(AsGradients(outputs, weights));
    }
    for (const ParameterEntry& entry : exact->manifest().entries()) {
      double product = 0.0;
      double squares[2] = {0.0, 0.0};
      for (std::int64_t i = entry.offset; i < entry.offset + entry.elements(); ++i) {
        const double a = exact->gradients()[i];
        const double b = rounded->gradients()[i];
        product += a * b;
        squares[0] += a * a;
        squares[1] += b * b;
      }
      EXPECT_GT(product / std::sqrt(squares[0] * squares[1]), 0.99) << kind << " " << entry.name;
    }
  }
}

TEST(TorchPartsTest, SplittingASequenceOfPixelsAndCarryingTheStateChangesNothing) {
  const NetworkSpec spec = PartsSpec("a3c_cnn_lstm", /*vector_elements=*/2, {1, 36, 36});
  auto network = Make(spec);
  const Batch batch(spec, /*rows=*/12, /*steps=*/6, network->state_width());
  const std::vector<float> whole = Copy(network->Infer(batch.input).first(1));
  NetworkInput part = batch.input;
  part.rows = 4;
  part.steps = 2;
  std::vector<float> pieces;
  std::vector<float> state = batch.state;
  for (int start = 0; start < 12; start += 4) {
    part.observations = batch.pixels.data() + static_cast<std::ptrdiff_t>(start) * 36 * 36;
    part.vector = batch.vector.data() + static_cast<std::ptrdiff_t>(start) * 2;
    part.state = state.data();
    const std::vector<float> piece = Copy(network->Infer(part).first(1));
    pieces.insert(pieces.end(), piece.begin(), piece.end());
    state.assign(network->next_state(), network->next_state() + 20);
  }
  ExpectNear(pieces, whole, 1e-5);
}

TEST(TorchPartsTest, WrongPartsAreRefused) {
  EXPECT_THAT(ErrorOf([] {
                NetworkSpec spec = SpecOf("mlp", Vector(4));
                spec.vector_elements = 2;
                Make(spec);
              }).what(),
              HasSubstr("reads no vector of 2"));
  const NetworkSpec spec = PartsSpec("a3c_cnn", /*vector_elements=*/2);
  auto network = Make(spec);
  Batch batch(spec, /*rows=*/2, /*steps=*/1, 0);
  batch.input.vector = nullptr;
  EXPECT_THAT(ErrorOf([&] { network->Infer(batch.input); }).what(),
              HasSubstr("2 numbers beside 'observation' was given none"));
}

}  // namespace
}  // namespace menger
