#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// Five tiny environments whose values are known exactly, each needing one thing more of a learner
// than the one before (after Andy Jones, "Debugging RL"). An algorithm that fails probe k has a
// fault that probe k-1 could not show.
namespace probes {

inline EnvironmentSpec SpecNamed(std::string name, int actions) {
  return {.name = std::move(name),
          .observation =
              menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {1}, {-1.0}, {1.0})}),
          .action = menger::Spec({LeafSpec::Discrete("action", actions)}),
          .max_episode_steps = 0,
          .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
          .description = "probe"};
}

// 1. One step, one observation, reward 1: V(0) = 1. The value loss works.
struct Constant {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 1;
  static EnvironmentSpec Spec() { return SpecNamed("ProbeConstant", kActions); }
  void Reset(Random&, float* observation) { *observation = 0; }
  StepResult Step(int, Random&, float*) { return {.reward = 1, .terminated = true}; }
};

// 2. One step, observation +-1, reward equal to it: V(x) = x. Values depend on the observation.
struct Observed {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 1;
  static EnvironmentSpec Spec() { return SpecNamed("ProbeObserved", kActions); }
  void Reset(Random& random, float* observation) {
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(int, Random&, float*) { return {.reward = sign, .terminated = true}; }
  float sign = 0;
};

// 3. Two steps, observation 0 then 1, reward 1 at the end: V(0) = discount, V(1) = 1. Rewards are
// discounted backwards.
struct Discounted {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 1;
  static EnvironmentSpec Spec() { return SpecNamed("ProbeDiscounted", kActions); }
  void Reset(Random&, float* observation) {
    step = 0;
    *observation = 0;
  }
  StepResult Step(int, Random&, float* observation) {
    *observation = 1;
    ++step;
    return {.reward = step == 2 ? 1.0 : 0.0, .terminated = step == 2};
  }
  int step = 0;
};

// 4. One step, one observation, reward 1 for action 1 and -1 for action 0. The policy improves.
struct Choice {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 2;
  static EnvironmentSpec Spec() { return SpecNamed("ProbeChoice", kActions); }
  void Reset(Random&, float* observation) { *observation = 0; }
  StepResult Step(int action, Random&, float*) {
    return {.reward = action == 1 ? 1.0 : -1.0, .terminated = true};
  }
};

// 5. One step, observation +-1, reward 1 if the action agrees with its sign, else -1. Policy and
// value both depend on it.
struct Agreement {
  static constexpr int kObservationSize = 1;
  static constexpr int kActions = 2;
  static EnvironmentSpec Spec() { return SpecNamed("ProbeAgreement", kActions); }
  void Reset(Random& random, float* observation) {
    *observation = sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
  }
  StepResult Step(int action, Random&, float*) {
    return {.reward = (action == 1) == (sign > 0) ? 1.0 : -1.0, .terminated = true};
  }
  float sign = 0;
};

template <typename S>
EnvironmentEntry Entry() {
  return {.spec = S::Spec(), .make_group = [](const GroupOptions& options) {
            return std::make_unique<SimulatorGroup<S>>(options);
          }};
}

}  // namespace probes
}  // namespace menger
