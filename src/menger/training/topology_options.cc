#include "menger/training/topology_options.h"

namespace menger {

void TopologyOptions::Declare(Options& options) {
  options.Add(
      "kind", &kind,
      {.choices = {"synchronous", "threads"},
       .consequence = "synchronous collects and learns in turns, with the same bits for the "
                      "same seed; threads collects and learns at the same time"});
}

}  // namespace menger
