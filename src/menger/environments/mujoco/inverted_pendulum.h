#pragma once

#include <algorithm>
#include <cmath>

#include "menger/environments/mujoco/mujoco_simulator.h"

namespace menger {

// InvertedPendulum-v5: keep a pole upright by pushing the cart under it. Ends when the pole leans
// by more than 0.2.
class InvertedPendulum : public MujocoSimulator {
 public:
  static constexpr const char* kName = "InvertedPendulum-v5";
  static constexpr const char* kModelFile = "inverted_pendulum.xml";
  static constexpr int kObservationSize = 4;
  static constexpr int kActionSize = 1;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = 950,
                             .description = "Keep a pole upright on a cart (MuJoCo)."});
  }

  explicit InvertedPendulum(const Config& model)
      : MujocoSimulator(model, /*frame_skip=*/2, Contacts::kUnused) {}

  void Reset(Random& random, double* observation) {
    const auto noise = [&] { return random.Uniform(-0.01, 0.01); };
    Start(noise, noise);
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, double* observation) {
    Advance(action);
    Observe(observation);
    const bool finite = std::all_of(observation, observation + kObservationSize,
                                    [](double value) { return std::isfinite(value); });
    const bool terminated = !finite || std::abs(observation[1]) > 0.2;
    return {.reward = terminated ? 0.0 : 1.0, .terminated = terminated};
  }

 private:
  void Observe(double* observation) const {
    ObservationWriter writer(observation);
    writer.Add(qpos());
    writer.Add(qvel());
  }
};

}  // namespace menger
