#pragma once

#include <cstddef>
#include <cstdint>

namespace menger {

// Vector kernels for convolutional networks in bfloat16: products of bfloat16 numbers summed in
// float32. Nothing but HasAvx512Bf16() may be called where that says no.
//
// The instruction underneath multiplies pairs of neighbours along the dimension that is summed, so
// one operand lies in pairs. Every element of a product is one chain of sums in the order of its
// summands, whatever the number of rows: a row's result does not depend on its batch. Stateless;
// any thread.

using Bf16 = std::uint16_t;      // The upper half of a float, rounded to nearest even.
using Bf16Pair = std::uint32_t;  // Two summands, the first in the lower half.

// Columns of a panel. A matrix in panels holds its columns in strips of this many, one strip after
// the other (the last may be half as wide), each [rows / 2][columns of the strip] of pairs.
inline constexpr int kPanelColumns = 32;

bool HasAvx512Bf16();

// a * b: `a` [rows, segments * inner], `b` [segments * inner, columns] in panels. A row of `a` is
// `segments` pieces of `inner` numbers, so a convolution needs no copy of its patches.
struct Bf16Product {
  const Bf16* a = nullptr;
  std::ptrdiff_t a_row = 0;      // Numbers from one row to the next,
  std::ptrdiff_t a_segment = 0;  // and from one segment to the next.
  const Bf16Pair* b = nullptr;
  std::ptrdiff_t b_panel = 0;  // Pairs from one panel to the next.
  int rows = 0;
  int segments = 1;
  int inner = 0;    // Even.
  int columns = 0;  // A multiple of 16.
};

// c = max(bias + a * b, 0).
void MultiplyRelu(const Bf16Product& product, const float* bias, Bf16* c, std::ptrdiff_t c_row);

// c = a * b where `output`, of the same shape, is above 0, else 0: a gradient through relu.
void MultiplyThroughRelu(const Bf16Product& product, const Bf16* output, std::ptrdiff_t output_row,
                         Bf16* c, std::ptrdiff_t c_row);

// c = a * b, or c += a * b.
void MultiplyFloat(const Bf16Product& product, bool accumulate, float* c, std::ptrdiff_t c_row);

// gradient [inputs, outputs] = or += the sum over the pixels of two images of x^T y: the images lie
// interleaved, so that a pair is the same number of both. `x` and `y` start at the numbers that
// belong to gradient[0][0] in the first pixel.
struct Bf16Gradient {
  const Bf16Pair* x = nullptr;
  std::ptrdiff_t x_row = 0;     // Pairs from the pixels of one row of `y` to those of the next,
  std::ptrdiff_t x_pixel = 0;   // and from pixel to pixel.
  const Bf16Pair* y = nullptr;  // Dense: [rows][columns][outputs].
  int rows = 1;
  int columns = 0;
  int inputs = 0;   // A multiple of 8.
  int outputs = 0;  // 16, 32 or a multiple of 64.
  float* gradient = nullptr;
  std::ptrdiff_t gradient_row = 0;
  bool accumulate = false;
};
void SumOuterProducts(const Bf16Gradient& task);

// sums [columns] = or += the sum over `rows` of both numbers of each pair. `columns` as above.
void SumPairs(const Bf16Pair* pairs, std::ptrdiff_t rows, std::ptrdiff_t row, int columns,
              bool accumulate, float* sums);

// pairs[i] = (first[i], second[i]); a null `second` counts as zeros. `count` is a multiple of 16.
void Interleave(const Bf16* first, const Bf16* second, std::ptrdiff_t count, Bf16Pair* pairs);

// Weights [rows, columns], `row` numbers from one row to the next, in panels; `rows` is even.
void PackPanels(const float* weights, std::ptrdiff_t row, int rows, int columns, Bf16Pair* panels);

// The transposed matrix in panels, for `rows` (a multiple of 16, at most kPanelColumns) of
// `columns` (a multiple of 32) numbers: one panel.
void PackTransposedPanel(const float* weights, int rows, int columns, Bf16Pair* panel);

// Frames [frames, height, width] as blocks of 4 x 4 pixels: out [rows][columns][frames * 16], where
// a block is a pixel of 16 numbers a frame, 4 of each of its rows. A convolution with strides of 4
// becomes one with strides of 1. Values stay 0 .. 255, which is exact. height >= 4 rows, width >= 4
// columns, columns >= 2.
struct FrameBlocks {
  int frames = 0;
  int height = 0;
  int width = 0;
  int rows = 0;
  int columns = 0;
};
void BlocksOfFrames(const FrameBlocks& shape, const std::uint8_t* pixels, Bf16* out);
void InterleavedBlocks(const FrameBlocks& shape, const std::uint8_t* first,
                       const std::uint8_t* second, Bf16Pair* out);  // `second` as in Interleave.

// values [count] = max(values + bias, 0); `count` is a multiple of 16.
void AddBiasRelu(const float* bias, float* values, int count);

// Zeroes gradients where `outputs` is 0 and rounds them. `count` is a multiple of 16.
void RoundThroughRelu(const float* outputs, const float* gradients, int count, Bf16* rounded);

}  // namespace menger
