#pragma once

#include <atomic>
#include <cstdint>

namespace menger {

// What the roles of a run count together, in memory that all of them see: of one process, or shared
// by several, where it outlives each.
struct RunCounts {
  std::atomic<std::int64_t> steps{0};  // Environment steps that replay was given, in all sittings.
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace menger
