#include "menger/networks/joined_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/mlp_testing.h"

namespace menger {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int kRows = 9;
constexpr int kObservation = 4;
constexpr int kVector = 3;

NetworkSpec Spec(int observation, int vector_elements) {
  NetworkSpec spec = MakeSpec(observation, {12, 7},
                              {{.name = "policy", .width = 2}, {.name = "value", .width = 1}});
  spec.vector_elements = vector_elements;
  return spec;
}

std::unique_ptr<Network> MakeOf(const NetworkSpec& spec) {
  Random random = Random::FromSeed(5);
  return MakeNetwork(spec, random, /*threads=*/1);
}

// One network that is given two parts, and one that is given what they are side by side.
class JoinedNetworkTest : public testing::Test {
 protected:
  JoinedNetworkTest() {
    for (int row = 0; row < kRows; ++row) {
      const auto from =
          whole_.begin() + static_cast<std::ptrdiff_t>(row) * (kObservation + kVector);
      observations_.insert(observations_.end(), from, from + kObservation);
      vectors_.insert(vectors_.end(), from + kObservation, from + kObservation + kVector);
    }
  }

  const std::vector<float> whole_ = RecordedInput(kRows * (kObservation + kVector), 2, 1.0F);
  std::vector<float> observations_;
  std::vector<float> vectors_;
  const NetworkInput whole_input_{.observations = whole_.data(), .rows = kRows};
  NetworkInput Input() const {
    return {.observations = observations_.data(), .vector = vectors_.data(), .rows = kRows};
  }
  const NetworkSpec spec_ = Spec(kObservation, kVector);
  const std::unique_ptr<Network> joined_ = MakeOf(spec_);
  const std::unique_ptr<Network> plain_ = MakeOf(Spec(kObservation + kVector, 0));
};

TEST_F(JoinedNetworkTest, TwoPartsAreReadAsOneVectorToTheLastBit) {
  EXPECT_EQ(joined_->manifest().ToText(), plain_->manifest().ToText());
  EXPECT_THAT(joined_->parameters(), ElementsAreArray(plain_->parameters()));
  EXPECT_EQ(Flatten(joined_->Infer(Input())), Flatten(plain_->Infer(whole_input_)));
  EXPECT_EQ(Flatten(joined_->Forward(Input())), Flatten(plain_->Forward(whole_input_)));
  EXPECT_TRUE(joined_->batch_invariant());
  const auto clone = joined_->Clone(/*threads=*/2);
  EXPECT_EQ(Flatten(clone->Infer(Input())), Flatten(plain_->Infer(whole_input_)));
}

TEST_F(JoinedNetworkTest, GradientsOfParametersAndOfEitherPartAreThoseOfTheWhole) {
  const OutputGradients gradients(spec_, kRows);
  std::vector<float> of_whole(whole_.size());
  plain_->Forward(whole_input_);
  plain_->Backward(gradients.matrices, {.inputs = of_whole.data()});
  for (const bool parameters : {true, false}) {
    std::ranges::fill(joined_->gradients(), 0.0F);
    std::vector<float> of_observation(observations_.size());
    std::vector<float> of_vector(vectors_.size());
    joined_->Forward(Input());
    joined_->Backward(gradients.matrices, {.parameters = parameters,
                                           .inputs = parameters ? of_observation.data() : nullptr,
                                           .vector = of_vector.data()});
    for (int row = 0; row < kRows; ++row) {
      const float* const expected = of_whole.data() + row * (kObservation + kVector);
      for (int i = 0; i < kObservation && parameters; ++i) {
        EXPECT_EQ(of_observation[row * kObservation + i], expected[i]);
      }
      for (int i = 0; i < kVector; ++i) {
        EXPECT_EQ(of_vector[row * kVector + i], expected[kObservation + i]);
      }
    }
    if (!parameters) continue;
    EXPECT_THAT(joined_->gradients(), ElementsAreArray(plain_->gradients()));
  }
  joined_->Forward(Input());
  joined_->Backward(gradients.matrices);
  EXPECT_THAT(joined_->gradients(), ElementsAreArray(plain_->gradients()));
}

TEST_F(JoinedNetworkTest, AMissingPartIsNamed) {
  const auto text_of = [](auto&& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  NetworkInput input = Input();
  input.vector = nullptr;
  EXPECT_THAT(text_of([&] { joined_->Infer(input); }), HasSubstr("3 numbers beside"));
  // The joined rows are the inner network's: it reads nothing beside them.
  input = Input();
  EXPECT_THAT(text_of([&] { plain_->Infer(input); }), HasSubstr("vector_elements = 0"));
  input.rows = 0;
  EXPECT_THAT(text_of([&] { joined_->Forward(input); }), HasSubstr("0 rows"));
  EXPECT_THAT(text_of([] { MakeOf(Spec(kObservation, -1)); }), HasSubstr("-1 numbers beside"));
}

}  // namespace
}  // namespace menger
