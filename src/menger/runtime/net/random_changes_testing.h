#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "menger/base/random.h"

namespace menger {

// How often of 5,000 times `why_not` refuses what `right` becomes by one to four bytes that are
// drawn anew. A reader that crashes, or reads on behind the end, fails under a sanitizer.
template <typename WhyNot>
int CountRefusedChanges(std::uint64_t seed, const std::vector<std::byte>& right,
                        const WhyNot& why_not) {
  Random random = Random::FromSeed(seed);
  const auto size = static_cast<std::int64_t>(right.size());
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> bytes = right;
    for (int n = 0; n < 1 + i % 4; ++n) {
      bytes[static_cast<std::size_t>(random.Integers(0, size))] =
          static_cast<std::byte>(random.Integers(0, 256));
    }
    refused += why_not(bytes).empty() ? 0 : 1;
  }
  return refused;
}

}  // namespace menger
