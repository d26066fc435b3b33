#pragma once

#include <cstdint>
#include <string>

#include "menger/base/options.h"

namespace menger {

// Options of section [topology], of algorithms that learn from batches: where the parts of a run
// go on.
struct TopologyOptions {
  std::string kind = "synchronous";  // synchronous, turns, threads or processes.
  AutoInt collectors;                // Of a pipeline; auto: measured.
  std::string inference = "local";   // local or apart.
  std::int64_t inference_batch = 0;  // Positions; 0: all that ask.
  double inference_wait = 0;         // Seconds.
  std::int64_t staleness_max = 0;    // Versions; 0: no bound.

  void Declare(Options& options);
  bool is_pipeline() const { return kind != "synchronous"; }
  bool infers_apart() const { return is_pipeline() && inference == "apart"; }
};

}  // namespace menger
