// What Reverb's clients ask of a table beside the rest.
#include <algorithm>

#include "menger/base/error.h"
#include "menger/replay/table.h"
#include "menger/replay/table_state.h"

namespace menger {
namespace {

// So many items are removed while everybody else waits.
constexpr std::uint32_t kPiece = 16'384;

void CheckCount(const TableOptions& options, std::int64_t count) {
  if (count >= 1) return;
  throw InvalidArgument("table '{}': {} items are asked about; it must be at least 1", options.name,
                        count);
}

}  // namespace

void Table::Reset() {
  State& state = *state_;
  std::uint32_t begin = 0;
  for (bool done = false; !done;) {
    const MutexLock lock(state.mutex);
    const auto slots = static_cast<std::uint32_t>(state.items.slots());
    const std::uint32_t end = std::min(slots, begin + kPiece);
    for (std::uint32_t slot = begin; slot < end; ++slot) {
      if (state.items[slot].number != 0) state.Remove(slot);
    }
    begin = end;
    done = end == slots;
    if (done) {
      state.limiter.MoveTo(static_cast<double>(state.items.size()) *
                           state.options.rate_limiter.samples_per_insert);
      state.items_sampled = 0;
      state.changed = true;
    }
    state.Wake();
  }
}

bool Table::CanInsert(std::int64_t count) const {
  CheckCount(options(), count);
  const MutexLock lock(state_->mutex);
  return state_->limiter.CanInsert(count);
}

bool Table::CanSample(std::int64_t count) const {
  CheckCount(options(), count);
  const MutexLock lock(state_->mutex);
  return state_->limiter.CanSample(count);
}

}  // namespace menger
