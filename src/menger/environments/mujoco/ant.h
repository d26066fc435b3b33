#pragma once

#include <algorithm>
#include <cmath>

#include "menger/environments/mujoco/mujoco_simulator.h"

namespace menger {

// Ant-v5: a trunk on four legs of two joints each. Walk along x without tipping over, with small
// torques, and touch the ground gently.
class Ant : public MujocoSimulator {
 public:
  static constexpr const char* kName = "Ant-v5";
  static constexpr const char* kModelFile = "ant.xml";
  static constexpr int kObservationSize = 105;
  static constexpr int kActionSize = 8;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = 6000,
                             .description = "Walk on four legs (MuJoCo)."});
  }

  explicit Ant(const Config& model) : MujocoSimulator(model, /*frame_skip=*/5, Contacts::kUsed) {}

  void Reset(Random& random, double* observation) {
    Start([&] { return random.Uniform(-0.1, 0.1); }, [&] { return 0.1 * random.Normal(); });
    StartFrom(TrunkX());
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, double* observation) {
    Advance(action);
    Observe(observation);
    const bool healthy = IsHealthy();
    const auto force = [this](std::size_t i) {
      const double clipped = ObservationWriter::Clipped(contact_forces()[i], kForceMax);
      return clipped * clipped;
    };
    const float control_cost = 0.5F * SumOfSquares(action, kActionSize);
    const double contact_cost = 5e-4 * NumpySum(contact_forces().size(), force);
    return {.reward = VelocityTo(TrunkX()) + (healthy ? 1.0 : 0.0) - (control_cost + contact_cost),
            .terminated = !healthy};
  }

 private:
  static constexpr double kForceMax = 1.0;

  // Of the last of MuJoCo's time steps, like all that is derived from positions: not qpos[0].
  double TrunkX() const { return data().xpos[3]; }

  bool IsHealthy() const {
    const auto finite = [](double value) { return std::isfinite(value); };
    return std::ranges::all_of(qpos(), finite) && std::ranges::all_of(qvel(), finite) &&
           qpos()[2] >= 0.2 && qpos()[2] <= 1.0;
  }

  void Observe(double* observation) const {
    ObservationWriter writer(observation);
    writer.Add(qpos().subspan(2));
    writer.Add(qvel());
    writer.AddClipped(OfBodies(data().cfrc_ext, 6), kForceMax);
  }
};

}  // namespace menger
