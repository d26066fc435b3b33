// Algorithms of one's own: what their parts may use, and what is said where they give too little.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/actor_critic_algorithm.h"
#include "menger/algorithms/pathwise_algorithm.h"
#include "menger/algorithms/value_policy.h"
#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

using testing::HasSubstr;

template <typename Function>
std::string TextOf(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

AlgorithmContext ContextFor(const std::string& environment) {
  AlgorithmContext context{.environment = NativeEnvironments().Find(environment).spec,
                           .environments = 2};
  context.network.hidden = {4};
  return context;
}

// Names two losses and sets as many as it is told to.
class OfLosses final : public ActorCriticAlgorithm {
 public:
  OfLosses(const AlgorithmContext& context, std::size_t losses)
      : ActorCriticAlgorithm({}, {}, context), losses_(losses) {}

 private:
  std::vector<std::string> loss_names() const override { return {"policy_loss", "value_loss"}; }
  void Loss(const Minibatch&, PolicyGradient& policy, LossStep& step) override {
    std::ranges::fill(policy.log_probability_gradient(), 0.0F);
    std::ranges::fill(policy.value_gradient(), 0.0F);
    step.metrics.assign(losses_, 1.0);
  }

  const std::size_t losses_;
};

TEST(OwnAlgorithmTest, ALossThatSetsMoreOrFewerMetricsThanItNamesIsRefused) {
  const EnvironmentEntry environment = NativeEnvironments().Find("CartPole-v1");
  for (const std::size_t losses : {1U, 2U, 3U}) {
    OfLosses algorithm(ContextFor("CartPole-v1"), losses);
    const auto update = MakeLocalUpdateRule({}, algorithm.parameter_groups());
    const auto collector =
        MakeCollector({.environments = 2, .horizon = 4, .pin = false}, environment,
                      [&] { return algorithm.MakePolicy(PolicyMode::kSample, 1); });
    Slab* const slab = &collector->Collect();
    const std::string expected = losses == 2
                                     ? "no error"
                                     : "the loss set " + std::to_string(losses) +
                                           " metrics; loss_names() has 2: policy_loss, value_loss";
    EXPECT_EQ(TextOf([&] { algorithm.Learn({&slab, 1}, *update, 0); }), expected);
  }
}

// Its actor is drawn to the actions of the batch while it climbs the first critic: one term more
// than that of TD3, on the same parts.
class Cloning final : public PathwiseAlgorithm {
 public:
  Cloning(const AlgorithmContext& context, std::size_t metrics)
      : PathwiseAlgorithm({}, context,
                          MakeSquashedPoint(ActionScaling(context.environment).elements()),
                          /*exploration=*/0.1),
        metrics_(metrics) {}

  const std::vector<float>& action_gradient() const { return gradient_; }
  double value() const { return value_; }

  // The first critic's value of a row's observation and an action.
  double ValueOf(std::span<const float> actions) {
    const Matrix values = critics().Infer(CriticInput(batch().observations(), actions))[0];
    double sum = 0;
    for (int row = 0; row < values.rows; ++row) sum += *values.row(row);
    return sum / values.rows;
  }
  const std::vector<float>& actions() const { return actions_; }

 private:
  void MakeTargets(std::span<float> targets) override { std::ranges::fill(targets, 0.0F); }
  std::vector<double> StepOthers(double, UpdateRule&) override {
    actions_.resize(action_floats());
    gradient_.resize(action_floats());
    distribution().Mode(actor().Forward(batch().observations())[0], actions_.data());
    value_ = ActionGradient(Judge::kFirst, actions_, gradient_);
    return std::vector<double>(metrics_);
  }
  std::vector<std::string> own_metric_names() const override { return {"value"}; }
  void SaveOwn(ArchiveWriter&) const override {}
  void LoadOwn(ArchiveReader&) override {}
  void LoadOwnParameters(ArchiveReader&) override {}

  const std::size_t metrics_;
  std::vector<float> actions_, gradient_;
  double value_ = 0;
};

// One transition of Pendulum, often enough for a batch.
class Transitions {
 public:
  ReplayBatch batch() { return {.columns = columns_, .items = items_}; }

 private:
  static constexpr int kRows = 3;
  std::vector<float> floats_ = RecordedInput(3 * kRows, 4, 0.5F);
  std::vector<std::uint8_t> terminated_ = {0, 1, 0};
  const std::vector<std::int32_t> ones_ = {1, 1, 1};
  std::vector<SampledItem> items_ = std::vector<SampledItem>(kRows, {.probability = 1});
  std::vector<BatchColumn> columns_ = {
      Of(floats_.data(), 3),
      Of(floats_.data(), 1),
      Of(floats_.data(), 1),
      {.data = reinterpret_cast<std::byte*>(terminated_.data()), .item_bytes = 1, .rows = ones_},
      Of(floats_.data(), 3)};

  BatchColumn Of(float* values, std::size_t elements) const {
    return {.data = reinterpret_cast<std::byte*>(values),
            .item_bytes = elements * sizeof(float),
            .rows = ones_};
  }
};

TEST(OwnAlgorithmTest, AnActorsOwnLossHasTheGradientOfTheCriticsValueOfItsActions) {
  Cloning algorithm(ContextFor("Pendulum-v1"), /*metrics=*/1);
  const auto update = MakeLocalUpdateRule({}, algorithm.parameter_groups());
  Transitions transitions;
  algorithm.Learn(transitions.batch(), *update, 0);
  std::vector<float> actions = algorithm.actions();
  EXPECT_NEAR(algorithm.ValueOf(actions), algorithm.value(), 1e-5);
  constexpr float kStep = 1.0F / 64;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const float middle = actions[i];
    actions[i] = middle + kStep;
    const double up = algorithm.ValueOf(actions);
    actions[i] = middle - kStep;
    const double slope = (up - algorithm.ValueOf(actions)) / (2 * kStep);
    actions[i] = middle;
    EXPECT_NEAR(algorithm.action_gradient()[i], -slope, 1e-3) << i;
  }
}

TEST(OwnAlgorithmTest, OtherMetricsThanAnActorNamesAreRefused) {
  Transitions transitions;
  for (const std::size_t metrics : {0U, 4U}) {
    Cloning algorithm(ContextFor("Pendulum-v1"), metrics);
    const auto update = MakeLocalUpdateRule({}, algorithm.parameter_groups());
    EXPECT_EQ(TextOf([&] { algorithm.Learn(transitions.batch(), *update, 0); }),
              "StepOthers returned " + std::to_string(metrics) +
                  " metrics; own_metric_names() has 1: value");
  }
}

TEST(OwnAlgorithmTest, ValuesOfActionsAreForOneChoiceOfAsManyAsThereAre) {
  EXPECT_THAT(TextOf([] { ValuePolicies(ContextFor("Pendulum-v1"), {.values = {.actions = 1}}); }),
              HasSubstr("those of Pendulum-v1 are not Discrete"));
  EXPECT_THAT(TextOf([] { ValuePolicies(ContextFor("CartPole-v1"), {.values = {.actions = 3}}); }),
              HasSubstr("values of 3 actions are asked for; those of CartPole-v1 are 2"));
}

}  // namespace
}  // namespace menger
