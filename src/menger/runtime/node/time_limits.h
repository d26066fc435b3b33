#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "menger/runtime/node/node_records.h"

namespace menger {

// Which runs have taken longer than their calls may. No run ends before the shortest limit has
// passed since it began, so the next look at what runs is due no sooner: however many workers there
// are, looks cost little. All times are nanoseconds.
class TimeLimits {
 public:
  // A call with a limit (SpecHeader::time_limit; 0: none, it does not count) begins to be under
  // way, or is no longer.
  void Add(std::int64_t limit, std::int64_t now);
  void Remove(std::int64_t limit);

  // When it is next to be looked; nothing if there is no need.
  std::optional<std::int64_t> due() const;
  bool IsDue(std::int64_t now) const { return count_ > 0 && now >= due_; }
  // The workers whose runs are over their limits; `workers`: all that there are.
  std::vector<WorkerIndex> Look(const WorkersByIndex& workers, std::int64_t now);

  // When the call that the worker does has run for too long; nothing if it may run on.
  static std::optional<std::int64_t> EndOf(const Worker& worker);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::size_t count_ = 0;  // Of calls that are not done and may take so long only:
  std::int64_t shortest_ = kNever;
  std::int64_t due_ = kNever;
};

}  // namespace menger
