// The way back through a CnnNetwork.
#include <algorithm>

#include "menger/base/error.h"
#include "menger/networks/batch_checks.h"
#include "menger/networks/cnn.h"

namespace menger {
namespace {

constexpr int kStrip = 64;        // Columns of the linear layer's gradient that lie together.
constexpr int kInputs = 64;       // Inputs of one task of its weights' gradient,
constexpr int kSummedPairs = 64;  // and pairs of rows it sums at a time: both stay in the cache.
constexpr int kHeadInputs = 64;   // Features of one task of their weights' gradient.
constexpr int kSliceRows = 8;     // At least, and no more slices than
constexpr int kSlices = 16;       // these, each with its own sums of the convolutions' gradients.

constexpr int PartsOf(int whole, int part) { return (whole + part - 1) / part; }

}  // namespace

void CnnNetwork::CheckShapes(std::span<const Matrix> output_gradients) const {
  if (!forward_is_kept_) {
    throw FailedPrecondition("Backward needs a Forward of its own before it");
  }
  if (output_gradients.size() != heads_.size()) {
    throw InvalidArgument("a gradient for each of {} heads is needed, got {}", heads_.size(),
                          output_gradients.size());
  }
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    CheckGradient(spec_.heads[i], output_gradients[i], forward_.rows);
  }
}

// Even, so that no pair of rows is torn; a function of the batch alone, so that sums are.
int CnnNetwork::slice_rows() const { return std::max(kSliceRows, 2 * PartsOf(pairs(), kSlices)); }

void CnnNetwork::ReserveForBackward() {
  const std::ptrdiff_t rows = forward_.rows;
  const Convolution& last = layers_.back().convolution;
  head_gradients_.Reserve(rows * head_columns_);
  feature_gradients_.Reserve(rows * features_);
  linear_gradients_.Reserve(rows * features_);
  linear_pairs_.Reserve(static_cast<std::ptrdiff_t>(pairs()) * features_);
  image_gradients_.Reserve(rows * last.gradient_size());
  sums_.Reserve(PartsOf(forward_.rows, slice_rows()) * slice_sums_);
}

void CnnNetwork::Backward(std::span<const Matrix> output_gradients,
                          const GradientRequest& request) {
  if (request.inputs != nullptr) throw InvalidArgument("pixels have no gradient to be asked for");
  RefuseVectorGradient(request);
  CheckShapes(output_gradients);
  forward_is_kept_ = false;
  PackBack();
  ReserveForBackward();
  const int rows = forward_.rows;
  Run(PartsOf(rows, kHeadRows), [&](int task, Scratch&) {
    HeadsBackward(output_gradients, {task * kHeadRows, std::min((task + 1) * kHeadRows, rows)});
  });

  const int panels = PartsOf(inputs_, kPanelColumns);
  Run(panels + PartsOf(features_, kHeadInputs), [&](int task, Scratch&) {
    if (task < panels) {
      LinearInputGradient(task);
    } else {
      HeadWeights((task - panels) * kHeadInputs);
    }
  });

  const int slices = PartsOf(rows, slice_rows());
  Run(slices + PartsOf(inputs_, kInputs), [&](int task, Scratch& scratch) {
    if (task < slices) {
      SliceBackward(task, scratch);
    } else {
      LinearWeightGradient((task - slices) * kInputs, scratch);
    }
  });

  Run(static_cast<int>(layers_.size()), [&](int task, Scratch&) { AddUpSlices(layers_[task]); });
  ScatterHeadGradients(output_gradients);
}

