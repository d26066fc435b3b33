#include "menger/replay/selectors/selector.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "menger/base/error.h"
#include "menger/replay/selectors/heap_selector.h"
#include "menger/replay/selectors/prioritised_selector.h"
#include "menger/replay/selectors/queue_selector.h"
#include "menger/replay/selectors/uniform_selector.h"

namespace menger {

void Selector::UpdateMany(std::span<const std::uint32_t> slots,
                          std::span<const double> priorities) {
  for (std::size_t i = 0; i < slots.size(); ++i) Update(slots[i], priorities[i]);
}

void Selector::SelectMany(Random& random, std::span<Selection> selections) {
  for (Selection& selection : selections) selection = Select(random);
}

void Selector::RestoreOrder(std::span<const std::uint32_t> /*order*/) {}

void SelectorOptions::Check() const {
  if (!std::isfinite(exponent) || exponent < 0) {
    throw InvalidArgument("exponent is {}; it must be finite and at least 0", exponent);
  }
}

std::unique_ptr<Selector> MakeSelector(const SelectorOptions& options) {
  options.Check();
  switch (options.kind) {
    case SelectorKind::kUniform:
      return std::make_unique<UniformSelector>();
    case SelectorKind::kFifo:
      return std::make_unique<QueueSelector>(QueueSelector::End::kOldest);
    case SelectorKind::kLifo:
      return std::make_unique<QueueSelector>(QueueSelector::End::kNewest);
    case SelectorKind::kMinHeap:
      return std::make_unique<HeapSelector>(HeapSelector::Top::kLowest);
    case SelectorKind::kMaxHeap:
      return std::make_unique<HeapSelector>(HeapSelector::Top::kHighest);
    case SelectorKind::kPrioritised:
      return std::make_unique<PrioritisedSelector>(options.exponent, options.stratified);
  }
  throw InvalidArgument("selector kind is {}; there is none of that number",
                        static_cast<int>(options.kind));
}

std::string ToString(const SelectorOptions& options) {
  switch (options.kind) {
    case SelectorKind::kUniform:
      return "uniform";
    case SelectorKind::kFifo:
      return "fifo";
    case SelectorKind::kLifo:
      return "lifo";
    case SelectorKind::kMinHeap:
      return "min_heap";
    case SelectorKind::kMaxHeap:
      return "max_heap";
    case SelectorKind::kPrioritised:
      return fmt::format("prioritised({}{})", options.exponent,
                         options.stratified ? ", stratified" : "");
  }
  return fmt::format("selector {}", static_cast<int>(options.kind));
}

}  // namespace menger
