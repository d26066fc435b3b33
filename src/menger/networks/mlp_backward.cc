// Gradients of MlpNetwork.
#include <algorithm>

#include "menger/base/error.h"
#include "menger/networks/batch_checks.h"
#include "menger/networks/mlp.h"

namespace menger {
namespace {

constexpr int kSummedRows = 256;  // Batch rows whose products are summed before the next weights.

}  // namespace

// Those of the first layers too if the gradient of the inputs is asked for.
void MlpNetwork::PackTransposed(bool inputs) {
  const auto packs = [&](const Layer& layer) {
    return layer.source < 0 ? inputs && !input_transposed_valid_ : !transposed_valid_;
  };
  if (std::ranges::none_of(layers_, packs)) return;
  const int parts = WorthThreads(forward_rows_) ? pool_.threads() : 1;
  pool_.Run(parts, [&](int part) {
    for (const Layer& layer : layers_) {
      if (!packs(layer)) continue;
      const int size = Padded((layer.inputs + parts - 1) / parts);
      const int begin = std::min(part * size, layer.inputs);
      const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(begin) * layer.outputs;
      kernels_.transpose({.from = parameters_.data() + layer.weight + from,
                          .from_row = layer.outputs,
                          .to = packed_.data() + layer.transposed + begin,
                          .to_row = Padded(layer.inputs),
                          .rows = std::min(size, layer.inputs - begin),
                          .columns = layer.outputs});
    }
  });
  transposed_valid_ = true;
  input_transposed_valid_ = input_transposed_valid_ || inputs;
}

void MlpNetwork::CheckShapes(std::span<const Matrix> output_gradients) const {
  if (!forward_is_kept_) {
    throw FailedPrecondition(
        "Backward needs a Forward of its own before it; one Forward serves one Backward");
  }
  if (output_gradients.size() != spec_.heads.size()) {
    throw InvalidArgument("{} output gradients for a network of {} heads", output_gradients.size(),
                          spec_.heads.size());
  }
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    CheckGradient(spec_.heads[head], output_gradients[head], forward_rows_);
  }
}

void MlpNetwork::Backward(std::span<const Matrix> output_gradients,
                          const GradientRequest& request) {
  CheckShapes(output_gradients);
  RefuseVectorGradient(request);
  forward_is_kept_ = false;
  // Of layers that the last Forward left out.
  if (request.parameters && forward_branches_ < branches_) {
    std::ranges::fill(gradients_.span(), 0.0F);
  }
  PackTransposed(request.inputs != nullptr);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    deltas_[i].Reserve(static_cast<std::ptrdiff_t>(forward_rows_) * Padded(layers_[i].outputs));
  }
  for (LayerNorm& norm : norms_) norm.ReserveGradients(forward_rows_);
  if (request.inputs == nullptr && request.parameters && SplitsByBranch(forward_rows_, branches_) &&
      forward_branches_ == branches_) {
    pool_.Run(branches_, [&](int branch) {
      for (int begin = 0; begin < forward_rows_; begin += kTileRows) {
        BackwardTile(output_gradients, branch, {begin, std::min(begin + kTileRows, forward_rows_)});
      }
      for (const GradientTask& task : gradient_tasks_) {
        if (layers_[task.layer].branch == branch) WeightGradient(task);
      }
    });
    ConstantGradient(output_gradients);
    return;
  }
  RunTiles(forward_rows_, [&](int, Rows rows) {
    BackwardTile(output_gradients, kAllBranches, rows);
    if (request.inputs != nullptr) InputGradientTile(request.inputs, rows);
  });
  if (request.parameters) ParameterGradient(output_gradients);
}

// Each piece of the weights sums over all rows by itself: no partial sums, no dependence on the
// threads.
void MlpNetwork::ParameterGradient(std::span<const Matrix> output_gradients) {
  if (WorthThreads(forward_rows_)) {
    pool_.Run(static_cast<int>(gradient_tasks_.size()),
              [&](int task) { WeightGradient(gradient_tasks_[task]); });
  } else {
    for (const GradientTask& task : gradient_tasks_) WeightGradient(task);
  }
  ConstantGradient(output_gradients);
}

void MlpNetwork::ConstantGradient(std::span<const Matrix> output_gradients) {
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    if (constant_bias_[head] < 0) continue;
    float* const gradient = gradients_.data() + constant_bias_[head];
    std::fill_n(gradient, spec_.heads[head].width, 0.0f);
    for (int row = 0; row < forward_rows_; ++row) {
      const float* const from = output_gradients[head].row(row);
      for (int i = 0; i < spec_.heads[head].width; ++i) gradient[i] += from[i];
    }
  }
}

