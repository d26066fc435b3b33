#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "menger/base/random.h"
#include "menger/environments/numpy_math.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// Pendulum-v1: swing a pendulum up by a torque that is too small to lift it, and hold it there.
//
// The torque-limited swing-up of Doya, "Reinforcement learning in continuous time and space"
// (2000), as Gymnasium 1.4 poses it, equal to it bit for bit. Mass and length are 1, the angle is 0
// upright; observation: cosine, sine, speed. Never terminates.
struct Pendulum {
  static constexpr int kObservationSize = 3;
  static constexpr int kActionSize = 1;

  static constexpr double kSpeedMax = 8.0;
  static constexpr float kTorqueMax = 2.0F;

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    angle = random.Uniform(-std::numbers::pi, std::numbers::pi);
    speed = random.Uniform(-1.0, 1.0);
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, float* observation) {
    constexpr double kGravity = 10.0;
    constexpr double kTimeStep = 0.05;
    const float torque = std::clamp(action[0], -kTorqueMax, kTorqueMax);
    // The torque's terms are float32 arithmetic in Gymnasium too.
    const double cost =
        NumpySquare(Normalised(angle)) + 0.1 * NumpySquare(speed) + 0.001F * NumpySquare(torque);
    speed += (3 * kGravity / 2 * std::sin(angle) + 3.0F * torque) * kTimeStep;
    speed = std::clamp(speed, -kSpeedMax, kSpeedMax);
    angle += speed * kTimeStep;
    Observe(observation);
    return {.reward = -cost, .terminated = false};
  }

  // The same angle in [-pi, pi), by Python's remainder.
  static double Normalised(double angle) {
    constexpr double kTurn = 2 * std::numbers::pi;
    double remainder = std::fmod(angle + std::numbers::pi, kTurn);
    if (remainder < 0) remainder += kTurn;
    return remainder - std::numbers::pi;
  }

  void Observe(float* observation) const {
    observation[0] = static_cast<float>(std::cos(angle));
    observation[1] = static_cast<float>(std::sin(angle));
    observation[2] = static_cast<float>(speed);
  }

  double angle = 0;
  double speed = 0;
};

}  // namespace menger
