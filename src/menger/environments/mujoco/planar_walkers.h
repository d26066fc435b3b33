#pragma once

#include <cmath>
#include <limits>

#include "menger/environments/mujoco/mujoco_simulator.h"

namespace menger {

// Three bodies that run to the right in a plane. Their first position is the distance covered,
// which they do not see; then come height and angle of the trunk, then the joints' angles.

// HalfCheetah-v5: two legs, a spine that cannot fall over. Run fast, with small torques.
class HalfCheetah : public MujocoSimulator {
 public:
  static constexpr const char* kName = "HalfCheetah-v5";
  static constexpr const char* kModelFile = "half_cheetah.xml";
  static constexpr int kObservationSize = 17;
  static constexpr int kActionSize = 6;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = 4800,
                             .description = "Run with two legs in a plane (MuJoCo)."});
  }

  explicit HalfCheetah(const Config& model)
      : MujocoSimulator(model, /*frame_skip=*/5, Contacts::kUnused) {}

  void Reset(Random& random, double* observation) {
    Start([&] { return random.Uniform(-0.1, 0.1); }, [&] { return 0.1 * random.Normal(); });
    StartFrom(qpos()[0]);
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, double* observation) {
    Advance(action);
    Observe(observation);
    // NumPy sums and scales float32 actions in float32, here and below.
    const float control_cost = 0.1F * SumOfSquares(action, kActionSize);
    return {.reward = VelocityTo(qpos()[0]) - control_cost};
  }

 private:
  void Observe(double* observation) const {
    ObservationWriter writer(observation);
    writer.Add(qpos().subspan(1));
    writer.Add(qvel());
  }
};

// What Hopper and Walker2d share: a body that must not fall, `Body::IsHealthy()`.
template <typename Body>
class FallingWalker : public MujocoSimulator {
 public:
  explicit FallingWalker(const Config& model)
      : MujocoSimulator(model, /*frame_skip=*/4, Contacts::kUnused) {}

  void Reset(Random& random, double* observation) {
    const auto noise = [&] { return random.Uniform(-0.005, 0.005); };
    Start(noise, noise);
    StartFrom(qpos()[0]);
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, double* observation) {
    Advance(action);
    Observe(observation);
    const bool healthy = static_cast<const Body&>(*this).IsHealthy();
    const float control_cost = 1e-3F * SumOfSquares(action, Body::kActionSize);
    return {.reward = VelocityTo(qpos()[0]) + (healthy ? 1.0 : 0.0) - control_cost,
            .terminated = !healthy};
  }

 private:
  void Observe(double* observation) const {
    ObservationWriter writer(observation);
    writer.Add(qpos().subspan(1));
    writer.AddClipped(qvel(), 10);
  }
};

// Hopper-v5: one leg. Hop far and upright.
class Hopper : public FallingWalker<Hopper> {
 public:
  static constexpr const char* kName = "Hopper-v5";
  static constexpr const char* kModelFile = "hopper.xml";
  static constexpr int kObservationSize = 11;
  static constexpr int kActionSize = 3;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = 3800,
                             .description = "Hop on one leg in a plane (MuJoCo)."});
  }

  using FallingWalker::FallingWalker;

  bool IsHealthy() const {
    const auto in_range = [](double value) { return std::abs(value) < 100; };  // False for NaN.
    for (const double position : qpos().subspan(2)) {
      if (!in_range(position)) return false;
    }
    for (const double velocity : qvel()) {
      if (!in_range(velocity)) return false;
    }
    return qpos()[1] > 0.7 && std::abs(qpos()[2]) < 0.2;
  }
};

// Walker2d-v5: two legs. Walk far and upright.
class Walker2d : public FallingWalker<Walker2d> {
 public:
  static constexpr const char* kName = "Walker2d-v5";
  static constexpr const char* kModelFile = "walker2d_v5.xml";
  static constexpr int kObservationSize = 17;
  static constexpr int kActionSize = 6;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
                             .description = "Walk on two legs in a plane (MuJoCo)."});
  }

  using FallingWalker::FallingWalker;

  bool IsHealthy() const {
    const double height = qpos()[1];
    return height > 0.8 && height < 2.0 && std::abs(qpos()[2]) < 1.0;
  }
};

}  // namespace menger
