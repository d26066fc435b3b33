#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace menger {

// The mathematics of Evolution Strategies (Salimans et al. 2017, algorithm 1, with mirrored
// sampling and the shaping of its section 2.1). Pure functions; any thread.

// The rank of each value among all, scaled to [-.5, .5]: the least is -.5, the largest .5. So the
// update depends on the order of returns alone: no outlier and no unit of reward matters. Equal
// values share the mean of their ranks (the published code ranks them at random, so that a
// population that is equally good everywhere still moves); all equal, or one alone: 0. Throws
// InvalidArgument for a NaN.
std::vector<double> CentredRanks(std::span<const double> values);

// A direction in which the parameters were moved, both ways: where its noise begins in the table,
// and what the moves were worth.
struct MirroredPair {
  std::int64_t noise_index = 0;
  double plus = 0;   // Of parameters + deviation * noise,
  double minus = 0;  // and of parameters - deviation * noise.
};

// Overwrites `gradient` with sum over the pairs of (plus - minus) * noise / (2 * pairs): the
// direction in which worth grows, up to the factor 1 / deviation that the published code leaves out
// too. Sums in float64, in the pairs' order. Throws InvalidArgument if a pair's noise reaches
// beyond the table.
void EstimateGradient(std::span<const MirroredPair> pairs, std::span<const float> noise,
                      std::span<float> gradient);

}  // namespace menger
