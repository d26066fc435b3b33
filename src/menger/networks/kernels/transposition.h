#pragma once

#include <cstddef>

namespace menger {

// to [columns, rows] = the transpose of from [rows, columns]; nothing beyond them is touched.
struct Transposition {
  const float* from = nullptr;
  std::ptrdiff_t from_row = 0;  // Floats from one row to the next.
  float* to = nullptr;
  std::ptrdiff_t to_row = 0;
  int rows = 0;
  int columns = 0;
};

}  // namespace menger
