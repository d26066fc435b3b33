#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "menger/networks/aligned_floats.h"
#include "menger/networks/kernels/bf16.h"

namespace menger {

// One convolution followed by relu, in bfloat16 on vector kernels of ours (so only where
// HasAvx512Bf16()): sums and gradients of the weights are float32.
//
// Images lie channels last, [height][width][channels]. Gradients of the output have columns of
// zeros on both sides, [height][padding + width + padding][channels], which whoever allocates them
// makes and nobody writes: so the gradient of the input is a convolution without borders. Weights
// are [outputs, channels, kernel, kernel], as parameters. Const functions may be called from any
// thread.
class Convolution {
 public:
  struct Shape {
    int channels = 0;  // Of the input.
    int height = 0;
    int width = 0;
    int outputs = 0;  // A multiple of 16.
    int kernel = 0;   // A multiple of the stride.
    int stride = 0;

    // The input comes as blocks of stride x stride pixels, FrameBlocks, and needs no gradient.
    bool reads_blocks = false;
  };

  // What multiplies the input on its way in goes into the weights: `scale`.
  Convolution(const Shape& shape, float scale);

  int out_height() const { return out_height_; }
  int out_width() const { return out_width_; }
  int outputs() const { return outputs_; }
  std::ptrdiff_t input_size() const { return height_ * row_; }
  std::ptrdiff_t output_size() const;
  std::ptrdiff_t weights() const { return static_cast<std::ptrdiff_t>(order_.size()); }

  // Of a padded gradient of the output.
  std::ptrdiff_t gradient_size() const { return out_height_ * gradient_row(); }
  std::ptrdiff_t gradient_row() const {
    return static_cast<std::ptrdiff_t>(out_width_ + 2 * padding_) * outputs_;
  }
  std::ptrdiff_t gradient_start() const {  // Of its first pixel.
    return static_cast<std::ptrdiff_t>(padding_) * outputs_;
  }

  void SetWeights(const float* weights);

  void Forward(const Bf16* input, const float* bias, Bf16* output) const;

  // `input` is what Forward read and a relu made; `gradient` is that of what the relu read, with
  // `gradient_row` numbers from one row to the next. Rows and columns that no patch reaches are
  // left alone.
  void InputGradient(const Bf16* output_gradient, const Bf16* input, Bf16* gradient,
                     std::ptrdiff_t gradient_row) const;

  // sums [weights() + outputs] = or += the gradients of the weights, in an order of their own, and
  // of the bias. `input` and `output_gradient` are two images interleaved, the latter without
  // padding.
  void WeightGradient(const Bf16Pair* input, const Bf16Pair* output_gradient, bool accumulate,
                      float* sums) const;

  // A pair of gradients of the output, as WeightGradient reads them; `second` may be null.
  void InterleaveGradients(const Bf16* first, const Bf16* second, Bf16Pair* pairs) const;

  // gradients [weights()] = the sum of `count` arrays of WeightGradient, each `distance` floats
  // after the one before, in the order of the parameters.
  void AddUp(const float* sums, int count, std::ptrdiff_t distance, float* gradients) const;

 private:
  void OrderForward(const Shape& shape);
  void OrderBack();

  // As the kernels see it: with blocks for pixels, it has more channels, and a stride of 1.
  int channels_ = 0;
  int height_ = 0;
  int width_ = 0;
  int outputs_ = 0;
  int kernel_ = 0;
  int stride_ = 0;
  int out_height_ = 0;
  int out_width_ = 0;
  int steps_ = 0;           // Pixels of the output that one of the input reaches, in a direction.
  int padding_ = 0;         // steps_ - 1, or 0 without a gradient of the input.
  std::ptrdiff_t row_ = 0;  // Numbers in a row of the input.
  const float scale_;

  // Where the matrices that the kernels multiply with have their elements among the weights:
  // [kernel, kernel, channels][outputs], and for the gradient of the input, for each row in a
  // stride, [steps, steps, outputs][stride, channels].
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> back_order_;

  AlignedFloats matrix_;  // Scratch of SetWeights.
  AlignedArray<Bf16Pair> packed_;
  AlignedArray<Bf16Pair> back_;
};

}  // namespace menger
