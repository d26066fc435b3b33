#include "menger/replay/selectors/heap_selector.h"

#include "menger/base/error.h"

namespace menger {

void HeapSelector::Insert(std::uint32_t slot, std::uint64_t number, double priority) {
  if (slot >= places_.size()) places_.resize(slot + 1);
  heap_.emplace_back();
  Settle(heap_.size() - 1, {.rank = sign_ * priority, .number = number, .slot = slot});
}

void HeapSelector::Erase(std::uint32_t slot) {
  const std::size_t place = places_[slot];
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) Settle(place, last);
}

void HeapSelector::Update(std::uint32_t slot, double priority) {
  Entry entry = heap_[places_[slot]];
  entry.rank = sign_ * priority;
  Settle(places_[slot], entry);
}

Selection HeapSelector::Select(Random& /*random*/) {
  if (heap_.empty()) throw FailedPrecondition("heap selector: there is no item");
  return {heap_.front().slot, 1.0};
}

void HeapSelector::Settle(std::size_t at, const Entry& entry) {
  while (at > 0 && entry < heap_[(at - 1) / 2]) {
    Put(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < entry)) break;
    Put(at, heap_[child]);
    at = child;
  }
  Put(at, entry);
}

void HeapSelector::Put(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  places_[entry.slot] = static_cast<std::uint32_t>(at);
}

}  // namespace menger
