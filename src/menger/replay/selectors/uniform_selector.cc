#include "menger/replay/selectors/uniform_selector.h"

#include <algorithm>

#include "menger/base/error.h"

namespace menger {

void UniformSelector::Insert(std::uint32_t slot, std::uint64_t /*number*/, double /*priority*/) {
  if (slot >= places_.size()) places_.resize(slot + 1);
  places_[slot] = static_cast<std::uint32_t>(slots_.size());
  slots_.push_back(slot);
}

void UniformSelector::Erase(std::uint32_t slot) {
  const std::uint32_t place = places_[slot];
  slots_[place] = slots_.back();
  places_[slots_[place]] = place;
  slots_.pop_back();
}

Selection UniformSelector::Select(Random& random) {
  if (slots_.empty()) throw FailedPrecondition("uniform selector: there is no item");
  const auto count = static_cast<std::int64_t>(slots_.size());
  return {slots_[random.Integers(0, count)], 1.0 / static_cast<double>(count)};
}

void UniformSelector::RestoreOrder(std::span<const std::uint32_t> order) {
  if (order.empty()) return;
  std::vector<std::uint32_t> expected = slots_;
  std::vector<std::uint32_t> found(order.begin(), order.end());
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (found != expected) {
    throw FailedPrecondition(
        "uniform selector: the saved order of {} items is not of the {} items here", found.size(),
        expected.size());
  }
  slots_.assign(order.begin(), order.end());
  for (std::uint32_t place = 0; place < slots_.size(); ++place) places_[slots_[place]] = place;
}

}  // namespace menger
