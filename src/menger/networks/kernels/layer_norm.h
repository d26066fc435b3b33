#pragma once

namespace menger {

// What the kernels of layer normalisation (Ba et al. 2016) read and write: every row is shifted and
// scaled to mean 0 and variance 1, then each of its numbers is scaled by a gain and shifted by a
// bias.
//
// Matrices are dense, [rows, Padded(columns)], and start anywhere; of gain and bias Padded(columns)
// floats are read, which are 0 behind `columns`. Sums are made in one fixed order for every
// instruction set and every number of rows.

inline constexpr float kLayerNormEpsilon = 1e-5f;  // Added to the variance: torch.nn.LayerNorm's.

// output = normalised * gain + bias. The padding of `input` must be 0; that of what is written is.
struct LayerNormRows {
  const float* input = nullptr;
  float* normalised = nullptr;          // May be the input; the output, too: then it is lost.
  float* inverse_deviations = nullptr;  // One a row, 1 / sqrt(variance + epsilon); null: unwanted.
  float* output = nullptr;
  const float* gain = nullptr;
  const float* bias = nullptr;
  int rows = 0;
  int columns = 0;
};

// d(loss)/d(input) from d(loss)/d(output), whose padding must be 0. That of the result is anything.
struct LayerNormSlopes {
  const float* output_gradients = nullptr;
  const float* normalised = nullptr;
  const float* inverse_deviations = nullptr;
  const float* gain = nullptr;
  float* input_gradients = nullptr;
  int rows = 0;
  int columns = 0;
};

// d(loss)/d(gain) and d(loss)/d(bias), of which exactly `columns` are written: sums over the rows,
// one chain each.
struct LayerNormSums {
  const float* output_gradients = nullptr;
  const float* normalised = nullptr;
  float* gain_gradients = nullptr;
  float* bias_gradients = nullptr;
  int rows = 0;
  int columns = 0;
};

}  // namespace menger