// To the sums in the linear layer.
void CnnNetwork::HeadsBackward(std::span<const Matrix> output_gradients, Rows rows) {
  const auto at = [](const auto& array, int row, std::ptrdiff_t columns) {
    return array.data() + row * columns;
  };
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (heads_[i].weight < 0) continue;
    for (int row = rows.begin; row < rows.end; ++row) {
      std::copy_n(output_gradients[i].row(row), spec_.heads[i].width,
                  at(head_gradients_, row, head_columns_) + heads_[i].column);
    }
  }
  kernels_.multiply({.a = at(head_gradients_, rows.begin, head_columns_),
                     .a_row = head_columns_,
                     .a_inner = 1,
                     .b = head_back_.data(),
                     .b_row = features_,
                     .c = at(feature_gradients_, rows.begin, features_),
                     .c_row = features_,
                     .rows = rows.count(),
                     .inner = head_columns_,
                     .columns = features_});
  for (int row = rows.begin; row < rows.end; ++row) {
    RoundThroughRelu(at(forward_.features, row, features_), at(feature_gradients_, row, features_),
                     features_, at(linear_gradients_, row, features_));
  }
  for (int row = rows.begin; row < rows.end; row += 2) {
    for (int column = 0; column < features_; column += kStrip) {
      const Bf16* const first = at(linear_gradients_, row, features_) + column;
      Interleave(first, row + 1 < rows.end ? first + features_ : nullptr, kStrip,
                 linear_pairs_.data() + static_cast<std::ptrdiff_t>(column) * pairs() +
                     static_cast<std::ptrdiff_t>(row / 2) * kStrip);
    }
  }
}

void CnnNetwork::HeadWeights(int begin) {
  kernels_.multiply(
      {.a = forward_.features.data() + begin,
       .a_row = 1,
       .a_inner = features_,
       .b = head_gradients_.data(),
       .b_row = head_columns_,
       .c = head_weight_gradients_.data() + static_cast<std::ptrdiff_t>(begin) * head_columns_,
       .c_row = head_columns_,
       .rows = std::min(kHeadInputs, features_ - begin),
       .inner = forward_.rows,
       .columns = head_columns_});
}

// Of all rows, for the inputs of one panel: part of one pixel's channels.
void CnnNetwork::LinearInputGradient(int panel) {
  const Convolution& last = layers_.back().convolution;
  const int channels = inputs_ / (last.out_height() * last.out_width());
  const int input = panel * kPanelColumns;
  const int pixel = input / channels;
  const std::ptrdiff_t place = last.gradient_start() +
                               pixel / last.out_width() * last.gradient_row() +
                               pixel % last.out_width() * channels + input % channels;
  const std::ptrdiff_t panel_size = static_cast<std::ptrdiff_t>(features_) / 2 * kPanelColumns;
  MultiplyThroughRelu({.a = linear_gradients_.data(),
                       .a_row = features_,
                       .b = linear_back_.data() + panel * panel_size,
                       .b_panel = panel_size,
                       .rows = forward_.rows,
                       .inner = features_,
                       .columns = kPanelColumns},
                      forward_.images.back().data() + input, inputs_,
                      image_gradients_.data() + place, last.gradient_size());
}

void CnnNetwork::LinearWeightGradient(int begin, Scratch& scratch) {
  const int inputs = std::min(kInputs, inputs_ - begin);
  for (int pair = 0; pair < pairs(); pair += kSummedPairs) {
    const int count = std::min(kSummedPairs, pairs() - pair);
    for (int i = 0; i < count; ++i) {
      const int row = 2 * (pair + i);
      const Bf16* const first =
          forward_.images.back().data() + static_cast<std::ptrdiff_t>(row) * inputs_ + begin;
      Interleave(first, row + 1 < forward_.rows ? first + inputs_ : nullptr, inputs,
                 scratch.inputs.data() + i * inputs);
    }
    for (int column = 0; column < features_; column += kStrip) {
      SumOuterProducts({.x = scratch.inputs.data(),
                        .x_pixel = inputs,
                        .y = linear_pairs_.data() + static_cast<std::ptrdiff_t>(column) * pairs() +
                             static_cast<std::ptrdiff_t>(pair) * kStrip,
                        .columns = count,
                        .inputs = inputs,
                        .outputs = kStrip,
                        .gradient = gradients_.data() + linear_weight_ +
                                    static_cast<std::ptrdiff_t>(begin) * features_ + column,
                        .gradient_row = features_,
                        .accumulate = pair > 0});
    }
  }
  if (begin > 0) return;
  for (int column = 0; column < features_; column += kStrip) {
    SumPairs(linear_pairs_.data() + static_cast<std::ptrdiff_t>(column) * pairs(), pairs(), kStrip,
             kStrip, /*accumulate=*/false, gradients_.data() + linear_bias_ + column);
  }
}

