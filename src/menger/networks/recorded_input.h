#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace menger {

// The inputs of the recorded test values: `numbers` of tools/record_networks.py.
inline std::vector<float> RecordedInput(std::size_t count, std::uint64_t salt, float scale) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint32_t>((i + salt * 1000003) * 2654435761u);
    values[i] = (static_cast<float>(word >> 8) / 8388608.0f - 1.0f) * scale;
  }
  return values;
}

}  // namespace menger
