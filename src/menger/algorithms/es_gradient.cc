#include "menger/algorithms/es_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kBlock = 1024;  // Parameters whose sums stay in the nearest cache.

}  // namespace

std::vector<double> CentredRanks(std::span<const double> values) {
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) throw InvalidArgument("return {} of {} is no number", i, count);
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });

  std::vector<double> ranks(count, 0.0);
  if (count < 2) return ranks;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    while (end < count && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = mean / static_cast<double>(count - 1) - 0.5;
    }
    begin = end;
  }
  return ranks;
}

void EstimateGradient(std::span<const MirroredPair> pairs, std::span<const float> noise,
                      std::span<float> gradient) {
  for (const MirroredPair& pair : pairs) {
    const auto last =
        static_cast<std::int64_t>(noise.size()) - static_cast<std::int64_t>(gradient.size());
    if (pair.noise_index >= 0 && pair.noise_index <= last) continue;
    throw InvalidArgument("noise for {} parameters begins at {} of a table of {}", gradient.size(),
                          pair.noise_index, noise.size());
  }
  const double scale = pairs.empty() ? 0.0 : 0.5 / static_cast<double>(pairs.size());
  std::array<double, kBlock> sums;
  for (std::size_t begin = 0; begin < gradient.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, gradient.size() - begin);
    sums.fill(0.0);
    for (const MirroredPair& pair : pairs) {
      const double weight = pair.plus - pair.minus;
      const float* const direction = noise.data() + pair.noise_index + begin;
      for (std::size_t i = 0; i < count; ++i) sums[i] += weight * direction[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      gradient[begin + i] = static_cast<float>(sums[i] * scale);
    }
  }
}

}  // namespace menger
