#include "menger/algorithms/returns.h"

#include <vector>

namespace menger {

void GeneralisedAdvantages(const Trajectories& trajectories, double discount, double lambda,
                           std::span<float> advantages) {
  const int columns = trajectories.columns;
  const auto gamma = static_cast<float>(discount);
  const auto decay = static_cast<float>(discount * lambda);
  std::vector<float> carried(columns, 0.0F);  // A_{t+1}, 0 across cuts and invalid rows.
  for (int step = trajectories.steps - 1; step >= 0; --step) {
    for (int column = 0; column < columns; ++column) {
      const int i = step * columns + column;
      if (trajectories.valid[i] == 0) {
        carried[column] = advantages[i] = 0.0F;
        continue;
      }
      const float delta =
          trajectories.rewards[i] + gamma * trajectories.next_values[i] - trajectories.values[i];
      const float later = trajectories.cut[i] != 0 ? 0.0F : carried[column];
      carried[column] = advantages[i] = delta + decay * later;
    }
  }
}

}  // namespace menger
