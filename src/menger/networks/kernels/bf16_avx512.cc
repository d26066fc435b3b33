// Compiled for x86-64-v4 with AVX512-BF16. Nothing in here may run before HasAvx512Bf16() was
// asked.
#include <immintrin.h>

#include <algorithm>

#include "menger/networks/kernels/bf16.h"

namespace menger {
namespace {

constexpr __mmask16 kAll = 0xFFFF;
constexpr int kLanes = 16;

inline __m512bh Pairs(const Bf16Pair* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

inline __m512bh SamePair(const void* from) {
  Bf16Pair pair;
  __builtin_memcpy(&pair, from, sizeof(pair));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
}

// b if either is not a number.
inline __m512 Max(__m512 a, __m512 b) { return _mm512_maskz_max_ps(kAll, a, b); }

inline void StoreRounded(__m512 values, Bf16* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
}

// A tile of kRows x 16 kVectors sums stays in registers while it goes through all summands. Three
// rows share a pointer: more pointers than registers would cost a load for each product.
template <int kRows, int kVectors, typename Finish>
void MultiplyTile(const Bf16Product& product, const Bf16* a, const Bf16Pair* b, Finish&& finish) {
  __m512 sums[kRows][kVectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm512_setzero_ps();
  }
  constexpr int kPointers = (kRows + 2) / 3;
  const std::ptrdiff_t row = product.a_row * static_cast<std::ptrdiff_t>(sizeof(Bf16));
  const int pairs = product.inner / 2;
  for (int segment = 0; segment < product.segments; ++segment) {
    const char* from[kPointers];
    for (int i = 0; i < kPointers; ++i) {
      from[i] = reinterpret_cast<const char*>(a + segment * product.a_segment) + 3 * i * row;
    }
#pragma GCC unroll 4
    for (int pair = 0; pair < pairs; ++pair) {
      __m512bh columns[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) columns[v] = Pairs(b + v * kLanes);
      b += kVectors * kLanes;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512bh number = SamePair(from[r / 3] + (r % 3) * row);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = _mm512_dpbf16_ps(sums[r][v], number, columns[v]);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kPointers; ++i) from[i] += sizeof(Bf16Pair);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) finish(r, v * kLanes, sums[r][v]);
  }
}

constexpr int kTileRows = 12;

template <int kRows, int kVectors, typename Finish>
void MultiplyRows(const Bf16Product& product, int rows, const Bf16* a, const Bf16Pair* b,
                  Finish&& finish) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return MultiplyRows<kRows - 1, kVectors>(product, rows, a, b, finish);
    }
  }
  MultiplyTile<kRows, kVectors>(product, a, b, finish);
}

// finish(row, column, sums): for all rows and every 16th column.
template <typename Finish>
void Multiply(const Bf16Product& product, Finish&& finish) {
  const int tiles = (product.rows + kTileRows - 1) / kTileRows;
  const Bf16Pair* panel = product.b;
  for (int column = 0; column < product.columns; column += kPanelColumns) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int begin = product.rows * tile / tiles;
      const int rows = product.rows * (tile + 1) / tiles - begin;
      const Bf16* const a = product.a + begin * product.a_row;
      const auto finish_here = [&](int r, int c, __m512 sums) __attribute__((always_inline)) {
        finish(begin + r, column + c, sums);
      };
      if (product.columns - column >= kPanelColumns) {
        MultiplyRows<kTileRows, 2>(product, rows, a, panel, finish_here);
      } else {
        MultiplyRows<kTileRows, 1>(product, rows, a, panel, finish_here);
      }
    }
    panel += product.b_panel;
  }
}

