#include "menger/networks/layer_norm.h"

#include <algorithm>

namespace menger {

LayerNorm::LayerNorm(ParameterManifest& manifest, const std::string& layer, int columns,
                     const Kernels& kernels)
    : kernels_(&kernels),
      columns_(columns),
      width_(Padded(columns)),
      gain_(manifest.Add(layer + "/norm/gain", {columns})),
      bias_(manifest.Add(layer + "/norm/bias", {columns})),
      packed_(2 * width_) {}

void LayerNorm::Initialise(float* parameters) const {
  std::fill_n(parameters + gain_, columns_, 1.0f);
  std::fill_n(parameters + bias_, columns_, 0.0f);
}

void LayerNorm::Pack(const float* parameters) {
  std::copy_n(parameters + gain_, columns_, packed_.data());
  std::copy_n(parameters + bias_, columns_, packed_.data() + width_);
}

void LayerNorm::Apply(float* values, int rows) const {
  kernels_->layer_norm({.input = values,
                        .normalised = values,
                        .output = values,
                        .gain = packed_.data(),
                        .bias = packed_.data() + width_,
                        .rows = rows,
                        .columns = columns_});
}

void LayerNorm::Reserve(int rows) {
  normalised_.Reserve(rows * width_);
  inverse_deviations_.Reserve(rows);
}

void LayerNorm::Forward(int first, int rows, float* outputs) {
  kernels_->layer_norm({.input = inputs(first),
                        .normalised = inputs(first),
                        .inverse_deviations = inverse_deviations_.data() + first,
                        .output = outputs,
                        .gain = packed_.data(),
                        .bias = packed_.data() + width_,
                        .rows = rows,
                        .columns = columns_});
}

void LayerNorm::ReserveGradients(int rows) { output_gradients_.Reserve(rows * width_); }

void LayerNorm::Backward(int first, int rows, float* input_gradients) const {
  kernels_->layer_norm_gradient({.output_gradients = output_gradients_.data() + first * width_,
                                 .normalised = normalised_.data() + first * width_,
                                 .inverse_deviations = inverse_deviations_.data() + first,
                                 .gain = packed_.data(),
                                 .input_gradients = input_gradients,
                                 .rows = rows,
                                 .columns = columns_});
}

void LayerNorm::ParameterGradient(int rows, float* gradients) const {
  kernels_->layer_norm_sums({.output_gradients = output_gradients_.data(),
                             .normalised = normalised_.data(),
                             .gain_gradients = gradients + gain_,
                             .bias_gradients = gradients + bias_,
                             .rows = rows,
                             .columns = columns_});
}

}  // namespace menger
