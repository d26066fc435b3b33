// Every algorithm on the five probe environments, whose values are known exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/actor_critic_policy.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/probe_environments.h"
#include "menger/collectors/collector.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

constexpr double kDiscount = 0.9;
constexpr int kEnvironments = 8;
constexpr int kSlabs = 400;

struct Trained {
  std::unique_ptr<SlabAlgorithm> algorithm;
  EnvironmentSpec environment;

  // V(observation) and the greedy action there.
  std::pair<float, std::int64_t> At(float observation) {
    Slab slab({.observation = environment.observation,
               .state = algorithm->policies().spec().state,
               .action = environment.action,
               .policy = algorithm->policies().spec().columns});
    *slab.observation<float>(0, 0) = observation;
    algorithm->MakePolicy(PolicyMode::kGreedy, 0)->Act(slab, 0, {.first = 0, .count = 1});
    return {*slab.policy<float>(ActorCriticPolicies::kValue, 0), *slab.action<std::int64_t>(0, 0)};
  }
};

std::unique_ptr<AlgorithmEntry> FindAlgorithm(const std::string& name) {
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() == name) return std::move(entry);
  }
  return nullptr;
}

Trained Train(const std::string& name, const EnvironmentEntry& environment) {
  const auto entry = FindAlgorithm(name);
  Options options(name);
  entry->Declare(options);
  options.SetFromText("discount", std::to_string(kDiscount));
  options.SetFromText("learning_rate", "0.005");
  const OptionTexts declared = options.Texts();
  if (std::ranges::any_of(declared, [](const auto& o) { return o.first == "minibatch_size"; })) {
    options.SetFromText("minibatch_size", "32");
  }
  Trained trained{.environment = environment.spec};
  AlgorithmContext context{
      .environment = environment.spec, .environments = kEnvironments, .seed = 3};
  context.network.hidden = {16};
  std::unique_ptr<Algorithm> algorithm = entry->Make(context);
  trained.algorithm.reset(dynamic_cast<SlabAlgorithm*>(algorithm.release()));

  const auto collector = MakeCollector(
      {.environments = kEnvironments, .horizon = 16, .pin = false, .seed = 1}, environment,
      [&] { return trained.algorithm->MakePolicy(PolicyMode::kSample, 2); });
  OptimiserOptions optimiser;
  const auto update = MakeLocalUpdateRule(optimiser, trained.algorithm->parameter_count());
  for (int i = 0; i < kSlabs; ++i) {
    Slab* const slab = &collector->Collect();
    trained.algorithm->Learn({&slab, 1}, *update, static_cast<double>(i) / kSlabs);
    trained.algorithm->Publish();
  }
  return trained;
}

class ProbeTest : public testing::TestWithParam<std::string> {};

TEST_P(ProbeTest, TheValueOfAConstantRewardIsLearned) {
  EXPECT_NEAR(Train(GetParam(), probes::Entry<probes::Constant>()).At(0).first, 1.0, 0.1);
}

TEST_P(ProbeTest, ValuesDependOnTheObservation) {
  Trained trained = Train(GetParam(), probes::Entry<probes::Observed>());
  EXPECT_NEAR(trained.At(1).first, 1.0, 0.1);
  EXPECT_NEAR(trained.At(-1).first, -1.0, 0.1);
}

TEST_P(ProbeTest, RewardsAreDiscountedBackwards) {
  Trained trained = Train(GetParam(), probes::Entry<probes::Discounted>());
  EXPECT_NEAR(trained.At(0).first, kDiscount, 0.1);
  EXPECT_NEAR(trained.At(1).first, 1.0, 0.1);
}

TEST_P(ProbeTest, TheBetterActionIsChosen) {
  Trained trained = Train(GetParam(), probes::Entry<probes::Choice>());
  EXPECT_EQ(trained.At(0).second, 1);
  EXPECT_NEAR(trained.At(0).first, 1.0, 0.15);
}

TEST_P(ProbeTest, ThePolicyDependsOnTheObservation) {
  Trained trained = Train(GetParam(), probes::Entry<probes::Agreement>());
  EXPECT_EQ(trained.At(1).second, 1);
  EXPECT_EQ(trained.At(-1).second, 0);
  EXPECT_NEAR(trained.At(1).first, 1.0, 0.15);
  EXPECT_NEAR(trained.At(-1).first, 1.0, 0.15);
}

std::vector<std::string> SlabAlgorithms() {
  std::vector<std::string> names;
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() == DataRule::kSlabs) names.push_back(entry->name());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllAlgorithms, ProbeTest, testing::ValuesIn(SlabAlgorithms()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace menger
