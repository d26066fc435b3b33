#pragma once

#include <string>
#include <utility>
#include <vector>

#include "menger/base/options.h"

namespace menger {

// How a value changes over a run, as a factor of what it is at the start. Value type.
//
// "constant": 1. "linear": a straight line to 0 at the end. "cosine": half a cosine to 0
// (Loshchilov and Hutter 2017, without restarts). Or points "0:1 0.5:1 1:0.1", each a share of the
// run and the factor there, in order: straight lines between them, the last one's factor after it.
class Schedule {
 public:
  // Throws InvalidArgument that says what would be right.
  explicit Schedule(const std::string& text);

  // `progress` in [0, 1].
  double At(double progress) const;

  // An option that is a schedule of something: "the learning rate". `field` as for Options::Add.
  static void Declare(Options& options, std::string name, std::string* field,
                      const std::string& what);

 private:
  std::vector<std::pair<double, double>> points_;  // Share of the run, factor. Empty: a cosine.
};

}  // namespace menger
