#include "menger/networks/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "menger/base/error.h"
#include "menger/base/memory_need.h"
#include "menger/networks/batch_checks.h"
#include "menger/networks/init.h"

namespace menger {
namespace {

constexpr int kGradientRows = 12;      // Weight rows of one GradientTask.
constexpr double kWorthThreads = 2e5;  // Multiply-adds below which waking threads costs more.

}  // namespace

MlpNetwork::MlpNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads,
                       const Kernels& kernels)
    : MlpNetwork(spec, std::move(threads), kernels, Unset()) {
  Initialise(random);
}

MlpNetwork::MlpNetwork(const NetworkSpec& spec, SharedWorkerPool threads, const Kernels& kernels,
                       Unset)
    : spec_(spec),
      kernels_(kernels),
      observation_size_(static_cast<int>(spec.observation.elements())),
      pool_(std::move(threads)) {
  if (spec.observation.dtype != DataType::kFloat32) {
    throw InvalidArgument(
        "network.kind = \"mlp\" reads float32 vectors, but '{}' is {} {}; use nature_cnn for "
        "images",
        spec.observation.name, NameOf(spec.observation.dtype), ToString(spec.observation.shape));
  }
  const std::ptrdiff_t packed = AddLayers();
  AddGradientTasks();
  Allocate(packed);
  activations_.resize(layers_.size());
  deltas_.resize(layers_.size());
  inferred_.resize(layers_.size());
  constants_.resize(spec.heads.size());
  forward_outputs_.resize(spec.heads.size());
  infer_outputs_.resize(spec.heads.size());
  for (int thread = 0; thread < pool_.threads(); ++thread) {
    scratch_.emplace_back(static_cast<std::ptrdiff_t>(2) * kTileRows * widest_);
  }
}

void MlpNetwork::Allocate(std::ptrdiff_t packed) {
  const double bytes =
      sizeof(float) * (2.0 * static_cast<double>(manifest_.size()) + static_cast<double>(packed));
  const auto purpose = [this] {
    return fmt::format("a network of {} parameters (network.hidden = [{}])", manifest_.size(),
                       fmt::join(spec_.options.hidden, ", "));
  };
  RequireMemory(bytes, purpose());
  WithMemoryFor([&] { return fmt::format("{}, {}", purpose(), MemoryText(bytes)); },
                [&] {
                  parameters_ = AlignedFloats(manifest_.size());
                  gradients_ = AlignedFloats(manifest_.size());
                  packed_ = AlignedFloats(packed);
                });
}

std::ptrdiff_t MlpNetwork::AddLayers() {
  const auto add_hidden = [this](const std::string& name) {
    int source = -1;
    for (std::size_t i = 0; i < spec_.options.hidden.size(); ++i) {
      source = AddLayer(name + "/" + std::to_string(i), source,
                        static_cast<int>(spec_.options.hidden[i]), /*hidden=*/true);
    }
    return source;
  };
  const int trunk = spec_.options.shared_trunk ? add_hidden("trunk") : -1;
  int separate = 0;  // Heads with layers, so far.
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    const HeadSpec& spec = spec_.heads[head];
    constant_bias_.push_back(-1);
    if (spec.constant) {
      constant_bias_.back() = manifest_.Add(spec.name + "/bias", {spec.width});
      continue;
    }
    const int source = spec_.options.shared_trunk ? trunk : add_hidden(spec.name);
    const std::size_t own = spec_.options.shared_trunk ? 0 : spec_.options.hidden.size();
    const int last =
        AddLayer(spec.name + "/" + std::to_string(own), source, spec.width, /*hidden=*/false);
    layers_[last].head = static_cast<int>(head);
    for (int i = last; i >= 0 && !spec_.options.shared_trunk; i = layers_[i].source) {
      layers_[i].branch = separate;
    }
    ++separate;
  }
  if (!spec_.options.shared_trunk) branches_ = std::max(1, separate);
  // Backward goes through the layers from last to first.
  std::vector<bool> has_gradient(layers_.size() + 1);  // The observation's is the last.
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::size_t source = layers_[i].source < 0 ? layers_.size() : layers_[i].source;
    layers_[i].adds_to_source = has_gradient[source];
    has_gradient[source] = true;
  }
  std::ptrdiff_t size = 0;
  for (Layer& layer : layers_) {
    const std::ptrdiff_t packed =
        static_cast<std::ptrdiff_t>(layer.inputs + 1) * Padded(layer.outputs);
    layer.packed = size;
    if (layer.padded()) size += packed;
    layer.transposed = size;
    const std::ptrdiff_t transposed =
        static_cast<std::ptrdiff_t>(layer.outputs) * Padded(layer.inputs);
    size += transposed;
    work_ += static_cast<double>(packed + transposed);
    widest_ = std::max(widest_, Padded(layer.outputs));
  }
  return size;
}

