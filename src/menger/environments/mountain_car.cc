#include "menger/environments/mountain_car.h"

namespace menger {

EnvironmentSpec MountainCar::Spec() {
  const std::vector<double> low = {float(kPositionMin), -float(kSpeedMax)};
  const std::vector<double> high = {float(kPositionMax), float(kSpeedMax)};
  return {.name = "MountainCar-v0",
          .observation = menger::Spec(
              {LeafSpec::Box("observation", DataType::kFloat32, {kObservationSize}, low, high)}),
          .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
          .max_episode_steps = 200,
          .reward_threshold = -110,
          .description = "Rock an underpowered car out of a valley."};
}

}  // namespace menger