// One tile of SumOuterProducts: inputs along the rows, outputs along the vectors.
template <int kInputs, int kVectors>
void SumTile(const Bf16Gradient& task, int input, int output) {
  __m512 sums[kInputs][kVectors];
  float* const gradient = task.gradient + input * task.gradient_row + output;
  for (int i = 0; i < kInputs; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = task.accumulate ? _mm512_loadu_ps(gradient + i * task.gradient_row + v * kLanes)
                                   : _mm512_setzero_ps();
    }
  }
  const Bf16Pair* y = task.y + output;
  for (int row = 0; row < task.rows; ++row) {
    const Bf16Pair* x = task.x + row * task.x_row + input;
#pragma GCC unroll 2
    for (int column = 0; column < task.columns; ++column) {
      __m512bh outputs[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) outputs[v] = Pairs(y + v * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kInputs; ++i) {
        const __m512bh number = SamePair(x + i);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[i][v] = _mm512_dpbf16_ps(sums[i][v], number, outputs[v]);
        }
      }
      x += task.x_pixel;
      y += task.outputs;
    }
  }
  for (int i = 0; i < kInputs; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(gradient + i * task.gradient_row + v * kLanes, sums[i][v]);
    }
  }
}

template <int kInputs, int kVectors>
void SumTiles(const Bf16Gradient& task) {
  for (int output = 0; output < task.outputs; output += kVectors * kLanes) {
    for (int input = 0; input < task.inputs; input += kInputs) {
      SumTile<kInputs, kVectors>(task, input, output);
    }
  }
}

// Pairs of 16 floats each.
inline __m512i RoundedPairs(__m512 first, __m512 second) {
  const __m512i low = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first)));
  const __m512i high = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// 16 x 16 numbers of 32 bits: rows become columns.
inline void Transpose(__m512i (&tile)[kLanes]) {
  __m512i other[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    other[i] = _mm512_unpacklo_epi32(tile[i], tile[i + 1]);
    other[i + 1] = _mm512_unpackhi_epi32(tile[i], tile[i + 1]);
  }
  for (int i = 0; i < kLanes; i += 4) {  // Now row i + c: columns c, c + 4, ... of 4 rows.
    tile[i] = _mm512_unpacklo_epi64(other[i], other[i + 2]);
    tile[i + 1] = _mm512_unpackhi_epi64(other[i], other[i + 2]);
    tile[i + 2] = _mm512_unpacklo_epi64(other[i + 1], other[i + 3]);
    tile[i + 3] = _mm512_unpackhi_epi64(other[i + 1], other[i + 3]);
  }
  constexpr int kEven = 0x88;  // Quarters 0 and 2 of both,
  constexpr int kOdd = 0xDD;   // 1 and 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low_even = _mm512_shuffle_i32x4(tile[c], tile[c + 4], kEven);
    const __m512i low_odd = _mm512_shuffle_i32x4(tile[c], tile[c + 4], kOdd);
    const __m512i high_even = _mm512_shuffle_i32x4(tile[c + 8], tile[c + 12], kEven);
    const __m512i high_odd = _mm512_shuffle_i32x4(tile[c + 8], tile[c + 12], kOdd);
    other[c] = _mm512_shuffle_i32x4(low_even, high_even, kEven);
    other[c + 8] = _mm512_shuffle_i32x4(low_even, high_even, kOdd);
    other[c + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, kEven);
    other[c + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, kOdd);
  }
  for (int i = 0; i < kLanes; ++i) tile[i] = other[i];
}

// 4 blocks of one frame: a vector each of the 4 rows' 4 pixels.
struct FourBlocks {
  __m128i block[4];
};

inline FourBlocks LoadBlocks(const std::uint8_t* pixels, int width) {
  const auto load = [&](int row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + row * width));
  };
  const __m128i rows[] = {load(0), load(1), load(2), load(3)};
  const __m128i low01 = _mm_unpacklo_epi32(rows[0], rows[1]);
  const __m128i high01 = _mm_unpackhi_epi32(rows[0], rows[1]);
  const __m128i low23 = _mm_unpacklo_epi32(rows[2], rows[3]);
  const __m128i high23 = _mm_unpackhi_epi32(rows[2], rows[3]);
  return {{_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
           _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)}};
}

