#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/runtime/control/control_store.h"

namespace menger {

// What logic without I/O asks of a control store: whoever drives it calls Submit or Scan, and gives
// it what completes, with the number. What completes late, twice or never is the logic's business.
struct StoreAsk {
  std::uint64_t number = 0;
  std::vector<StoreOperation> batch;  // To submit; none: a page is to be read,
  StoreTable table = StoreTable::kNodes;
  std::string after;  // as Scan's.
  int limit = 0;
  std::int64_t patience = 0;  // Nanoseconds, after which nobody waits for it any longer.
};

}  // namespace menger
