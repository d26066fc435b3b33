#include "menger/environments/cart_pole.h"

#include <limits>

namespace menger {

EnvironmentSpec CartPole::Spec() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> high = {static_cast<float>(2 * kPositionLimit), kInfinity,
                                    static_cast<float>(2 * kAngleLimit), kInfinity};
  const std::vector<double> low = {-high[0], -high[1], -high[2], -high[3]};
  return {.name = "CartPole-v1",
          .observation =
              menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {4}, low, high)}),
          .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
          .max_episode_steps = 500,
          .reward_threshold = 475,
          .description = "Balance a pole on a cart by pushing it left or right."};
}

}  // namespace menger
