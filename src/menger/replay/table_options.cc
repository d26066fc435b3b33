#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "menger/base/error.h"
#include "menger/replay/table.h"

namespace menger {

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
  if (bytes_max == 0) throw InvalidArgument("table '{}': bytes_max is 0", name);
  if (times_sampled_max < 0) {
    throw InvalidArgument("table '{}': times_sampled_max is {}; it must be at least 0", name,
                          times_sampled_max);
  }
}

}  // namespace menger
