#include "menger/policies/bundle_player.h"

#include <algorithm>
#include <cstring>

#include "menger/networks/kernels/elementary.h"
#include "menger/networks/kernels/kernels.h"
#include "menger/policies/bundle_format.h"

namespace menger {
namespace {

namespace format = bundle_format;

template <typename T>
void Convert(const void* leaf, int elements, float* out) {
  const T* const values = static_cast<const T*>(leaf);
  for (int i = 0; i < elements; ++i) out[i] = static_cast<float>(values[i]);
}

void EncodeNumbers(const BundleLeaf& leaf, const void* values, float* out) {
  switch (leaf.dtype) {
    case format::kUint8:
      return Convert<std::uint8_t>(values, leaf.elements, out);
    case format::kInt32:
      return Convert<std::int32_t>(values, leaf.elements, out);
    case format::kInt64:
      return Convert<std::int64_t>(values, leaf.elements, out);
    case format::kFloat32:
      return Convert<float>(values, leaf.elements, out);
    default:
      return Convert<double>(values, leaf.elements, out);
  }
}

void Activate(std::uint32_t activation, float* values, int count) {
  if (activation == format::kTanh) BestKernels().tanh(values, Padded(count));
  if (activation == format::kRelu) BestKernels().relu(values, Padded(count));
}

// One row times a weight with padded rows.
void MultiplyRow(const float* row, int inner, const std::vector<float>& weight, const float* bias,
                 int columns, float* out) {
  BestKernels().multiply({.a = row,
                          .a_inner = 1,
                          .b = weight.data(),
                          .b_row = Padded(columns),
                          .c = out,
                          .bias = bias,
                          .accumulate = bias == nullptr,
                          .rows = 1,
                          .inner = inner,
                          .columns = Padded(columns)});
}

// In place; the padding behind the row is 0.
void NormaliseRow(const BundleLayer& layer, float* row) {
  BestKernels().layer_norm({.input = row,
                            .normalised = row,
                            .output = row,
                            .gain = layer.weight.data(),
                            .bias = layer.bias.data(),
                            .rows = 1,
                            .columns = layer.outputs});
}

std::size_t ScratchOf(const BundleLayer& layer) {
  if (layer.kind == format::kLstm) return Padded(4 * layer.outputs) + Padded(layer.outputs);
  if (layer.kind != format::kConvolution) return 0;
  return static_cast<std::size_t>(layer.out_height()) * layer.out_width() * layer.patch();
}

}  // namespace

BundlePlayer::BundlePlayer(const PolicyBundle& bundle) : bundle_(bundle) {
  stack_.resize(static_cast<std::size_t>(bundle.frame_size) * bundle.frame_stack);
  normalised_.resize(bundle.scale.empty() ? 0 : stack_.size());
  std::size_t state = 0;
  std::size_t scratch = 0;
  for (const BundleLayer& layer : bundle.layers) {
    results_.emplace_back(Padded(layer.outputs));
    scratch = std::max(scratch, ScratchOf(layer));
    if (layer.kind == format::kLstm) state += 2 * static_cast<std::size_t>(layer.outputs);
  }
  state_.resize(state);
  scratch_.resize(scratch);
  if (bundle.rule == format::kLargestValue) {
    values_.resize(static_cast<std::size_t>(bundle.actions) * bundle.atoms);
    outputs_.resize(bundle.actions);
  } else {
    outputs_.resize(bundle.layers[bundle.heads[0]].outputs);
  }
}

void BundlePlayer::Reset() {
  std::fill(stack_.begin(), stack_.end(), 0.0F);
  std::fill(state_.begin(), state_.end(), 0.0F);
}

BundlePlayer::Result BundlePlayer::Act(const void* const* leaves, void* action) {
  if (!CodesAreInRange(leaves)) return Result::kNoSuchChoice;
  Encode(leaves);
  const float* const input = NetworkInput();
  float* state = state_.data();
  for (std::size_t i = 0; i < bundle_.layers.size(); ++i) {
    const BundleLayer& layer = bundle_.layers[i];
    const float* const read = layer.source < 0 ? input : results_[layer.source].data();
    if (layer.kind == format::kLstm) {
      RunLstm(layer, read, state, results_[i].data());
      state += 2 * static_cast<std::size_t>(layer.outputs);
    } else if (layer.kind == format::kJoin) {
      RunJoin(layer, input, read, results_[i].data());
    } else {
      Run(layer, read, results_[i].data());
    }
  }
  MakeOutputs();
  if (bundle_.rule == format::kMean) {
    auto* const values = static_cast<float*>(action);
    std::copy(outputs_.begin(), outputs_.end(), values);
    for (std::size_t i = 0; i < bundle_.low.size(); ++i) {
      values[i] = std::min(std::max(values[i], bundle_.low[i]), bundle_.high[i]);
    }
    return Result::kActed;
  }
  const int mask = bundle_.mask_leaf;
  return Choose(mask < 0 ? nullptr : static_cast<const std::uint8_t*>(leaves[mask]),
                static_cast<std::int64_t*>(action));
}

bool BundlePlayer::CodesAreInRange(const void* const* leaves) const {
  for (std::size_t i = 0; i < bundle_.observation.size(); ++i) {
    const BundleLeaf& leaf = bundle_.observation[i];
    if (!leaf.is_code()) continue;
    const auto* const codes = static_cast<const std::int64_t*>(leaves[i]);
    for (int k = 0; k < leaf.elements; ++k) {
      if (codes[k] < 0 || codes[k] >= leaf.counts[k]) return false;
    }
  }
  return true;
}

void BundlePlayer::Encode(const void* const* leaves) {
  const auto images_end =
      stack_.begin() + static_cast<std::ptrdiff_t>(bundle_.image_size()) * bundle_.frame_stack;
  std::copy(stack_.begin() + bundle_.image_size(), images_end, stack_.begin());
  std::copy(images_end + bundle_.beside, stack_.end(), images_end);
  float* out = stack_.data() + (images_end - stack_.begin()) - bundle_.image_size();
  for (std::size_t i = 0; i < bundle_.observation.size(); ++i) {
    if (i == 1 && bundle_.beside > 0) out = stack_.data() + stack_.size() - bundle_.beside;
    if (static_cast<int>(i) == bundle_.mask_leaf) continue;
    const BundleLeaf& leaf = bundle_.observation[i];
    if (!leaf.is_code()) {
      EncodeNumbers(leaf, leaves[i], out);
      out += leaf.elements;
      continue;
    }
    const auto* const codes = static_cast<const std::int64_t*>(leaves[i]);
    for (int k = 0; k < leaf.elements; ++k) {
      std::fill_n(out, leaf.counts[k], 0.0F);
      out[codes[k]] = 1.0F;
      out += leaf.counts[k];
    }
  }
}

const float* BundlePlayer::NetworkInput() {
  if (normalised_.empty()) return stack_.data();
  const float clip = bundle_.clip;
  const std::size_t pixels = stack_.size() - bundle_.scale.size();  // Beside numbers.
  std::copy_n(stack_.begin(), pixels, normalised_.begin());
  for (std::size_t i = 0; i < bundle_.scale.size(); ++i) {
    const float value = stack_[pixels + i] * bundle_.scale[i] + bundle_.shift[i];
    normalised_[pixels + i] = std::min(std::max(value, -clip), clip);
  }
  return normalised_.data();
}

void BundlePlayer::Run(const BundleLayer& layer, const float* input, float* output) {
  if (layer.kind == format::kConvolution) {
    RunConvolution(layer, input, output);
  } else if (layer.kind == format::kLayerNorm) {
    std::copy_n(input, layer.inputs, output);
    NormaliseRow(layer, output);
  } else {
    MultiplyRow(input, layer.inputs, layer.weight, layer.bias.data(), layer.outputs, output);
  }
  Activate(layer.activation, output, layer.outputs);
}

void BundlePlayer::RunJoin(const BundleLayer& layer, const float* network_input, const float* input,
                           float* output) const {
  const int beside = layer.outputs - layer.inputs;
  std::copy_n(network_input + stack_.size() - beside, beside,
              std::copy_n(input, layer.inputs, output));
}

// As one product: each row is what the kernel sees of the image at one place.
void BundlePlayer::RunConvolution(const BundleLayer& layer, const float* input, float* output) {
  const bool channels_first = layer.source < 0;
  const std::ptrdiff_t pixel = channels_first ? 1 : layer.channels;
  const std::ptrdiff_t line = pixel * layer.width;
  const std::ptrdiff_t channel = channels_first ? line * layer.height : 1;
  float* to = scratch_.data();
  for (int y = 0; y < layer.out_height(); ++y) {
    for (int x = 0; x < layer.out_width(); ++x) {
      const float* const corner = input + y * layer.stride * line + x * layer.stride * pixel;
      for (int c = 0; c < layer.channels; ++c) {
        for (int row = 0; row < layer.kernel; ++row) {
          const float* const from = corner + c * channel + row * line;
          for (int column = 0; column < layer.kernel; ++column) *to++ = from[column * pixel];
        }
      }
    }
  }
  const int filters = layer.filters();
  BestKernels().multiply({.a = scratch_.data(),
                          .a_row = layer.patch(),
                          .a_inner = 1,
                          .b = layer.weight.data(),
                          .b_row = Padded(filters),
                          .c = output,
                          .c_row = filters,
                          .bias = layer.bias.data(),
                          .rows = layer.out_height() * layer.out_width(),
                          .inner = layer.patch(),
                          .columns = filters});
}

// sigmoid(x) = (1 + tanh(x / 2)) / 2, so that one call squashes all four parts.
void BundlePlayer::RunLstm(const BundleLayer& layer, const float* input, float* state,
                           float* output) {
  const int size = layer.outputs;
  float* const hidden = state;
  float* const cells = state + size;
  float* const gates = scratch_.data();
  float* const squashed = gates + Padded(4 * size);
  MultiplyRow(input, layer.inputs, layer.weight, layer.bias.data(), 4 * size, gates);
  MultiplyRow(hidden, size, layer.recurrent, /*bias=*/nullptr, 4 * size, gates);
  for (int i = size; i < 4 * size; ++i) gates[i] *= 0.5F;
  BestKernels().tanh(gates, Padded(4 * size));
  for (int i = size; i < 4 * size; ++i) gates[i] = 0.5F + 0.5F * gates[i];
  for (int i = 0; i < size; ++i) {
    cells[i] = gates[2 * size + i] * cells[i] + gates[size + i] * gates[i];
    squashed[i] = cells[i];
  }
  BestKernels().tanh(squashed, Padded(size));
  for (int i = 0; i < size; ++i) hidden[i] = squashed[i] * gates[3 * size + i];
  std::copy_n(hidden, size, output);
}

void BundlePlayer::MakeOutputs() {
  if (bundle_.rule == format::kLargestValue) return MakeValues();
  std::copy_n(results_[bundle_.heads[0]].data(), outputs_.size(), outputs_.data());
}

void BundlePlayer::MakeValues() {
  const float* const given = results_[bundle_.heads[0]].data();
  std::copy_n(given, values_.size(), values_.data());
  if (bundle_.duelling) {
    const float* const value = results_[bundle_.heads[1]].data();
    for (int atom = 0; atom < bundle_.atoms; ++atom) {
      float sum = 0;
      for (int action = 0; action < bundle_.actions; ++action) {
        sum += given[action * bundle_.atoms + atom];
      }
      const float base = value[atom] - sum / static_cast<float>(bundle_.actions);
      for (int action = 0; action < bundle_.actions; ++action) {
        values_[action * bundle_.atoms + atom] = base + given[action * bundle_.atoms + atom];
      }
    }
  }
  for (int action = 0; action < bundle_.actions; ++action) {
    outputs_[action] = MeanReturn(values_.data() + action * bundle_.atoms);
  }
}

float BundlePlayer::MeanReturn(const float* atoms) const {
  const int count = bundle_.atoms;
  if (bundle_.return_model != format::kCategorical) {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += atoms[i];
    return sum / static_cast<float>(count);
  }
  const float largest = *std::max_element(atoms, atoms + count);
  float mass = 0;
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    const float weight = Exp(atoms[i] - largest);
    mass += weight;
    sum += weight * static_cast<float>(i);
  }
  const float spacing =
      count > 1 ? (bundle_.return_maximum - bundle_.return_minimum) / static_cast<float>(count - 1)
                : 0.0F;
  return bundle_.return_minimum + spacing * (sum / mass);
}

BundlePlayer::Result BundlePlayer::Choose(const std::uint8_t* mask, std::int64_t* action) const {
  Result result = Result::kActed;
  const float* value = outputs_.data();
  for (const int count : bundle_.action.counts) {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      if (mask != nullptr && mask[i] == 0) continue;
      if (best < 0 || value[i] > value[best]) best = i;
    }
    if (best < 0) result = Result::kNothingAllowed;
    *action++ = std::max(best, 0);
    value += count;
    if (mask != nullptr) mask += count;
  }
  return result;
}

}  // namespace menger
