#pragma once

#include <cstdint>
#include <string>

#include "menger/base/options.h"

namespace menger {

// Options of section [topology], of algorithms that learn from batches: where the parts of a run
// go on.
struct TopologyOptions {
  std::string kind = "synchronous";  // synchronous, threads or processes.
  AutoInt collectors;                // Of a pipeline; auto: measured.
  std::int64_t staleness_max = 0;    // Versions; 0: no bound.

  void Declare(Options& options);
  bool is_pipeline() const { return kind != "synchronous"; }
};

}  // namespace menger
