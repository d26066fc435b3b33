#pragma once

#include <cmath>
#include <numbers>

#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// CartPole-v1: push a cart left or right so that the pole on it stays upright.
//
// Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning
// control problems" (1983), without friction, integrated by explicit Euler. Equal to Gymnasium 1.4
// bit for bit. SI units, radians; observation: x, x', theta, theta'.
struct CartPole {
  static constexpr int kObservationSize = 4;
  static constexpr int kActions = 2;  // Push left, push right.

  static constexpr double kPositionLimit = 2.4;
  static constexpr double kAngleLimit = 12 * 2 * std::numbers::pi / 360;

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    x = random.Uniform(-0.05, 0.05);
    x_speed = random.Uniform(-0.05, 0.05);
    angle = random.Uniform(-0.05, 0.05);
    angle_speed = random.Uniform(-0.05, 0.05);
    Observe(observation);
  }

  StepResult Step(int action, Random& /*random*/, float* observation) {
    constexpr double kGravity = 9.8;
    constexpr double kPoleMass = 0.1;
    constexpr double kTotalMass = kPoleMass + 1.0;
    constexpr double kHalfLength = 0.5;
    constexpr double kPoleMoment = kPoleMass * kHalfLength;
    constexpr double kForce = 10.0;
    constexpr double kTimeStep = 0.02;

    const double sine = std::sin(angle);
    const double cosine = std::cos(angle);
    const double force = action == 1 ? kForce : -kForce;
    const double thrust = (force + kPoleMoment * (angle_speed * angle_speed) * sine) / kTotalMass;
    const double angle_acceleration =
        (kGravity * sine - cosine * thrust) /
        (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
    const double acceleration = thrust - kPoleMoment * angle_acceleration * cosine / kTotalMass;

    x += kTimeStep * x_speed;
    x_speed += kTimeStep * acceleration;
    angle += kTimeStep * angle_speed;
    angle_speed += kTimeStep * angle_acceleration;
    Observe(observation);
    const bool fallen = std::abs(x) > kPositionLimit || std::abs(angle) > kAngleLimit;
    return {.reward = 1.0, .terminated = fallen};
  }

  void Observe(float* observation) const {
    observation[0] = static_cast<float>(x);
    observation[1] = static_cast<float>(x_speed);
    observation[2] = static_cast<float>(angle);
    observation[3] = static_cast<float>(angle_speed);
  }

  double x = 0;
  double x_speed = 0;
  double angle = 0;
  double angle_speed = 0;
};

}  // namespace menger
