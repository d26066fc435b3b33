// SAC and TD3 on probe environments with real actions, and on a linear-quadratic problem whose
// values are known in closed form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/probe_environments.h"
#include "menger/algorithms/sac.h"
#include "menger/algorithms/td3.h"
#include "menger/training/replay_fixture.h"

namespace menger {
namespace {

constexpr double kDiscount = 0.9;

EnvironmentSpec SpecNamed(std::string name, int max_episode_steps = 0) {
  return {.name = std::move(name),
          .observation =
              menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {1}, {-1.0}, {1.0})}),
          .action = menger::Spec({LeafSpec::Box("action", DataType::kFloat32, {1}, {-1.0}, {1.0})}),
          .max_episode_steps = max_episode_steps,
          .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
          .description = "probe"};
}

// The five of probe_environments.h, with actions in [-1, 1].

// 1. Q(0, any) = 1.
struct Constant {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() { return SpecNamed("RealConstant"); }
  void Reset(Random&, float* observation) { *observation = 0; }
  StepResult Step(const float*, Random&, float*) { return {.reward = 1, .terminated = true}; }
};

// 2. Q(x, any) = x, for x of 1 and -1.
struct Observed {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() { return SpecNamed("RealObserved"); }
  void Reset(Random& random, float* observation) {
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(const float*, Random&, float*) { return {.reward = sign, .terminated = true}; }
  float sign = 0;
};

// 3. Q(0, any) = discount, Q(1, any) = 1.
struct Discounted {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() { return SpecNamed("RealDiscounted"); }
  void Reset(Random&, float* observation) {
    step = 0;
    *observation = 0;
  }
  StepResult Step(const float*, Random&, float* observation) {
    *observation = 1;
    ++step;
    return {.reward = step == 2 ? 1.0 : 0.0, .terminated = step == 2};
  }
  int step = 0;
};

// 4. Q(0, a) = 1 - (a - .5)^2: the best action lies inside the bounds.
struct Aim {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() { return SpecNamed("RealAim"); }
  void Reset(Random&, float* observation) { *observation = 0; }
  StepResult Step(const float* action, Random&, float*) {
    const double miss = *action - 0.5;
    return {.reward = 1 - miss * miss, .terminated = true};
  }
};

// 5. Q(x, a) = 1 - (a - x / 2)^2, for x of 1 and -1: the best action depends on the observation.
struct Follow {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static EnvironmentSpec Spec() { return SpecNamed("RealFollow"); }
  void Reset(Random& random, float* observation) {
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(const float* action, Random&, float*) {
    const double miss = *action - sign / 2;
    return {.reward = 1 - miss * miss, .terminated = true};
  }
  float sign = 0;
};

// x' = a x + b u, reward -(x^2 + r u^2), for ever (a time limit cuts it and is bootstrapped from).
struct LinearQuadratic {
  static constexpr int kObservationSize = 1;
  static constexpr int kActionSize = 1;
  static constexpr double kA = 0.9;
  static constexpr double kB = 0.5;
  static constexpr double kR = 1;

  static EnvironmentSpec Spec() { return SpecNamed("LinearQuadratic", /*max_episode_steps=*/5); }
  void Reset(Random& random, float* observation) {
    x = random.Uniform(-1.0, 1.0);
    *observation = static_cast<float>(x);
  }
  StepResult Step(const float* action, Random&, float* observation) {
    const double reward = -(x * x + kR * *action * *action);
    x = std::clamp(kA * x + kB * *action, -1.0, 1.0);
    *observation = static_cast<float>(x);
    return {.reward = reward, .terminated = false};
  }

  // The value is -p x^2, with p the root of the discounted Riccati equation; the best action is
  // -gain x. Bounds of actions and states are not reached by it.
  struct Solution {
    double p = 0;
    double gain = 0;

    double Q(double x, double u) const {
      const double next = kA * x + kB * u;
      return -(x * x + kR * u * u) - kDiscount * p * next * next;
    }
  };
  static Solution Solve() {
    Solution solution;
    for (int i = 0; i < 1000; ++i) {
      const double cross = kDiscount * kA * kB * solution.p;
      solution.gain = cross / (kR + kDiscount * kB * kB * solution.p);
      solution.p = 1 + kDiscount * kA * kA * solution.p - cross * solution.gain;
    }
    return solution;
  }
  double x = 0;
};

struct Variant {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
  bool prioritised = false;

  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
};

// Runs of either algorithm behind one interface.
class Learned {
 public:
  template <typename Run>
  explicit Learned(std::shared_ptr<Run> run)
      : q_([run](float x, float u) {
          const float input[] = {x, u};
          const auto outputs = run->algorithm().critics().Infer({.observations = input, .rows = 1});
          return (*outputs[0].row(0) + *outputs[1].row(0)) / 2;
        }),
        action_([run](float x) {
          return std::tanh(
              *run->algorithm().actor().Infer({.observations = &x, .rows = 1})[0].row(0));
        }) {}

  float Q(float x, float u) const { return q_(x, u); }
  float Action(float x) const { return action_(x); }  // Without noise.

 private:
  std::function<float(float, float)> q_;
  std::function<float(float)> action_;
};

class PathwiseProbeTest : public testing::TestWithParam<Variant> {
 protected:
  using OptionTextPairs = std::vector<std::pair<std::string, std::string>>;

