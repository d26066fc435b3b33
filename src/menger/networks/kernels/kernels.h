#pragma once

#include <cstddef>

#include "menger/networks/kernels/layer_norm.h"
#include "menger/networks/kernels/transposition.h"

namespace menger {

// The vector kernels that small networks run on: one templated source, compiled once for each
// instruction set and chosen at run time.
//
// Every element of a product is one chain of fused multiply-adds in the order of `inner`, whatever
// the number of rows, the blocking and the instruction set: so a row's result does not depend on
// its batch, and machines with and without AVX-512 agree to the last bit. Stateless; any thread.

// Rows of `b`, of packed weights and of activations are padded to a multiple of this many floats.
inline constexpr int kPadding = 8;

constexpr int Padded(int columns) { return (columns + kPadding - 1) / kPadding * kPadding; }

// c = start + a * b, with c [rows, columns], a [rows, inner], b [inner, columns].
//
// `a` is read as scalars at any strides (so it may be transposed, or one number repeated); rows of
// `b` and `bias` must be readable up to Padded(columns); of c exactly `columns` are written.
struct MatrixProduct {
  const float* a = nullptr;
  std::ptrdiff_t a_row = 0;    // Floats from one row to the next,
  std::ptrdiff_t a_inner = 0;  // and from one summand to the next.
  const float* b = nullptr;
  std::ptrdiff_t b_row = 0;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;
  const float* bias = nullptr;  // What each row of c starts with; null: zero, or c itself.
  bool accumulate = false;      // Start with what is in c. Not together with a bias.
  int rows = 0;
  int inner = 0;
  int columns = 0;
};

// The same functions for one instruction set. `count` is a multiple of kPadding everywhere.
struct Kernels {
  const char* name;  // "avx512" or "avx2".
  void (*multiply)(const MatrixProduct& product);
  void (*tanh)(float* values, std::ptrdiff_t count);  // In place; within 5 units in the last place.
  void (*relu)(float* values, std::ptrdiff_t count);

  // Turn d(loss)/d(output) into d(loss)/d(input), in place, given the outputs.
  void (*tanh_gradient)(const float* outputs, float* gradients, std::ptrdiff_t count);
  void (*relu_gradient)(const float* outputs, float* gradients, std::ptrdiff_t count);

  void (*transpose)(const Transposition& transposition);

  void (*layer_norm)(const LayerNormRows& rows);
  void (*layer_norm_gradient)(const LayerNormSlopes& slopes);
  void (*layer_norm_sums)(const LayerNormSums& sums);
};

const Kernels& Avx2Kernels();
const Kernels& Avx512Kernels();  // Only to be called where HasAvx512().
bool HasAvx512();

// The fastest that this processor can run.
const Kernels& BestKernels();

}  // namespace menger
