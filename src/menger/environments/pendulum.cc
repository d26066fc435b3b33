#include "menger/environments/pendulum.h"

namespace menger {

EnvironmentSpec Pendulum::Spec() {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {.name = "Pendulum-v1",
          .observation =
              menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {kObservationSize},
                                          {-1, -1, -kSpeedMax}, {1, 1, kSpeedMax})}),
          .action = menger::Spec({LeafSpec::Box("action", DataType::kFloat32, {kActionSize},
                                                {-kTorqueMax}, {kTorqueMax})}),
          .max_episode_steps = 200,
          .reward_threshold = kNone,
          .description = "Swing a pendulum up by a weak torque and hold it there."};
}

}  // namespace menger
