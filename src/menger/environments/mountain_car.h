#pragma once

#include <algorithm>
#include <cmath>

#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// MountainCar-v0: an underpowered car rocks itself out of a valley.
//
// Moore, "Efficient memory-based learning for robot control" (1990). Equal to Gymnasium 1.4 bit for
// bit. Observation: position, velocity.
struct MountainCar {
  static constexpr int kObservationSize = 2;
  static constexpr int kActions = 3;  // Accelerate left, not at all, right.

  static constexpr double kPositionMin = -1.2;
  static constexpr double kPositionMax = 0.6;
  static constexpr double kSpeedMax = 0.07;

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    position = random.Uniform(-0.6, -0.4);
    velocity = 0;
    Observe(observation);
  }

  StepResult Step(int action, Random& /*random*/, float* observation) {
    constexpr double kForce = 0.001;
    constexpr double kGravity = 0.0025;
    constexpr double kGoal = 0.5;
    velocity += (action - 1) * kForce + std::cos(3 * position) * -kGravity;
    velocity = std::clamp(velocity, -kSpeedMax, kSpeedMax);
    position = std::clamp(position + velocity, kPositionMin, kPositionMax);
    if (position == kPositionMin && velocity < 0) velocity = 0;  // The left wall.
    Observe(observation);
    return {.reward = -1.0, .terminated = position >= kGoal && velocity >= 0};
  }

  void Observe(float* observation) const {
    observation[0] = static_cast<float>(position);
    observation[1] = static_cast<float>(velocity);
  }

  double position = 0;
  double velocity = 0;
};

}  // namespace menger
