#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "menger/networks/aligned_floats.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/parameters/manifest.h"

namespace menger {

// Layer normalisation (Ba et al. 2016) between a dense layer of MlpNetwork and its activation
// function: its learned "NAME/norm/gain" (at first 1) and "NAME/norm/bias" (at first 0), and what
// its Backward needs of a Forward. Matrices are [rows, padded columns], `first` is the first row of
// a call. Different rows may be at work on different threads; memory grows in Reserve alone.
class LayerNorm {
 public:
  // Adds the two arrays to the manifest.
  LayerNorm(ParameterManifest& manifest, const std::string& layer, int columns,
            const Kernels& kernels);

  void Initialise(float* parameters) const;
  void Pack(const float* parameters);  // To be called when the parameters have changed.

  // In place, and nothing is kept.
  void Apply(float* values, int rows) const;

  // What the dense layer gives is written to inputs(first) before; these rows of it are kept
  // normalised.
  void Reserve(int rows);
  float* inputs(int first) { return normalised_.data() + first * width_; }
  void Forward(int first, int rows, float* outputs);

  // What d(loss)/d(outputs) is is written to output_gradients(first) before, and is kept.
  void ReserveGradients(int rows);
  float* output_gradients(int first) { return output_gradients_.data() + first * width_; }
  void Backward(int first, int rows, float* input_gradients) const;

  // Of gain and bias, from rows [0, rows).
  void ParameterGradient(int rows, float* gradients) const;

 private:
  const Kernels* kernels_;
  int columns_;
  std::ptrdiff_t width_;  // Padded.
  std::int64_t gain_;     // Offsets into the parameters.
  std::int64_t bias_;
  AlignedFloats packed_;  // Gain, then bias, both padded.
  AlignedFloats normalised_;
  AlignedFloats inverse_deviations_;
  AlignedFloats output_gradients_;
};

}  // namespace menger
