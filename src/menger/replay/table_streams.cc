// Items that are sent again.
#include <algorithm>

#include "menger/replay/table.h"
#include "menger/replay/table_state.h"

namespace menger {

// How many of the first drafts the stream had brought already. It is asked anew after each wait:
// another call may have brought some meanwhile.
std::size_t Table::State::PassOver(std::span<const ItemDraft> drafts, std::uint64_t stream,
                                   std::vector<ItemKey>* keys) {
  if (stream == 0 || drafts.empty()) return 0;
  const std::uint64_t last = streams.LastOf(stream);
  const auto end = std::ranges::find_if(
      drafts, [last](const ItemDraft& draft) { return draft.sequence > last; });
  const auto passed = static_cast<std::size_t>(end - drafts.begin());
  repeated += static_cast<std::int64_t>(passed);
  if (keys != nullptr) keys->resize(keys->size() + passed);
  return passed;
}

std::uint64_t Table::LastOf(std::uint64_t stream) const {
  const State& state = *state_;
  const MutexLock lock(state.mutex);
  return state.streams.LastOf(stream);
}

void Table::Forget(std::uint64_t stream) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.streams.Forget(stream);
}

}  // namespace menger
