#pragma once

#include <cstdint>
#include <string>

#include "menger/algorithms/epsilon.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [dqn]. Defaults are those of Mnih et al. 2015 where they had the option, for a
// run of 50M steps; of the papers that brought them where not.
struct DqnConfig {
  double discount = 0.99;
  std::int64_t n_step = 1;
  bool double_q = false;
  bool duelling = false;
  bool noisy = false;
  double noisy_sigma = 0.5;  // Fortunato et al. 2018.
  bool noise_per_environment = false;
  std::string distribution = "none";  // none, c51 or qr.
  std::int64_t atoms = 51;            // These three: Bellemare et al. 2017.
  double value_minimum = -10;
  double value_maximum = 10;
  std::int64_t quantiles = 200;  // Dabney et al. 2018.
  double huber_delta = 1.0;
  double learning_rate = 2.5e-4;
  std::string learning_rate_schedule = "constant";
  std::int64_t target_every = 10'000;
  EpsilonOptions epsilon;
  double importance_exponent = 0.4;  // Schaul et al. 2016; to 1 at the end of the run.

  void Declare(Options& options);
};

}  // namespace menger
