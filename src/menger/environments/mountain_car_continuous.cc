#include "menger/environments/mountain_car_continuous.h"

namespace menger {

EnvironmentSpec MountainCarContinuous::Spec() {
  const std::vector<double> low = {float(kPositionMin), -float(kSpeedMax)};
  const std::vector<double> high = {float(kPositionMax), float(kSpeedMax)};
  return {.name = "MountainCarContinuous-v0",
          .observation = menger::Spec(
              {LeafSpec::Box("observation", DataType::kFloat32, {kObservationSize}, low, high)}),
          .action =
              menger::Spec({LeafSpec::Box("action", DataType::kFloat32, {kActionSize}, {-1}, {1})}),
          .max_episode_steps = 999,
          .reward_threshold = 90,
          .description = "Rock a car out of a valley with a continuous force at little cost."};
}

}  // namespace menger