int MlpNetwork::AddLayer(const std::string& name, int source, int outputs, bool hidden) {
  Layer layer;
  layer.source = source;
  layer.inputs = source < 0 ? observation_size_ : layers_[source].outputs;
  layer.outputs = outputs;
  layer.hidden = hidden;
  layer.depth = source < 0 ? 0 : layers_[source].depth + 1;
  layer.weight = manifest_.Add(name + "/weight", {layer.inputs, layer.outputs});
  layer.bias = manifest_.Add(name + "/bias", {layer.outputs});
  if (hidden && spec_.options.layer_norm) {
    layer.norm = static_cast<int>(norms_.size());
    norms_.emplace_back(manifest_, name, outputs, kernels_);
  }
  layers_.push_back(layer);
  return static_cast<int>(layers_.size()) - 1;
}

void MlpNetwork::AddGradientTasks() {
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    for (int begin = 0; begin < layers_[i].inputs; begin += kGradientRows) {
      gradient_tasks_.push_back({i, begin, std::min(begin + kGradientRows, layers_[i].inputs)});
    }
  }
  // Task t runs on thread t % threads: dealt out from the dearest to the cheapest, all get alike.
  const auto cost = [this](const GradientTask& task) {
    return (task.end - task.begin) * Padded(layers_[task.layer].outputs);
  };
  std::stable_sort(gradient_tasks_.begin(), gradient_tasks_.end(),
                   [&](const GradientTask& a, const GradientTask& b) { return cost(a) > cost(b); });
}

void MlpNetwork::Initialise(Random& random) {
  for (const Layer& layer : layers_) {
    const double gain = layer.head < 0 ? std::sqrt(2.0) : spec_.heads[layer.head].gain;
    FillOrthogonal(parameters_.data() + layer.weight, layer.inputs, layer.outputs, gain, random);
    if (layer.head >= 0) {
      std::fill_n(parameters_.data() + layer.bias, layer.outputs,
                  static_cast<float>(spec_.heads[layer.head].bias));
    }
  }
  for (const LayerNorm& norm : norms_) norm.Initialise(parameters_.data());
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    if (constant_bias_[head] < 0) continue;
    std::fill_n(parameters_.data() + constant_bias_[head], spec_.heads[head].width,
                static_cast<float>(spec_.heads[head].bias));
  }
}

std::unique_ptr<Network> MlpNetwork::Clone(SharedWorkerPool threads) const {
  std::unique_ptr<MlpNetwork> clone(new MlpNetwork(spec_, std::move(threads), kernels_, Unset()));
  std::copy_n(parameters_.data(), parameters_.size(), clone->parameters_.data());
  return clone;
}

void MlpNetwork::ParametersChanged() {
  packed_valid_ = false;
  transposed_valid_ = false;
  input_transposed_valid_ = false;
  constant_rows_ = 0;
}

// Pads the rows of weight matrices that need it; the padding itself was zeroed once and stays so.
void MlpNetwork::Pack() {
  if (packed_valid_) return;
  for (const Layer& layer : layers_) {
    if (!layer.padded()) continue;
    const float* weight = parameters_.data() + layer.weight;
    float* packed = packed_.data() + layer.packed;
    const std::size_t bytes = static_cast<std::size_t>(layer.outputs) * sizeof(float);
    for (int i = 0; i < layer.inputs; ++i) {
      std::memcpy(packed, weight, bytes);
      packed += Padded(layer.outputs);
      weight += layer.outputs;
    }
    std::memcpy(packed, parameters_.data() + layer.bias, bytes);
  }
  for (LayerNorm& norm : norms_) norm.Pack(parameters_.data());
  packed_valid_ = true;
}

