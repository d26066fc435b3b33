#pragma once

#include <immintrin.h>

#include <cstddef>

#include "menger/networks/kernels/transposition.h"

namespace menger {

// Compiled once for each instruction set, as VectorKernels is; vectors of 8 floats do for all.
template <typename Isa>
struct TransposeKernel {
  // Eight rows of eight columns, in registers.
  static void TransposeBlock(const float* from, std::ptrdiff_t from_row, float* to,
                             std::ptrdiff_t to_row) {
    __m256 pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {
      const __m256 even = _mm256_loadu_ps(from + i * from_row);
      const __m256 odd = _mm256_loadu_ps(from + (i + 1) * from_row);
      pairs[i] = _mm256_unpacklo_ps(even, odd);
      pairs[i + 1] = _mm256_unpackhi_ps(even, odd);
    }
    for (int i = 0; i < 8; i += 4) {
      fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
      fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
      _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
    }
  }

  // Down strips of 16 columns: each cache line is read once, although rows of a power of two of
  // columns share few of the places that the first-level cache has.
  static void Transpose(const Transposition& transposition) {
    const auto [from, from_row, to, to_row, rows, columns] = transposition;
    const int whole_rows = rows / 8 * 8;
    const int whole_columns = columns / 8 * 8;
    for (int strip = 0; strip < whole_columns; strip += 16) {
      for (int row = 0; row < whole_rows; row += 8) {
        for (int column = strip; column < strip + 16 && column < whole_columns; column += 8) {
          TransposeBlock(from + row * from_row + column, from_row, to + column * to_row + row,
                         to_row);
        }
      }
    }
    for (int column = 0; column < columns; ++column) {
      for (int row = column < whole_columns ? whole_rows : 0; row < rows; ++row) {
        to[column * to_row + row] = from[row * from_row + column];
      }
    }
  }
};

}  // namespace menger
