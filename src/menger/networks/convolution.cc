#include "menger/networks/convolution.h"

#include <algorithm>

namespace menger {

Convolution::Convolution(const Shape& shape, float scale) : scale_(scale) {
  const int block = shape.reads_blocks ? shape.stride : 1;
  channels_ = shape.channels * block * block;
  kernel_ = shape.kernel / block;
  stride_ = shape.stride / block;
  outputs_ = shape.outputs;
  out_height_ = (shape.height - shape.kernel) / shape.stride + 1;
  out_width_ = (shape.width - shape.kernel) / shape.stride + 1;
  height_ = shape.reads_blocks ? out_height_ + kernel_ - 1 : shape.height;
  width_ = shape.reads_blocks ? out_width_ + kernel_ - 1 : shape.width;
  row_ = static_cast<std::ptrdiff_t>(width_) * channels_;
  steps_ = kernel_ / stride_;
  padding_ = shape.reads_blocks ? 0 : steps_ - 1;
  OrderForward(shape);
  if (!shape.reads_blocks) OrderBack();
  matrix_ = AlignedFloats(weights());
  packed_ = AlignedArray<Bf16Pair>(weights() / 2);
  back_ = AlignedArray<Bf16Pair>(static_cast<std::ptrdiff_t>(back_order_.size()) / 2);
}

std::ptrdiff_t Convolution::output_size() const {
  return static_cast<std::ptrdiff_t>(out_height_) * out_width_ * outputs_;
}

void Convolution::OrderForward(const Shape& shape) {
  const int block = shape.reads_blocks ? shape.stride : 1;
  for (int y = 0; y < kernel_; ++y) {
    for (int x = 0; x < kernel_; ++x) {
      for (int channel = 0; channel < channels_; ++channel) {
        const int frame = channel / (block * block);  // Then the rows and columns of a block.
        const int row = y * block + channel / block % block;
        const int column = x * block + channel % block;
        for (int output = 0; output < outputs_; ++output) {
          order_.push_back(((output * shape.channels + frame) * shape.kernel + row) * shape.kernel +
                           column);
        }
      }
    }
  }
}

// The pixel at (stride * Y + y, stride * X + x) of the input is read by the pixels (Y - i, X - j)
// of the output, i and j below steps_, through the weights at (stride * i + y, stride * j + x). The
// matrix goes through them from top to bottom and left to right: from large i and j to small.
void Convolution::OrderBack() {
  for (int y = 0; y < stride_; ++y) {
    for (int i = steps_ - 1; i >= 0; --i) {
      for (int j = steps_ - 1; j >= 0; --j) {
        for (int output = 0; output < outputs_; ++output) {
          for (int x = 0; x < stride_; ++x) {
            for (int channel = 0; channel < channels_; ++channel) {
              back_order_.push_back(((output * channels_ + channel) * kernel_ + stride_ * i + y) *
                                        kernel_ +
                                    stride_ * j + x);
            }
          }
        }
      }
    }
  }
}

void Convolution::SetWeights(const float* weights) {
  const int inner = kernel_ * kernel_ * channels_;
  std::transform(order_.begin(), order_.end(), matrix_.data(),
                 [&](std::int32_t index) { return weights[index] * scale_; });
  PackPanels(matrix_.data(), outputs_, inner, outputs_, packed_.data());
  if (back_order_.empty()) return;
  std::transform(back_order_.begin(), back_order_.end(), matrix_.data(),
                 [&](std::int32_t index) { return weights[index] * scale_; });
  const int columns = stride_ * channels_;
  const int rows = steps_ * steps_ * outputs_;
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(rows) * columns;
  for (int y = 0; y < stride_; ++y) {
    PackPanels(matrix_.data() + y * size, columns, rows, columns, back_.data() + y * size / 2);
  }
}

void Convolution::Forward(const Bf16* input, const float* bias, Bf16* output) const {
  const int inner = kernel_ * channels_;
  const std::ptrdiff_t out_row = static_cast<std::ptrdiff_t>(out_width_) * outputs_;
  for (int y = 0; y < out_height_; ++y) {
    MultiplyRelu({.a = input + y * stride_ * row_,
                  .a_row = static_cast<std::ptrdiff_t>(stride_) * channels_,
                  .a_segment = row_,
                  .b = packed_.data(),
                  .b_panel = static_cast<std::ptrdiff_t>(kernel_) * inner / 2 * kPanelColumns,
                  .rows = out_width_,
                  .segments = kernel_,
                  .inner = inner,
                  .columns = outputs_},
                 bias, output + y * out_row, outputs_);
  }
}

void Convolution::InputGradient(const Bf16* output_gradient, const Bf16* input, Bf16* gradient,
                                std::ptrdiff_t gradient_row) const {
  const int columns = stride_ * channels_;
  const int panel_columns = std::min(columns, kPanelColumns);
  const int inner = steps_ * outputs_;
  const std::ptrdiff_t back_size = static_cast<std::ptrdiff_t>(steps_) * inner * columns / 2;
  for (int step = 0; step < out_height_ + steps_ - 1; ++step) {
    // Only rows of the output that exist: the gradient is padded in one direction alone.
    const int first = std::max(0, step - steps_ + 1);
    const int last = std::min(out_height_ - 1, step);
    const int skipped = first - (step - steps_ + 1);
    for (int y = 0; y < stride_; ++y) {
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(step) * stride_ + y;
      MultiplyThroughRelu(
          {.a = output_gradient + first * this->gradient_row(),
           .a_row = outputs_,
           .a_segment = this->gradient_row(),
           .b = back_.data() + y * back_size +
                static_cast<std::ptrdiff_t>(skipped) * inner / 2 * panel_columns,
           .b_panel = static_cast<std::ptrdiff_t>(steps_) * inner / 2 * kPanelColumns,
           .rows = out_width_ + steps_ - 1,
           .segments = last - first + 1,
           .inner = inner,
           .columns = columns},
          input + row * row_, columns, gradient + row * gradient_row, columns);
    }
  }
}

void Convolution::WeightGradient(const Bf16Pair* input, const Bf16Pair* output_gradient,
                                 bool accumulate, float* sums) const {
  const int inner = kernel_ * channels_;
  for (int y = 0; y < kernel_; ++y) {
    SumOuterProducts({.x = input + y * row_,
                      .x_row = stride_ * row_,
                      .x_pixel = static_cast<std::ptrdiff_t>(stride_) * channels_,
                      .y = output_gradient,
                      .rows = out_height_,
                      .columns = out_width_,
                      .inputs = inner,
                      .outputs = outputs_,
                      .gradient = sums + static_cast<std::ptrdiff_t>(y) * inner * outputs_,
                      .gradient_row = outputs_,
                      .accumulate = accumulate});
  }
  SumPairs(output_gradient, static_cast<std::ptrdiff_t>(out_height_) * out_width_, outputs_,
           outputs_, accumulate, sums + weights());
}

void Convolution::InterleaveGradients(const Bf16* first, const Bf16* second,
                                      Bf16Pair* pairs) const {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(out_width_) * outputs_;
  for (int y = 0; y < out_height_; ++y) {
    const std::ptrdiff_t start = gradient_start() + y * gradient_row();
    Interleave(first + start, second == nullptr ? nullptr : second + start, row, pairs + y * row);
  }
}

void Convolution::AddUp(const float* sums, int count, std::ptrdiff_t distance,
                        float* gradients) const {
  for (std::ptrdiff_t i = 0; i < weights(); ++i) {
    float sum = sums[i];
    for (int part = 1; part < count; ++part) sum += sums[part * distance + i];
    gradients[order_[static_cast<std::size_t>(i)]] = sum * scale_;
  }
}

}  // namespace menger
