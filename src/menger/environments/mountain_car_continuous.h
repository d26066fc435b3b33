#pragma once

#include <algorithm>
#include <cmath>

#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// MountainCarContinuous-v0: as MountainCar-v0 with a continuous force, paid for by its square.
//
// Moore (1990), in Arnaud de Broissia's continuous variant. Equal to Gymnasium 1.4 bit for bit,
// which takes care: there the state is float64 until the first step and float32 after it, so later
// steps are float32 arithmetic around a float64 cosine; and a force that was clipped is float64.
struct MountainCarContinuous {
  static constexpr int kObservationSize = 2;
  static constexpr int kActionSize = 1;

  static constexpr double kPositionMin = -1.2;
  static constexpr double kPositionMax = 0.6;
  static constexpr double kSpeedMax = 0.07;

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    start = random.Uniform(-0.6, -0.4);
    position = static_cast<float>(start);
    velocity = 0;
    at_start = 1;
    observation[0] = position;
    observation[1] = velocity;
  }

  StepResult Step(const float* action, Random& /*random*/, float* observation) {
    constexpr double kGoalReward = 100.0;
    constexpr double kActionCost = 0.1;
    const bool reached = at_start != 0 ? Move<double>(start, 0.0, action[0])
                                       : Move<float>(position, velocity, action[0]);
    at_start = 0;
    observation[0] = position;
    observation[1] = velocity;
    const double force = action[0];  // The cost is that of the action before clipping.
    return {.reward = (reached ? kGoalReward : 0.0) - force * force * kActionCost,
            .terminated = reached};
  }

  // One step in the arithmetic of `Real`; true at the goal.
  template <typename Real>
  bool Move(Real x, Real v, float action) {
    constexpr double kPower = 0.0015;
    constexpr double kGravity = 0.0025;
    constexpr Real kMin = static_cast<Real>(kPositionMin);
    constexpr Real kMax = static_cast<Real>(kPositionMax);
    constexpr Real kFast = static_cast<Real>(kSpeedMax);
    const double pull = kGravity * std::cos(static_cast<double>(3 * x));
    if (action < -1.0F || action > 1.0F) {
      v += static_cast<Real>((action < 0 ? -1.0 : 1.0) * kPower - pull);
    } else {
      v += action * static_cast<float>(kPower) - static_cast<float>(pull);
    }
    v = std::clamp(v, -kFast, kFast);
    x = std::clamp(x + v, kMin, kMax);
    if (x == kMin && v < 0) v = 0;  // The left wall.
    position = static_cast<float>(x);
    velocity = static_cast<float>(v);
    return x >= static_cast<Real>(0.45) && v >= 0;
  }

  double start = 0;  // The position before the first step.
  float position = 0;
  float velocity = 0;
  std::int64_t at_start = 1;  // 0 or 1; as wide as a double, so that no byte is padding.
};

}  // namespace menger
