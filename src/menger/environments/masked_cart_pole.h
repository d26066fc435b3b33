#pragma once

#include <array>

#include "menger/base/random.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// CartPole-v1 that shows positions alone: x and theta, no speeds. One observation does not tell
// which way the pole is falling, so only a policy with a memory solves it. Resets, dynamics, reward
// and limits are CartPole's.
struct MaskedCartPole {
  static constexpr int kObservationSize = 2;
  static constexpr int kActions = CartPole::kActions;

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    std::array<float, CartPole::kObservationSize> whole;
    cart_pole.Reset(random, whole.data());
    Mask(whole, observation);
  }

  StepResult Step(int action, Random& random, float* observation) {
    std::array<float, CartPole::kObservationSize> whole;
    const StepResult result = cart_pole.Step(action, random, whole.data());
    Mask(whole, observation);
    return result;
  }

  static void Mask(const std::array<float, CartPole::kObservationSize>& whole, float* observation) {
    observation[0] = whole[0];
    observation[1] = whole[2];
  }

  CartPole cart_pole;
};

}  // namespace menger
