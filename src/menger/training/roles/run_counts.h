#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace menger {

// What the roles of a run count together, in memory that all of them see: of one process, or shared
// by several, where it outlives each.
struct RunCounts {
  static constexpr int kCollectorsMax = 256;

  std::atomic<std::int64_t> steps{0};  // Environment steps that replay was given, in all sittings.
  // Those that each collector has begun and not given to replay yet. One that died leaves its own,
  // which its successor, who begins with none, takes back.
  std::array<std::atomic<std::int64_t>, kCollectorsMax> under_way{};

  // By the others of so many.
  std::int64_t under_way_but_for(int collector, int collectors) const {
    std::int64_t steps = 0;
    for (int i = 0; i < collectors; ++i) {
      if (i != collector) steps += under_way[i].load(std::memory_order_relaxed);
    }
    return steps;
  }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace menger
