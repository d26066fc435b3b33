// Every algorithm that learns from replay on a probe environment whose answer is known.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/probe_environments.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/algorithms/training_fixture.h"
#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/networks/update_rule.h"
#include "menger/training/replay_learner.h"

namespace menger {
namespace {

constexpr int kSteps = 4'000;

// As probes::Agreement, with real actions: one step, observation +-1, reward -(action - x / 2)^2.
struct Follow {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() {
    EnvironmentSpec spec = probes::SpecNamed("ProbeFollow", 2);
    spec.action = menger::Spec({LeafSpec::Box("action", DataType::kFloat32, {1}, {-1.0}, {1.0})});
    return spec;
  }
  void Reset(Random& random, float* observation) {
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(const float* action, Random&, float*) {
    const double distance = action[0] - sign / 2;
    return {.reward = -distance * distance, .terminated = true};
  }
  float sign = 0;
};

bool Fits(const AlgorithmEntry& entry, const EnvironmentSpec& environment) {
  try {
    entry.Check(environment);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<ReplayAlgorithm> MakeFor(AlgorithmEntry& entry, const EnvironmentSpec& spec) {
  Options options(entry.name());
  entry.Declare(options);
  const std::vector<std::pair<const char*, const char*>> settings = {{"discount", "0.9"},
                                                                     {"learning_rate", "0.003"},
                                                                     {"target_every", "20"},
                                                                     {"epsilon_fraction", "0.5"}};
  for (const auto& [name, text] : settings) {
    if (options.Contains(name)) options.SetFromText(name, text);
  }
  AlgorithmContext context{.environment = spec, .environments = 4, .seed = 3};
  context.network.hidden = {32};
  return std::unique_ptr<ReplayAlgorithm>(
      dynamic_cast<ReplayAlgorithm*>(entry.Make(context).release()));
}

// The mean return of greedy episodes after training.
double ReturnOf(AlgorithmEntry& entry, const EnvironmentEntry& environment) {
  const auto algorithm = MakeFor(entry, environment.spec);
  const auto update = MakeLocalUpdateRule({}, algorithm->parameter_groups());
  ReplayLearner learner(
      {.capacity = kSteps, .min_size = 100, .batch_size = 32, .training_intensity = 16},
      {.environments = 4, .seed = 1}, *algorithm);
  const auto collector =
      MakeCollector({.environments = 4, .horizon = 4, .pin = false, .seed = 1}, environment,
                    [&] { return algorithm->MakePolicy(PolicyMode::kSample, 2); });
  for (int steps = 0; steps < kSteps; steps += 16) {
    learner.Consume(collector->Collect(), *update, static_cast<double>(steps) / kSteps);
    algorithm->Publish();
  }
  return GreedyReturn(*algorithm, environment, /*episodes=*/50, /*horizon=*/1);
}

std::vector<std::string> ReplayAlgorithms() {
  std::vector<std::string> names;
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() == DataRule::kBatches) names.push_back(entry->name());
  }
  return names;
}

class AnyReplayProbeTest : public testing::TestWithParam<std::string> {};

TEST_P(AnyReplayProbeTest, TheBestActionDependsOnTheObservation) {
  int probed = 0;
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() != GetParam()) continue;
    const auto choices = probes::Entry<probes::Agreement>();
    const auto amounts = probes::Entry<Follow>();
    if (Fits(*entry, choices.spec)) {
      ++probed;
      EXPECT_GE(ReturnOf(*entry, choices), 0.9);  // But for random actions in evaluation.
    }
    if (Fits(*entry, amounts.spec)) {
      ++probed;
      EXPECT_GE(ReturnOf(*entry, amounts), -0.03);
    }
  }
  EXPECT_GE(probed, 1);
}

INSTANTIATE_TEST_SUITE_P(AllAlgorithms, AnyReplayProbeTest, testing::ValuesIn(ReplayAlgorithms()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace menger