  static Learned Trained(EnvironmentEntry environment, std::int64_t steps,
                         const OptionTextPairs& more_options = {}) {
    ReplaySetup setup{.environments = 4, .horizon = 2, .steps = steps, .seed = 3};
    setup.options = {{"discount", std::to_string(kDiscount)},
                     {"learning_rate", "0.003"},
                     {"target_rate", "0.05"}};
    setup.replay = {
        .capacity = 20'000, .min_size = 200, .batch_size = 64, .training_intensity = 64};
    if (GetParam().prioritised) setup.replay.sampler = "prioritised";
    setup.network.hidden = {32, 32};
    setup.network.activation = "relu";
    setup.optimiser = {.epsilon = 1e-8, .max_gradient_norm = 0};
    const auto& more = GetParam().options;
    setup.options.insert(setup.options.end(), more.begin(), more.end());
    setup.options.insert(setup.options.end(), more_options.begin(), more_options.end());
    const auto train = [&](auto run) {
      run->Train();
      return Learned(run);
    };
    if (GetParam().name.starts_with("sac")) {
      return train(std::make_shared<ReplayRunOf<Sac, SacConfig>>(setup, std::move(environment)));
    }
    return train(std::make_shared<ReplayRunOf<Td3, Td3Config>>(setup, std::move(environment)));
  }
};

TEST_P(PathwiseProbeTest, TheValueOfAConstantRewardIsLearned) {
  const Learned learned = Trained(probes::Entry<Constant>(), 2'000);
  for (const float u : {-0.8F, 0.0F, 0.8F}) EXPECT_NEAR(learned.Q(0, u), 1, 0.1) << u;
}

TEST_P(PathwiseProbeTest, ValuesDependOnTheObservation) {
  const Learned learned = Trained(probes::Entry<Observed>(), 2'000);
  EXPECT_NEAR(learned.Q(1, 0), 1, 0.1);
  EXPECT_NEAR(learned.Q(-1, 0), -1, 0.1);
}

TEST_P(PathwiseProbeTest, RewardsAreDiscountedBackwards) {
  const Learned learned = Trained(probes::Entry<Discounted>(), 3'000);
  EXPECT_NEAR(learned.Q(0, 0), kDiscount, 0.1);
  EXPECT_NEAR(learned.Q(1, 0), 1, 0.1);
}

TEST_P(PathwiseProbeTest, TheBestActionIsFound) {
  const Learned learned = Trained(probes::Entry<Aim>(), 3'000);
  EXPECT_NEAR(learned.Action(0), 0.5, 0.1);
  EXPECT_NEAR(learned.Q(0, 0.5F), 1, 0.1);
  EXPECT_NEAR(learned.Q(0, 0.0F), 0.75, 0.15);
}

TEST_P(PathwiseProbeTest, TheBestActionDependsOnTheObservation) {
  const Learned learned = Trained(probes::Entry<Follow>(), 4'000);
  EXPECT_NEAR(learned.Action(1), 0.5, 0.1);
  EXPECT_NEAR(learned.Action(-1), -0.5, 0.1);
  EXPECT_NEAR(learned.Q(1, 0.5F), 1, 0.1);
}

// Variants that learn what the equation says. Others learn something else on purpose (values of
// smoothed actions, or returns of several steps of noisy ones), or see hardly any action but the
// best.
class SlowClosedFormTest : public PathwiseProbeTest {};

TEST_P(SlowClosedFormTest, QOfALinearQuadraticProblemIsTheClosedForm) {
  const LinearQuadratic::Solution solution = LinearQuadratic::Solve();
  const Learned learned =
      Trained(probes::Entry<LinearQuadratic>(), 20'000, {{"learning_rate_schedule", "linear"}});
  double squares = 0;
  int count = 0;
  for (float x = -0.8F; x < 0.9F; x += 0.2F) {
    EXPECT_NEAR(learned.Action(x), -solution.gain * x, 0.1) << x;
    for (float u = -0.6F; u < 0.7F; u += 0.2F) {
      const double error = learned.Q(x, u) - solution.Q(x, u);
      squares += error * error;
      ++count;
    }
  }
  EXPECT_LT(std::sqrt(squares / count), 0.06);  // Of values down to -2.
}

const std::vector<Variant> kClosedForm = {
    {.name = "sac_learned_temperature",
     .options = {{"temperature", "0.1"}, {"target_entropy", "-3"}}},
    {.name = "td3_unsmoothed", .options = {{"exploration_noise", "0.5"}, {"target_noise", "0"}}}};
const std::vector<Variant> kOthers = {
    {.name = "sac", .options = {{"learn_temperature", "false"}, {"temperature", "0.005"}}},
    {.name = "td3", .options = {{"exploration_noise", "0.3"}}},
    {.name = "td3_steps_prioritised",
     .options = {{"exploration_noise", "0.3"}, {"n_step", "2"}},
     .prioritised = true}};

constexpr auto kNameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(ClosedForm, PathwiseProbeTest, testing::ValuesIn(kClosedForm), kNameOf);
INSTANTIATE_TEST_SUITE_P(Others, PathwiseProbeTest, testing::ValuesIn(kOthers), kNameOf);
INSTANTIATE_TEST_SUITE_P(ClosedForm, SlowClosedFormTest, testing::ValuesIn(kClosedForm), kNameOf);

}  // namespace
}  // namespace menger