// From deltas_ of the layers that read the observation, the last of them first.
void MlpNetwork::InputGradientTile(float* gradient, Rows rows) {
  bool adds = false;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    if (layer.source >= 0 || Skips(layer, kAllBranches)) continue;
    const std::ptrdiff_t width = Padded(layer.outputs);
    kernels_.multiply({.a = deltas_[i].data() + rows.begin * width,
                       .a_row = width,
                       .a_inner = 1,
                       .b = packed_.data() + layer.transposed,
                       .b_row = Padded(layer.inputs),
                       .c = gradient + static_cast<std::ptrdiff_t>(rows.begin) * layer.inputs,
                       .c_row = layer.inputs,
                       .accumulate = adds,
                       .rows = rows.count(),
                       .inner = layer.outputs,
                       .columns = layer.inputs});
    adds = true;
  }
}

// Where layers that read this one leave the gradient of what it gives, from the row on.
float* MlpNetwork::OutputGradient(int layer, int row) {
  const int norm = layers_[layer].norm;
  return norm < 0 ? deltas_[layer].data() +
                        static_cast<std::ptrdiff_t>(row) * Padded(layers_[layer].outputs)
                  : norms_[norm].output_gradients(row);
}

// deltas_ of the rows: the gradient of what each layer gives before its normalisation and its
// activation function.
void MlpNetwork::BackwardTile(std::span<const Matrix> output_gradients, int branch, Rows rows) {
  const bool tanh = spec_.options.activation == "tanh";
  const auto activation_gradient = tanh ? kernels_.tanh_gradient : kernels_.relu_gradient;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    if (Skips(layer, branch)) continue;
    const std::ptrdiff_t width = Padded(layer.outputs);
    float* const delta = deltas_[i].data() + rows.begin * width;
    if (layer.head >= 0) {
      for (int row = 0; row < rows.count(); ++row) {
        float* const to = delta + row * width;  // Its padding was zeroed when it was allocated.
        std::copy_n(output_gradients[layer.head].row(rows.begin + row), layer.outputs, to);
      }
    } else {
      activation_gradient(activations_[i].data() + rows.begin * width,
                          OutputGradient(static_cast<int>(i), rows.begin), rows.count() * width);
      if (layer.norm >= 0) norms_[layer.norm].Backward(rows.begin, rows.count(), delta);
    }
    if (layer.source < 0) continue;
    const std::ptrdiff_t source_width = Padded(layer.inputs);
    kernels_.multiply({.a = delta,
                       .a_row = width,
                       .a_inner = 1,
                       .b = packed_.data() + layer.transposed,
                       .b_row = source_width,
                       .c = OutputGradient(layer.source, rows.begin),
                       .c_row = source_width,
                       .accumulate = layer.adds_to_source,
                       .rows = rows.count(),
                       .inner = layer.outputs,
                       .columns = static_cast<int>(source_width)});
  }
}

void MlpNetwork::WeightGradient(const GradientTask& task) {
  const Layer& layer = layers_[task.layer];
  if (Skips(layer, kAllBranches)) return;
  const bool first = layer.source < 0;
  const std::ptrdiff_t stride = first ? layer.inputs : Padded(layer.inputs);
  const float* const input = first ? observations_ : activations_[layer.source].data();
  const int width = Padded(layer.outputs);
  const float one = 1.0f;
  if (layer.norm >= 0 && task.begin == 0) {
    norms_[layer.norm].ParameterGradient(forward_rows_, gradients_.data());
  }
  for (int begin = 0; begin < forward_rows_; begin += kSummedRows) {
    MatrixProduct product{
        .a = input + begin * stride + task.begin,
        .a_row = 1,
        .a_inner = stride,
        .b = deltas_[task.layer].data() + static_cast<std::ptrdiff_t>(begin) * width,
        .b_row = width,
        .c = gradients_.data() + layer.weight +
             static_cast<std::ptrdiff_t>(task.begin) * layer.outputs,
        .c_row = layer.outputs,
        .accumulate = begin > 0,
        .rows = task.end - task.begin,
        .inner = std::min(kSummedRows, forward_rows_ - begin),
        .columns = layer.outputs};
    kernels_.multiply(product);
    if (task.begin > 0) continue;
    product.a = &one;  // The bias is a weight whose input is always 1.
    product.a_inner = 0;
    product.c = gradients_.data() + layer.bias;
    product.rows = 1;
    kernels_.multiply(product);
  }
}

}  // namespace menger
