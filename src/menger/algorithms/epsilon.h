#pragma once

#include <string>

#include "menger/algorithms/schedule.h"
#include "menger/base/options.h"

namespace menger {

// How often algorithms that learn values of actions act at random.
struct EpsilonOptions {
  double start = 1.0;
  double end = 0.1;
  double fraction = 0.02;
  std::string schedule = "linear";
  double spread = 0;
  double evaluation = 0.05;

  // As epsilon_start and so on, and evaluation_epsilon.
  void Declare(Options& options);
};

// Epsilon over a run. Value type.
class Epsilon {
 public:
  // Throws as Schedule.
  explicit Epsilon(const EpsilonOptions& options)
      : options_(options), schedule_(options.schedule) {}

  // `progress` in [0, 1].
  float At(double progress) const;

  // Of one of several environments that explore side by side: the first has epsilon itself, the
  // last epsilon to the power of 1 + spread, those between evenly spaced powers (Horgan et al.
  // 2018, section 4.1).
  static double Of(int environment, int environments, double epsilon, double spread);

 private:
  EpsilonOptions options_;
  Schedule schedule_;
};

}  // namespace menger