const float* MlpNetwork::WeightOf(const Layer& layer) const {
  return layer.padded() ? packed_.data() + layer.packed : parameters_.data() + layer.weight;
}

void MlpNetwork::FillConstantHeads(int rows) {
  if (rows <= constant_rows_) return;
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    if (constant_bias_[head] < 0) continue;
    const int width = spec_.heads[head].width;
    constants_[head].Reserve(static_cast<std::ptrdiff_t>(rows) * width);
    for (int row = 0; row < rows; ++row) {
      std::copy_n(parameters_.data() + constant_bias_[head], width,
                  constants_[head].data() + static_cast<std::ptrdiff_t>(row) * width);
    }
  }
  constant_rows_ = rows;
}

bool MlpNetwork::WorthThreads(int rows) const { return work_ * rows >= kWorthThreads; }

// Separate networks for separate threads: nothing that one core writes is read by another, which
// cutting by rows cannot have (each piece of a weight's gradient reads every row).
bool MlpNetwork::SplitsByBranch(int rows, int branches) const {
  return pool_.threads() > 1 && branches >= pool_.threads() && WorthThreads(rows);
}

// Heads that nobody asks for are left out where they have layers of their own.
int MlpNetwork::BranchesFor(const NetworkInput& input) const {
  if (input.heads == 0 || spec_.options.shared_trunk) return branches_;
  int branches = 0;
  for (int head = 0; head < input.heads; ++head) branches += spec_.heads[head].constant ? 0 : 1;
  return std::max(1, branches);
}

// Of a pass over one branch, or over all that the last Forward computed.
bool MlpNetwork::Skips(const Layer& layer, int branch) const {
  return branch == kAllBranches ? layer.branch >= forward_branches_ : layer.branch != branch;
}

// No result depends on how the rows are cut, so the cut may depend on the number of threads.
void MlpNetwork::RunTiles(int rows, FunctionRef<void(int, Rows)> function) {
  const int threads = WorthThreads(rows) ? pool_.threads() : 1;
  const int share = Padded((rows + threads - 1) / threads);
  const int tile = std::min(kTileRows, share);
  const auto run = [&](int task) {
    const int begin = task * tile;
    function(task % threads, {begin, std::min(begin + tile, rows)});
  };
  const int tiles = (rows + tile - 1) / tile;
  if (threads == 1) {
    for (int task = 0; task < tiles; ++task) run(task);
  } else {
    pool_.Run(tiles, run);
  }
}

// output [rows, padded outputs], dense.
void MlpNetwork::Multiply(const Layer& layer, const float* input, std::ptrdiff_t stride,
                          float* output, int rows) const {
  const int width = Padded(layer.outputs);
  const float* const weight = WeightOf(layer);
  kernels_.multiply({.a = input,
                     .a_row = stride,
                     .a_inner = 1,
                     .b = weight,
                     .b_row = width,
                     .c = output,
                     .c_row = width,
                     .bias = weight + static_cast<std::ptrdiff_t>(layer.inputs) * width,
                     .rows = rows,
                     .inner = layer.inputs,
                     .columns = width});
}

void MlpNetwork::Activate(const Layer& layer, float* output, int rows) const {
  if (!layer.hidden) return;
  const auto activate = spec_.options.activation == "tanh" ? kernels_.tanh : kernels_.relu;
  activate(output, static_cast<std::ptrdiff_t>(rows) * Padded(layer.outputs));
}

void MlpNetwork::CheckInput(const NetworkInput& input) const {
  const auto heads = static_cast<int>(spec_.heads.size());
  if (input.heads < 0 || input.heads > heads) {
    throw InvalidArgument("{} heads are asked for; the network has {}", input.heads, heads);
  }
  if (input.rows < 1) throw InvalidArgument("a batch of {} rows; at least 1 is needed", input.rows);
  RefuseVector(input);
}

