#include "menger/algorithms/target_network.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "menger/base/random.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

// Of more parameters than one thread moves at a time.
std::unique_ptr<Network> Wide() {
  NetworkSpec spec{.observation = LeafSpec::Box("observation", DataType::kFloat32, {3}, {-1}, {1}),
                   .heads = {{.name = "value"}}};
  spec.options.hidden = {150, 150};
  Random random = Random::FromSeed(1);
  return MakeNetwork(spec, random, /*threads=*/1);
}

TEST(TargetNetworkTest, ItFollowsWithEveryParameterWhateverTheThreads) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Network> network = Wide();
    const auto count = network->parameters().size();
    ASSERT_GT(count, 20'000U);
    TargetNetwork target(*network, threads);
    const std::vector<float> before(network->parameters().begin(), network->parameters().end());
    const std::vector<float> now = RecordedInput(count, 1, 1.0F);
    std::ranges::copy(now, network->parameters().begin());
    target.Follow(*network, 0.25F);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(target.network().parameters()[i], before[i] + 0.25F * (now[i] - before[i])) << i;
    }
    const float x[] = {0.5F, -0.5F, 1.0F};
    const float followed = *target.network().Infer({.observations = x, .rows = 1})[0].row(0);
    target.Copy(*network);
    EXPECT_EQ(std::vector<float>(target.network().parameters().begin(),
                                 target.network().parameters().end()),
              now);
    EXPECT_NE(*target.network().Infer({.observations = x, .rows = 1})[0].row(0), followed);
  }
}

}  // namespace
}  // namespace menger
