#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "menger/base/random.h"
#include "menger/environments/numpy_math.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// Acrobot-v1: swing a two-link pendulum up by a torque at the joint between the links.
//
// Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse
// coding" (1996), with the equations of Sutton and Barto's book, integrated by one Runge-Kutta step
// of fourth order. Equal to Gymnasium 1.4 bit for bit. SI units, radians; observation: cosine and
// sine of both angles, both speeds. All lengths, masses and moments of inertia are 1, the centres
// of mass lie at 0.5.
struct Acrobot {
  static constexpr int kObservationSize = 6;
  static constexpr int kActions = 3;  // Torque -1, 0, 1.

  static constexpr double kSpeedLimit1 = 4 * std::numbers::pi;
  static constexpr double kSpeedLimit2 = 9 * std::numbers::pi;

  using State = std::array<double, 4>;  // theta1, theta2, theta1', theta2'

  static EnvironmentSpec Spec();

  void Reset(Random& random, float* observation) {
    std::array<float, 4> start;
    for (float& value : start) value = static_cast<float>(random.Uniform(-0.1, 0.1));
    std::copy(start.begin(), start.end(), state.begin());
    // Gymnasium's start state is float32, and so is the arithmetic of its first observation.
    observation[0] = NumpyCosSmall(start[0]);
    observation[1] = NumpySinSmall(start[0]);
    observation[2] = NumpyCosSmall(start[1]);
    observation[3] = NumpySinSmall(start[1]);
    observation[4] = start[2];
    observation[5] = start[3];
  }

  StepResult Step(int action, Random& /*random*/, float* observation) {
    constexpr double kTimeStep = 0.2;
    const double torque = action - 1.0;
    const State k1 = Derivative(state, torque);
    const State k2 = Derivative(Along(state, kTimeStep / 2.0, k1), torque);
    const State k3 = Derivative(Along(state, kTimeStep / 2.0, k2), torque);
    const State k4 = Derivative(Along(state, kTimeStep, k3), torque);
    for (int i = 0; i < 4; ++i) {
      state[i] += kTimeStep / 6.0 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    state[0] = Wrap(state[0]);
    state[1] = Wrap(state[1]);
    state[2] = std::clamp(state[2], -kSpeedLimit1, kSpeedLimit1);
    state[3] = std::clamp(state[3], -kSpeedLimit2, kSpeedLimit2);

    const double cosine = std::cos(state[0]);
    observation[0] = static_cast<float>(cosine);
    observation[1] = static_cast<float>(std::sin(state[0]));
    observation[2] = static_cast<float>(std::cos(state[1]));
    observation[3] = static_cast<float>(std::sin(state[1]));
    observation[4] = static_cast<float>(state[2]);
    observation[5] = static_cast<float>(state[3]);
    const bool risen = -cosine - std::cos(state[1] + state[0]) > 1.0;
    return {.reward = risen ? 0.0 : -1.0, .terminated = risen};
  }

  static State Along(const State& from, double time, const State& slope) {
    State to;
    for (int i = 0; i < 4; ++i) to[i] = from[i] + time * slope[i];
    return to;
  }

  // The order of the operations is Gymnasium's, because rounding depends on it.
  static State Derivative(const State& s, double torque) {
    constexpr double kCentre = 0.5;
    constexpr double kGravity = 9.8;
    constexpr double kQuarterTurn = std::numbers::pi / 2.0;
    const double sine2 = std::sin(s[1]);
    const double cosine2 = std::cos(s[1]);
    const double d1 = kCentre * kCentre + (1 + kCentre * kCentre + 2 * kCentre * cosine2) + 1 + 1;
    const double d2 = (kCentre * kCentre + kCentre * cosine2) + 1;
    const double phi2 = kCentre * kGravity * std::cos(s[0] + s[1] - kQuarterTurn);
    const double phi1 = -kCentre * NumpySquare(s[3]) * sine2 - 2 * kCentre * s[3] * s[2] * sine2 +
                        (kCentre + 1) * kGravity * std::cos(s[0] - kQuarterTurn) + phi2;
    const double acceleration2 =
        (torque + d2 / d1 * phi1 - kCentre * NumpySquare(s[2]) * sine2 - phi2) /
        (kCentre * kCentre + 1 - NumpySquare(d2) / d1);
    const double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
    return {s[2], s[3], acceleration1, acceleration2};
  }

  static double Wrap(double angle) {
    constexpr double kPi = std::numbers::pi;
    // A step turns a link by less than two turns: the speeds are limited.
    while (angle > kPi) angle -= kPi - -kPi;
    while (angle < -kPi) angle += kPi - -kPi;
    return angle;
  }

  State state{};
};

}  // namespace menger