void CnnNetwork::SliceBackward(int slice, Scratch& scratch) {
  const int begin = slice * slice_rows();
  const int end = std::min(begin + slice_rows(), forward_.rows);
  for (int row = begin; row < end; row += 2) {
    PairBackward(row, /*accumulate=*/row > begin, sums_.data() + slice * slice_sums_, scratch);
  }
}

// Two images from the last convolution to the first; nothing of them leaves the cache.
void CnnNetwork::PairBackward(int row, bool accumulate, float* sums, Scratch& scratch) {
  const bool both = row + 1 < forward_.rows;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Convolution& convolution = layers_[i].convolution;
    const std::ptrdiff_t size = convolution.gradient_size();
    const Bf16* const gradients = i + 1 == layers_.size() ? image_gradients_.data() + row * size
                                                          : scratch.gradients[i].data();
    convolution.InterleaveGradients(gradients, both ? gradients + size : nullptr,
                                    scratch.output_gradients.data());
    if (i == 0) {
      const std::uint8_t* const first = forward_.observations + row * spec_.observation.elements();
      InterleavedBlocks(blocks_, first, both ? first + spec_.observation.elements() : nullptr,
                        scratch.inputs.data());
    } else {
      const std::ptrdiff_t input_size = convolution.input_size();
      const Bf16* const first = forward_.images[i - 1].data() + row * input_size;
      Interleave(first, both ? first + input_size : nullptr, input_size, scratch.inputs.data());
      const Convolution& before = layers_[i - 1].convolution;
      for (int image = 0; image <= static_cast<int>(both); ++image) {
        convolution.InputGradient(gradients + image * size, first + image * input_size,
                                  scratch.gradients[i - 1].data() + image * before.gradient_size() +
                                      before.gradient_start(),
                                  before.gradient_row());
      }
    }
    convolution.WeightGradient(scratch.inputs.data(), scratch.output_gradients.data(), accumulate,
                               sums + layers_[i].sums);
  }
}

void CnnNetwork::AddUpSlices(const Layer& layer) {
  const int slices = PartsOf(forward_.rows, slice_rows());
  const float* const sums = sums_.data() + layer.sums;
  layer.convolution.AddUp(sums, slices, slice_sums_, gradients_.data() + layer.weight);
  const std::ptrdiff_t weights = layer.convolution.weights();
  for (std::ptrdiff_t i = 0; i < layer.convolution.outputs(); ++i) {
    float sum = 0;
    for (int slice = 0; slice < slices; ++slice) sum += sums[slice * slice_sums_ + weights + i];
    gradients_.data()[layer.bias + i] = sum;
  }
}

void CnnNetwork::ScatterHeadGradients(std::span<const Matrix> output_gradients) {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const int width = spec_.heads[i].width;
    float* const bias = gradients_.data() + heads_[i].bias;
    std::fill_n(bias, width, 0.0f);
    for (int row = 0; row < forward_.rows; ++row) {
      const float* const from = output_gradients[i].row(row);
      for (int column = 0; column < width; ++column) bias[column] += from[column];
    }
    if (heads_[i].weight < 0) continue;
    for (int feature = 0; feature < stream_features_; ++feature) {
      const std::ptrdiff_t row = heads_[i].feature + feature;
      std::copy_n(
          head_weight_gradients_.data() + row * head_columns_ + heads_[i].column, width,
          gradients_.data() + heads_[i].weight + static_cast<std::ptrdiff_t>(feature) * width);
    }
  }
}

}  // namespace menger
