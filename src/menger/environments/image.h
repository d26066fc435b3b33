#pragma once

#include <cstdint>
#include <vector>

namespace menger {

// What an environment looks like to a person: 8-bit RGB, row-major, the top row first.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

}  // namespace menger
