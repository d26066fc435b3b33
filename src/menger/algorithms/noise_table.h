#pragma once

#include <cstdint>
#include <vector>

#include "menger/base/counter_random.h"

namespace menger {

// Standard normal numbers that everybody shares, so that a direction in the space of parameters is
// one number: where in the table it begins (Salimans et al. 2017, section 2.2). A function of the
// seed.
std::vector<float> MakeNoiseTable(std::int64_t entries, std::uint64_t seed);

// What is drawn for one pair of mirrored episodes: a function of the run's seed, the iteration and
// the pair's index alone, whoever plays it and how often.
struct PairDraws {
  std::int64_t noise_index = 0;
  std::uint64_t environment_seed = 0;  // Below 2^48. Both episodes have it: luck is shared.
  std::uint64_t action_seed = 0;       // Of the noise on actions; likewise.
  bool observe[2] = {false, false};    // Whether its observations enter the statistics.
};

// Draws of pairs, for `parameters` of a network out of a table of `entries` (at least as many, at
// most 2^31).
class PairStream {
 public:
  PairStream(std::uint64_t seed, std::int64_t entries, std::int64_t parameters,
             double observe_probability);

  PairDraws Draw(std::int64_t iteration, std::int64_t pair) const;

 private:
  const CounterRandom random_;
  const std::uint64_t starts_;  // Places in the table where a direction may begin.
  const double observe_probability_;
};

}  // namespace menger
