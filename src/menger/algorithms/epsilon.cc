#include "menger/algorithms/epsilon.h"

#include <cmath>

namespace menger {

void EpsilonOptions::Declare(Options& options) {
  options.Add("epsilon_start", &start,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "probability of a random action at the start of a run"});
  options.Add("epsilon_end", &end,
              {.minimum = 0, .maximum = 1, .consequence = "to which it falls"});
  options.Add(
      "epsilon_fraction", &fraction,
      {.minimum = 0, .maximum = 1, .unit = "of the run", .consequence = "until when it falls"});
  Schedule::Declare(options, "epsilon_schedule", &schedule,
                    "epsilon's distance from its end, until then,");
  options.Add("epsilon_spread", &spread,
              {.minimum = 0,
               .maximum = 100,
               .consequence = "environments explore differently: the first with epsilon, the last "
                              "with epsilon^(1 + this); 0: all alike"});
  options.Add(
      "evaluation_epsilon", &evaluation,
      {.minimum = 0, .maximum = 1, .consequence = "probability of a random action in evaluation"});
}

float Epsilon::At(double progress) const {
  const double above =
      progress < options_.fraction ? schedule_.At(progress / options_.fraction) : schedule_.At(1);
  return static_cast<float>(options_.start + (1 - above) * (options_.end - options_.start));
}

double Epsilon::Of(int environment, int environments, double epsilon, double spread) {
  if (spread == 0 || environments < 2) return epsilon;
  return std::pow(epsilon, 1 + spread * environment / (environments - 1));
}

}  // namespace menger
