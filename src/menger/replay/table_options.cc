#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "menger/base/error.h"
#include "menger/replay/item_pool.h"
#include "menger/replay/table.h"

namespace menger {
namespace {

// An item's share of a selector's arrays (selectors/), which double as they grow.
std::size_t SelectorBytes(const SelectorOptions& options) {
  switch (options.kind) {
    case SelectorKind::kUniform:  // A slot and its place.
    case SelectorKind::kFifo:     // Two links.
    case SelectorKind::kLifo:
      return 2 * 8;
    case SelectorKind::kMinHeap:  // An entry and its place.
    case SelectorKind::kMaxHeap:
      return 2 * (24 + 4);
    case SelectorKind::kPrioritised:  // A weight, and an eighth of it a level.
      return 2 * 10;
  }
  return 0;
}

}  // namespace

bool TableOptions::KeepsUnsampled() const {
  return times_sampled_max > 0 && rate_limiter.samples_per_insert == times_sampled_max &&
         rate_limiter.min_diff == 0 && std::isfinite(rate_limiter.max_diff);
}

void TableOptions::Check() const {
  if (name.empty()) throw InvalidArgument("a replay table has no name");
  const char* part = "items";
  try {
    items.Check();
    part = "sampler";
    sampler.Check();
    part = "remover";
    remover.Check();
    part = "rate_limiter";
    rate_limiter.Check();
  } catch (const Error& error) {
    throw WithContext(error, fmt::format("table '{}': {}", name, part));
  }
  constexpr std::int64_t kSlotsMax = std::numeric_limits<std::uint32_t>::max() - 1;
  if (items_max < 1 || items_max > kSlotsMax) {
    throw InvalidArgument("table '{}': items_max is {}; it must be 1 to {}", name, items_max,
                          kSlotsMax);
  }
  if (rate_limiter.min_size > items_max) {
    throw InvalidArgument(
        "table '{}': rate_limiter.min_size is {}, so nothing could ever be sampled of items_max {}",
        name, rate_limiter.min_size, items_max);
  }
  if (KeepsUnsampled() &&
      rate_limiter.max_diff > static_cast<double>(items_max) * times_sampled_max) {
    throw InvalidArgument(
        "table '{}': its rate limiter lets {} samples wait for items that are each sampled {} "
        "time{}, but items_max is {}: nothing is evicted before it was sampled, so items_max must "
        "be at least {}",
        name, rate_limiter.max_diff, times_sampled_max, times_sampled_max == 1 ? "" : "s",
        items_max, std::ceil(rate_limiter.max_diff / times_sampled_max));
  }
  if (bytes_max < items.BytesMin()) {
    throw InvalidArgument("table '{}': bytes_max is {}; it must be at least {}, which one item has",
                          name, bytes_max, items.BytesMin());
  }
  if (times_sampled_max < 0) {
    throw InvalidArgument("table '{}': times_sampled_max is {}; it must be at least 0", name,
                          times_sampled_max);
  }
}

std::size_t TableOptions::ItemBytes() const {
  // The item, its slices, and its entries in the lists of free places.
  const std::size_t in_pool = sizeof(Item) +
                              items.columns.size() * (sizeof(Slice) + sizeof(std::uint16_t)) +
                              2 * sizeof(std::uint32_t);
  return in_pool + SelectorBytes(sampler) + SelectorBytes(remover);
}

double TableOptions::BytesNeeded() const {
  return static_cast<double>(bytes_max) +
         static_cast<double>(items_max) * static_cast<double>(ItemBytes());
}

}  // namespace menger
