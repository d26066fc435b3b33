// The part of the learning ladder for replay that runs in seconds; tests/ladder has the rest.
#include <gtest/gtest.h>

#include "menger/environments/catalog.h"
#include "menger/training/replay_fixture.h"

namespace menger {
namespace {

// CleanRL's DQN for CartPole-v1, cut to an eighth of its steps: see experiments/cartpole_dqn.toml.
TEST(ReplayLearningSlowTest, DqnLearnsCartPole) {
  ReplaySetup setup{.environments = 1, .horizon = 10, .steps = 60'000};
  setup.options = {{"huber_delta", "inf"},
                   {"target_every", "50"},
                   {"epsilon_end", "0.05"},
                   {"epsilon_fraction", "0.3"},
                   {"evaluation_epsilon", "0"}};
  setup.replay = {
      .capacity = 10'000, .min_size = 5'000, .batch_size = 128, .training_intensity = 12.8};
  setup.network.hidden = {120, 84};
  setup.network.activation = "relu";
  setup.optimiser = {.epsilon = 1e-8, .max_gradient_norm = 0};
  for (const std::uint64_t seed : {1, 2}) {
    setup.seed = seed;
    ReplayRun run(setup, NativeEnvironments().Find("CartPole-v1"));
    run.Train();
    EXPECT_GE(run.Evaluate(/*episodes=*/20, /*horizon=*/500), 150) << "seed " << seed;
  }
}

// As experiments/cartpole_rainbow.toml.
TEST(ReplayLearningSlowTest, RainbowWithEpsilonBalancesCartPoleWithin50kSteps) {
  ReplaySetup setup{.environments = 1, .horizon = 4, .steps = 50'000};
  setup.options = {
      {"double", "true"},          {"duelling", "true"},       {"n_step", "3"},
      {"distribution", "c51"},     {"value_minimum", "0"},     {"value_maximum", "100"},
      {"learning_rate", "5e-4"},   {"target_every", "125"},    {"epsilon_end", "0.02"},
      {"epsilon_fraction", "0.1"}, {"evaluation_epsilon", "0"}};
  setup.replay = {.capacity = 10'000,
                  .min_size = 1'000,
                  .batch_size = 32,
                  .training_intensity = 8,
                  .sampler = "prioritised",
                  .priority_exponent = 0.5};
  setup.network = {.activation = "relu", .shared_trunk = true};
  setup.optimiser = {.epsilon = 1e-8, .max_gradient_norm = 10};
  for (const std::uint64_t seed : {1, 2}) {
    setup.seed = seed;
    ReplayRun run(setup, NativeEnvironments().Find("CartPole-v1"));
    run.Train();
    EXPECT_GE(run.Evaluate(/*episodes=*/20, /*horizon=*/500), 400) << "seed " << seed;
  }
}

}  // namespace
}  // namespace menger