// Fewer than 4 blocks in a row: one at a time, within bounds.
inline __m128i LoadBlock(const std::uint8_t* pixels, int width) {
  int rows[4];
  for (int row = 0; row < 4; ++row) __builtin_memcpy(&rows[row], pixels + row * width, sizeof(int));
  return _mm_set_epi32(rows[3], rows[2], rows[1], rows[0]);
}

inline __m512 Floats(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)); }

// load(frame offset in pixels, give): calls give(column, block) for all blocks of a row of blocks.
template <typename Give>
void ForBlocks(const FrameBlocks& shape, const std::uint8_t* pixels, Give&& give) {
  for (int row = 0; row < shape.rows; ++row) {
    for (int frame = 0; frame < shape.frames; ++frame) {
      const std::uint8_t* const from =
          pixels + (static_cast<std::ptrdiff_t>(frame) * shape.height + 4 * row) * shape.width;
      if (shape.columns < 4) {
        for (int column = 0; column < shape.columns; ++column) {
          give(row, column, frame, LoadBlock(from + 4 * column, shape.width));
        }
        continue;
      }
      // The last four may overlap those before.
      for (int column = 0; column < shape.columns; column += 4) {
        const int begin = std::min(column, shape.columns - 4);
        const FourBlocks four = LoadBlocks(from + 4 * begin, shape.width);
        for (int i = 0; i < 4; ++i) give(row, begin + i, frame, four.block[i]);
      }
    }
  }
}

}  // namespace

void MultiplyRelu(const Bf16Product& product, const float* bias, Bf16* c, std::ptrdiff_t c_row) {
  Multiply(
      product, [=](int row, int column, __m512 sums) __attribute__((always_inline)) {
        const __m512 biased = _mm512_add_ps(sums, _mm512_loadu_ps(bias + column));
        StoreRounded(Max(_mm512_setzero_ps(), biased), c + row * c_row + column);
      });
}

void MultiplyThroughRelu(const Bf16Product& product, const Bf16* output, std::ptrdiff_t output_row,
                         Bf16* c, std::ptrdiff_t c_row) {
  Multiply(
      product, [=](int row, int column, __m512 sums) __attribute__((always_inline)) {
        const __m256i outputs = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(output + row * output_row + column));
        const __mmask16 positive = _mm256_cmpgt_epi16_mask(outputs, _mm256_setzero_si256());
        StoreRounded(_mm512_maskz_mov_ps(positive, sums), c + row * c_row + column);
      });
}

void MultiplyFloat(const Bf16Product& product, bool accumulate, float* c, std::ptrdiff_t c_row) {
  Multiply(
      product, [=](int row, int column, __m512 sums) __attribute__((always_inline)) {
        float* const to = c + row * c_row + column;
        _mm512_storeu_ps(to, accumulate ? _mm512_add_ps(_mm512_loadu_ps(to), sums) : sums);
      });
}

void SumOuterProducts(const Bf16Gradient& task) {
  if (task.outputs % 64 == 0) {
    SumTiles<4, 4>(task);
  } else if (task.outputs == 32) {
    SumTiles<8, 2>(task);
  } else {
    SumTiles<8, 1>(task);
  }
}

void SumPairs(const Bf16Pair* pairs, std::ptrdiff_t rows, std::ptrdiff_t row, int columns,
              bool accumulate, float* sums) {
  constexpr int kOnes = 0x3F803F80;  // A pair of ones.
  const __m512bh ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(kOnes));
  for (int column = 0; column < columns; column += kLanes) {
    __m512 sum = accumulate ? _mm512_loadu_ps(sums + column) : _mm512_setzero_ps();
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      sum = _mm512_dpbf16_ps(sum, Pairs(pairs + i * row + column), ones);
    }
    _mm512_storeu_ps(sums + column, sum);
  }
}

