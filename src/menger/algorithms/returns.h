#pragma once

#include <cstdint>
#include <span>

namespace menger {

// A collection pass as plain arrays, all [steps, columns], row-major, borrowed.
struct Trajectories {
  int steps = 0;
  int columns = 0;
  std::span<const float> rewards;
  std::span<const float> values;  // V of the observation acted on.
  // V of the observation that followed: 0 where terminated, of the final observation where
  // truncated.
  std::span<const float> next_values;
  std::span<const std::uint8_t> cut;  // 1: the episode ended here, nothing flows back across.
  std::span<const std::uint8_t>
      valid;  // 0: not a step; its advantage is 0 and nothing flows through it.
};

// Generalised advantage estimation (Schulman et al. 2016, eq. 16):
//   delta_t = r_t + discount V(s_{t+1}) - V(s_t),   A_t = delta_t + discount lambda A_{t+1}.
// With lambda = 1, A_t + V(s_t) is the n-step return to the end of the pass. Writes [steps,
// columns].
void GeneralisedAdvantages(const Trajectories& trajectories, double discount, double lambda,
                           std::span<float> advantages);

}  // namespace menger
