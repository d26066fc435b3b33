#include "menger/environments/acrobot.h"

namespace menger {

EnvironmentSpec Acrobot::Spec() {
  std::vector<double> high = {1, 1, 1, 1, float(kSpeedLimit1), float(kSpeedLimit2)};
  std::vector<double> low;
  for (const double bound : high) low.push_back(-bound);
  return {.name = "Acrobot-v1",
          .observation = menger::Spec(
              {LeafSpec::Box("observation", DataType::kFloat32, {kObservationSize}, low, high)}),
          .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
          .max_episode_steps = 500,
          .reward_threshold = -100,
          .description = "Swing a two-link pendulum up by a torque at its middle joint."};
}

}  // namespace menger
