#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "menger/environments/mujoco/mujoco_simulator.h"

namespace menger {

// Humanoid-v5: a person with 17 joints. Walk along x without falling, with small torques and gentle
// steps. Besides positions and velocities it sees each body's inertia and velocity about the
// whole's centre of mass, the motors' forces and the contacts'.
class Humanoid : public MujocoSimulator {
 public:
  static constexpr const char* kName = "Humanoid-v5";
  static constexpr const char* kModelFile = "humanoid.xml";
  static constexpr int kObservationSize = 348;
  static constexpr int kActionSize = 17;

  static EnvironmentSpec Spec(const Config& model) {
    return MakeSpec(*model, {.name = kName,
                             .observation_size = kObservationSize,
                             .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
                             .description = "Walk as a person of 17 joints (MuJoCo)."});
  }

  explicit Humanoid(const Config& model)
      : MujocoSimulator(model, /*frame_skip=*/5, Contacts::kUsed) {
    mass_ = NumpySum(model->nbody, [&](std::size_t body) { return model->body_mass[body]; });
  }

  void Reset(Random& random, double* observation) {
    const auto noise = [&] { return random.Uniform(-0.01, 0.01); };
    Start(noise, noise);
    StartFrom(CentreOfMassX());
    Observe(observation);
  }

  StepResult Step(const float* action, Random& /*random*/, double* observation) {
    Advance(action);
    Observe(observation);
    const bool healthy = qpos()[2] > 1.0 && qpos()[2] < 2.0;
    const double control_cost = 0.1 * SumOfSquares(data().ctrl, kActionSize);
    const double contact_cost =
        std::min(5e-7 * SumOfSquares(contact_forces().data(), contact_forces().size()), 10.0);
    return {.reward = 1.25 * VelocityTo(CentreOfMassX()) + (healthy ? 5.0 : 0.0) -
                      (control_cost + contact_cost),
            .terminated = !healthy};
  }

 private:
  double CentreOfMassX() const {  // Of the last of MuJoCo's time steps.
    double sum = 0;
    for (int body = 0; body < model().nbody; ++body) {
      sum += model().body_mass[body] * data().xipos[3 * body];
    }
    return sum / mass_;
  }

  void Observe(double* observation) const {
    constexpr int kFreeJoint = 6;  // The trunk's own degrees of freedom have no motor.
    ObservationWriter writer(observation);
    writer.Add(qpos().subspan(2));
    writer.Add(qvel());
    writer.Add(OfBodies(data().cinert, 10));
    writer.Add(OfBodies(data().cvel, 6));
    writer.Add(
        {data().qfrc_actuator + kFreeJoint, static_cast<std::size_t>(model().nv - kFreeJoint)});
    writer.Add(OfBodies(data().cfrc_ext, 6));
  }

  double mass_ = 0;
};

}  // namespace menger