void MlpNetwork::ForwardTile(int branch, Rows rows) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (Skips(layer, branch)) continue;
    const std::ptrdiff_t stride =
        layer.source < 0 ? layer.inputs : static_cast<std::ptrdiff_t>(Padded(layer.inputs));
    const float* const from = layer.source < 0 ? observations_ : activations_[layer.source].data();
    float* const to =
        activations_[i].data() + static_cast<std::ptrdiff_t>(rows.begin) * Padded(layer.outputs);
    LayerNorm* const norm = layer.norm < 0 ? nullptr : &norms_[layer.norm];
    float* const dense = norm == nullptr ? to : norm->inputs(rows.begin);
    Multiply(layer, from + rows.begin * stride, stride, dense, rows.count());
    if (norm != nullptr) norm->Forward(rows.begin, rows.count(), to);
    Activate(layer, to, rows.count());
  }
}

std::span<const Matrix> MlpNetwork::Forward(const NetworkInput& input) {
  CheckInput(input);
  Pack();
  FillConstantHeads(input.rows);
  observations_ = static_cast<const float*>(input.observations);
  forward_rows_ = input.rows;
  forward_is_kept_ = true;
  forward_branches_ = BranchesFor(input);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    activations_[i].Reserve(static_cast<std::ptrdiff_t>(input.rows) * Padded(layers_[i].outputs));
  }
  for (LayerNorm& norm : norms_) norm.Reserve(input.rows);
  if (SplitsByBranch(input.rows, forward_branches_)) {
    pool_.Run(forward_branches_, [&](int branch) {
      for (int begin = 0; begin < input.rows; begin += kTileRows) {
        ForwardTile(branch, {begin, std::min(begin + kTileRows, input.rows)});
      }
    });
  } else {
    RunTiles(input.rows, [&](int, Rows rows) { ForwardTile(kAllBranches, rows); });
  }
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    const int width = spec_.heads[head].width;
    forward_outputs_[head] = {constants_[head].data(), input.rows, width, width};
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].head < 0) continue;
    float* const output = Skips(layers_[i], kAllBranches) ? nullptr : activations_[i].data();
    forward_outputs_[layers_[i].head] = {output, input.rows, layers_[i].outputs,
                                         Padded(layers_[i].outputs)};
  }
  return forward_outputs_;
}

// Hidden layers take turns on two halves of the scratch: a layer's input is always one level up.
void MlpNetwork::InferTile(const float* observations, float* scratch, Rows rows) {
  const auto half = [&](int depth) {
    return scratch + static_cast<std::ptrdiff_t>(depth % 2) * kTileRows * widest_;
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const bool first = layer.source < 0;
    const std::ptrdiff_t stride = first ? layer.inputs : Padded(layer.inputs);
    const float* const from = first ? observations + rows.begin * stride : half(layer.depth - 1);
    float* const to =
        layer.head < 0
            ? half(layer.depth)
            : inferred_[i].data() + static_cast<std::ptrdiff_t>(rows.begin) * Padded(layer.outputs);
    Multiply(layer, from, stride, to, rows.count());
    if (layer.norm >= 0) norms_[layer.norm].Apply(to, rows.count());
    Activate(layer, to, rows.count());
  }
}

std::span<const Matrix> MlpNetwork::Infer(const NetworkInput& input) {
  CheckInput(input);
  Pack();
  FillConstantHeads(input.rows);
  for (std::size_t head = 0; head < spec_.heads.size(); ++head) {
    const int width = spec_.heads[head].width;
    infer_outputs_[head] = {constants_[head].data(), input.rows, width, width};
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].head < 0) continue;
    const int stride = Padded(layers_[i].outputs);
    inferred_[i].Reserve(static_cast<std::ptrdiff_t>(input.rows) * stride);
    infer_outputs_[layers_[i].head] = {inferred_[i].data(), input.rows, layers_[i].outputs, stride};
  }
  RunTiles(input.rows, [&](int thread, Rows rows) {
    InferTile(static_cast<const float*>(input.observations), scratch_[thread].data(), rows);
  });
  return infer_outputs_;
}

}  // namespace menger
