#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

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