void Interleave(const Bf16* first, const Bf16* second, std::ptrdiff_t count, Bf16Pair* pairs) {
  const auto load = [](const Bf16* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  };
  for (std::ptrdiff_t i = 0; i < count; i += kLanes) {
    __m512i both = load(first + i);
    if (second != nullptr) both = _mm512_or_si512(both, _mm512_slli_epi32(load(second + i), 16));
    _mm512_storeu_si512(pairs + i, both);
  }
}

void PackPanels(const float* weights, std::ptrdiff_t row, int rows, int columns, Bf16Pair* panels) {
  for (int column = 0; column < columns; column += kPanelColumns) {
    const int end = std::min(column + kPanelColumns, columns);
    for (int first = 0; first < rows; first += 2) {
      const float* const from = weights + first * row;
      for (int c = column; c < end; c += kLanes) {
        _mm512_storeu_si512(
            panels, RoundedPairs(_mm512_loadu_ps(from + c), _mm512_loadu_ps(from + row + c)));
        panels += kLanes;
      }
    }
  }
}

void PackTransposedPanel(const float* weights, int rows, int columns, Bf16Pair* panel) {
  for (int column = 0; column < columns; column += 2 * kLanes) {
    for (int row = 0; row < rows; row += kLanes) {
      __m512i tile[kLanes];  // 16 pairs of each of 16 rows.
      for (int i = 0; i < kLanes; ++i) {
        const float* const from = weights + static_cast<std::ptrdiff_t>(row + i) * columns + column;
        tile[i] = reinterpret_cast<__m512i>(
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + kLanes), _mm512_loadu_ps(from)));
      }
      Transpose(tile);
      for (int i = 0; i < kLanes; ++i) _mm512_storeu_si512(panel + i * rows + row, tile[i]);
    }
    panel += static_cast<std::ptrdiff_t>(kLanes) * rows;
  }
}

void BlocksOfFrames(const FrameBlocks& shape, const std::uint8_t* pixels, Bf16* out) {
  const int channels = 16 * shape.frames;
  ForBlocks(shape, pixels, [&](int row, int column, int frame, __m128i block) {
    StoreRounded(Floats(block), out + (row * shape.columns + column) * channels + 16 * frame);
  });
}

void InterleavedBlocks(const FrameBlocks& shape, const std::uint8_t* first,
                       const std::uint8_t* second, Bf16Pair* out) {
  const int channels = 16 * shape.frames;
  const auto at = [&](int row, int column, int frame) {
    return out + (row * shape.columns + column) * channels + 16 * frame;
  };
  // A byte as a float has an empty lower half.
  ForBlocks(shape, first, [&](int row, int column, int frame, __m128i block) {
    _mm512_storeu_si512(at(row, column, frame),
                        _mm512_srli_epi32(_mm512_castps_si512(Floats(block)), 16));
  });
  if (second == nullptr) return;
  ForBlocks(shape, second, [&](int row, int column, int frame, __m128i block) {
    Bf16Pair* const to = at(row, column, frame);
    // Blocks may come twice: what is there of the second is replaced.
    _mm512_storeu_si512(
        to, _mm512_or_si512(_mm512_and_si512(_mm512_loadu_si512(to), _mm512_set1_epi32(0xFFFF)),
                            _mm512_castps_si512(Floats(block))));
  });
}

void AddBiasRelu(const float* bias, float* values, int count) {
  for (int i = 0; i < count; i += kLanes) {
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(values + i), _mm512_loadu_ps(bias + i));
    _mm512_storeu_ps(values + i, Max(_mm512_setzero_ps(), sum));
  }
}

void RoundThroughRelu(const float* outputs, const float* gradients, int count, Bf16* rounded) {
  for (int i = 0; i < count; i += kLanes) {
    const __mmask16 positive =
        _mm512_cmp_ps_mask(_mm512_loadu_ps(outputs + i), _mm512_setzero_ps(), _CMP_GT_OQ);
    StoreRounded(_mm512_maskz_loadu_ps(positive, gradients + i), rounded + i);
  }
}

}  // namespace menger
