#include "menger/replay/selectors/queue_selector.h"

#include "menger/base/error.h"

namespace menger {

void QueueSelector::Insert(std::uint32_t slot, std::uint64_t /*number*/, double /*priority*/) {
  if (slot >= links_.size()) links_.resize(slot + 1);
  links_[slot] = {.older = newest_, .newer = kNone};
  (newest_ == kNone ? oldest_ : links_[newest_].newer) = slot;
  newest_ = slot;
}

void QueueSelector::Erase(std::uint32_t slot) {
  const Links links = links_[slot];
  (links.older == kNone ? oldest_ : links_[links.older].newer) = links.newer;
  (links.newer == kNone ? newest_ : links_[links.newer].older) = links.older;
}

Selection QueueSelector::Select(Random& /*random*/) {
  if (!CanSelect()) throw FailedPrecondition("queue selector: there is no item");
  return {Chosen(), 1.0};
}

}  // namespace menger
