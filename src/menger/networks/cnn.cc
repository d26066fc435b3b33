#include "menger/networks/cnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "menger/base/error.h"
#include "menger/networks/batch_checks.h"
#include "menger/networks/init.h"

namespace menger {
namespace {

struct LayerShape {
  int outputs;
  int kernel;
  int stride;
};
constexpr LayerShape kNature[] = {{32, 8, 4}, {64, 4, 2}, {64, 3, 1}};
constexpr LayerShape kA3c[] = {{16, 8, 4}, {32, 4, 2}};

constexpr int kInnerBlock = 448;  // Inputs of the linear layer summed before the next columns,
constexpr int kRowBlock = 256;    // for this many rows: a block stays in the second-level cache.
constexpr int kLinearPairs = 64 * 64;  // A task of the linear layer's gradient reads so many.

}  // namespace

CnnNetwork::CnnNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads)
    : CnnNetwork(spec, std::move(threads), Unset()) {
  Initialise(random);
}

CnnNetwork::CnnNetwork(const NetworkSpec& spec, SharedWorkerPool threads, Unset)
    : spec_(spec), kernels_(BestKernels()), pool_(std::move(threads)) {
  if (spec.observation.dtype != DataType::kUint8 || spec.observation.shape.size() != 3) {
    throw InvalidArgument(
        "network '{}' reads uint8 images of shape (frames, height, width), but '{}' is {} {}",
        spec.options.kind, spec.observation.name, NameOf(spec.observation.dtype),
        ToString(spec.observation.shape));
  }
  AddLayers();
  AddHeads();
  parameters_ = AlignedFloats(manifest_.size());
  gradients_ = AlignedFloats(manifest_.size());
  MakeScratch();
}

void CnnNetwork::AddLayers() {
  const std::span<const LayerShape> shapes =
      spec_.options.has_convolutions("nature_cnn") ? std::span<const LayerShape>(kNature) : kA3c;
  const Shape& shape = spec_.observation.shape;
  int channels = static_cast<int>(shape[0]);
  int height = static_cast<int>(shape[1]);
  int width = static_cast<int>(shape[2]);
  for (const LayerShape& layer : shapes) {
    if (height < layer.kernel || width < layer.kernel) {
      throw InvalidArgument(
          "observation '{}' of shape {} is too small for {}; Atari's is (4, 84, 84)",
          spec_.observation.name, ToString(shape), spec_.options.kind);
    }
    const bool first = layers_.empty();
    const std::string name = fmt::format("trunk/conv{}", layers_.size());
    const std::int64_t weight =
        manifest_.Add(name + "/weight", {layer.outputs, channels, layer.kernel, layer.kernel});
    const std::int64_t bias = manifest_.Add(name + "/bias", {layer.outputs});
    const Convolution::Shape as_convolution = {.channels = channels,
                                               .height = height,
                                               .width = width,
                                               .outputs = layer.outputs,
                                               .kernel = layer.kernel,
                                               .stride = layer.stride,
                                               .reads_blocks = first};
    layers_.push_back(
        {Convolution(as_convolution, first ? 1.0f / 255.0f : 1.0f), weight, bias, slice_sums_});
    const Convolution& made = layers_.back().convolution;
    slice_sums_ += made.weights() + layer.outputs;
    if (first) {
      blocks_ = {.frames = channels,
                 .height = height,
                 .width = width,
                 .rows = made.out_height() + layer.kernel / layer.stride - 1,
                 .columns = made.out_width() + layer.kernel / layer.stride - 1};
    }
    channels = layer.outputs;
    height = made.out_height();
    width = made.out_width();
  }
  inputs_ = static_cast<int>(layers_.back().convolution.output_size());
  stream_features_ = spec_.options.has_convolutions("nature_cnn") ? 512 : 256;
  features_ = stream_features_ * spec_.streams();
  linear_weight_ = manifest_.Add("trunk/linear/weight", {inputs_, features_});
  linear_bias_ = manifest_.Add("trunk/linear/bias", {features_});
  linear_ = AlignedArray<Bf16Pair>(static_cast<std::ptrdiff_t>(inputs_) * features_ / 2);
  linear_back_ = AlignedArray<Bf16Pair>(linear_.size());
}

void CnnNetwork::AddHeads() {
  int columns = 0;
  int feature = 0;
  for (const HeadSpec& spec : spec_.heads) {
    Head head;
    if (!spec.constant) {
      head.weight = manifest_.Add(spec.name + "/0/weight", {stream_features_, spec.width});
      head.feature = feature;
      if (!spec_.options.shared_trunk) feature += stream_features_;
      head.column = columns;
      columns += spec.width;
    }
    head.bias = manifest_.Add(spec.name + (spec.constant ? "/bias" : "/0/bias"), {spec.width});
    heads_.push_back(head);
  }
  head_columns_ = Padded(columns);
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(features_) * head_columns_;
  head_weights_ = AlignedFloats(size + head_columns_);
  head_back_ = AlignedFloats(size);
  head_weight_gradients_ = AlignedFloats(size);
}

void CnnNetwork::MakeScratch() {
  for (Pass* const pass : {&forward_, &infer_}) {
    pass->images.resize(layers_.size());
    pass->constants.resize(heads_.size());
    pass->outputs.resize(heads_.size());
  }
  std::ptrdiff_t inputs = 0;
  std::ptrdiff_t outputs = 0;
  for (const Layer& layer : layers_) {
    inputs = std::max(inputs, layer.convolution.input_size());
    outputs = std::max(outputs, layer.convolution.output_size());
  }
  for (int thread = 0; thread < pool_.threads(); ++thread) {
    Scratch& scratch = scratch_.emplace_back();
    scratch.blocks = AlignedArray<Bf16>(layers_[0].convolution.input_size());
    for (const Layer& layer : layers_) {
      scratch.images.emplace_back(layer.convolution.output_size());
      scratch.gradients.emplace_back(2 * layer.convolution.gradient_size());
    }
    scratch.inputs = AlignedArray<Bf16Pair>(std::max<std::ptrdiff_t>(inputs, kLinearPairs));
    scratch.output_gradients = AlignedArray<Bf16Pair>(outputs);
  }
}

void CnnNetwork::Initialise(Random& random) {
  const auto fill = [&](std::int64_t weight, std::int64_t rows, std::int64_t columns, double gain) {
    FillOrthogonal(parameters_.data() + weight, static_cast<int>(rows), static_cast<int>(columns),
                   gain, random);
  };
  const double hidden_gain = std::sqrt(2.0);
  for (const Layer& layer : layers_) {
    const int outputs = layer.convolution.outputs();
    fill(layer.weight, outputs, layer.convolution.weights() / outputs, hidden_gain);
  }
  fill(linear_weight_, inputs_, features_, hidden_gain);
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const HeadSpec& spec = spec_.heads[i];
    if (heads_[i].weight >= 0) fill(heads_[i].weight, stream_features_, spec.width, spec.gain);
    std::fill_n(parameters_.data() + heads_[i].bias, spec.width, static_cast<float>(spec.bias));
  }
}

std::unique_ptr<Network> CnnNetwork::Clone(SharedWorkerPool threads) const {
  std::unique_ptr<CnnNetwork> clone(new CnnNetwork(spec_, std::move(threads), Unset()));
  std::copy_n(parameters_.data(), parameters_.size(), clone->parameters_.data());
  return clone;
}

void CnnNetwork::ParametersChanged() {
  packed_ = false;
  packed_back_ = false;
}

// Task t runs on thread t % threads, as the pool hands them out, with that thread's scratch.
void CnnNetwork::Run(int tasks, FunctionRef<void(int task, Scratch& scratch)> function) {
  const int threads = pool_.threads();
  if (threads == 1 || tasks == 1) {
    for (int task = 0; task < tasks; ++task) function(task, scratch_[0]);
  } else {
    pool_.Run(tasks, [&](int task) { function(task, scratch_[task % threads]); });
  }
}

void CnnNetwork::Pack() {
  if (packed_) return;
  const int panels = features_ / kPanelColumns;
  const int layers = static_cast<int>(layers_.size());
  Run(layers + panels, [&](int task, Scratch&) {
    if (task < layers) {
      layers_[task].convolution.SetWeights(parameters_.data() + layers_[task].weight);
      return;
    }
    const int panel = task - layers;
    PackPanels(parameters_.data() + linear_weight_ + panel * kPanelColumns, features_, inputs_,
               kPanelColumns,
               linear_.data() + static_cast<std::ptrdiff_t>(panel) * inputs_ / 2 * kPanelColumns);
  });
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    if (head.weight < 0) continue;
    const int width = spec_.heads[i].width;
    const auto place = [&](int row) {
      return head_weights_.data() + row * head_columns_ + head.column;
    };
    for (int feature = 0; feature < stream_features_; ++feature) {
      std::copy_n(parameters_.data() + head.weight + feature * width, width,
                  place(head.feature + feature));
    }
    std::copy_n(parameters_.data() + head.bias, width, place(features_));
  }
  packed_ = true;
}

void CnnNetwork::PackBack() {
  if (packed_back_) return;
  const int panels = (inputs_ + kPanelColumns - 1) / kPanelColumns;
  Run(panels, [&](int panel, Scratch&) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(panel) * kPanelColumns * features_;
    PackTransposedPanel(parameters_.data() + linear_weight_ + start,
                        std::min(kPanelColumns, inputs_ - panel * kPanelColumns), features_,
                        linear_back_.data() + start / 2);
  });
  for (int row = 0; row < features_; ++row) {
    for (int column = 0; column < head_columns_; ++column) {
      head_back_.data()[column * features_ + row] =
          head_weights_.data()[row * head_columns_ + column];
    }
  }
  packed_back_ = true;
}

std::span<const Matrix> CnnNetwork::Forward(const NetworkInput& input) {
  RunForward(input, /*keep=*/true, forward_);
  forward_is_kept_ = true;
  return forward_.outputs;
}

std::span<const Matrix> CnnNetwork::Infer(const NetworkInput& input) {
  return RunForward(input, /*keep=*/false, infer_);
}

std::span<const Matrix> CnnNetwork::RunForward(const NetworkInput& input, bool keep, Pass& pass) {
  if (input.rows < 1) throw InvalidArgument("a batch of {} rows; at least 1 is needed", input.rows);
  RefuseVector(input);
  Pack();
  pass.observations = static_cast<const std::uint8_t*>(input.observations);
  pass.rows = input.rows;
  for (std::size_t i = keep ? 0 : layers_.size() - 1; i < layers_.size(); ++i) {
    pass.images[i].Reserve(layers_[i].convolution.output_size() * input.rows);
  }
  pass.features.Reserve(static_cast<std::ptrdiff_t>(input.rows) * features_);
  pass.heads.Reserve(static_cast<std::ptrdiff_t>(input.rows) * head_columns_);
  Run(input.rows,
      [&](int image, Scratch& scratch) { RunConvolutions(pass, keep, image, scratch); });
  const int panels = features_ / kPanelColumns;
  const int parts = std::min(pool_.threads(), panels);
  Run(parts, [&](int part, Scratch&) {
    RunLinear(pass, panels * part / parts * kPanelColumns,
              panels * (part + 1) / parts * kPanelColumns);
  });
  Run((input.rows + kHeadRows - 1) / kHeadRows, [&](int task, Scratch&) {
    RunHeads(pass, {task * kHeadRows, std::min((task + 1) * kHeadRows, input.rows)});
  });
  PublishOutputs(pass);
  return pass.outputs;
}

void CnnNetwork::RunConvolutions(Pass& pass, bool keep, int image, Scratch& scratch) const {
  BlocksOfFrames(blocks_, pass.observations + image * spec_.observation.elements(),
                 scratch.blocks.data());
  const Bf16* input = scratch.blocks.data();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Convolution& convolution = layers_[i].convolution;
    Bf16* const output = keep || i + 1 == layers_.size()
                             ? pass.images[i].data() + image * convolution.output_size()
                             : scratch.images[i].data();
    convolution.Forward(input, parameters_.data() + layers_[i].bias, output);
    input = output;
  }
}

// In blocks: the weights pass by once for many rows, and these stay near.
void CnnNetwork::RunLinear(Pass& pass, int begin, int end) const {
  const std::ptrdiff_t panel = static_cast<std::ptrdiff_t>(inputs_) / 2 * kPanelColumns;
  for (int row = 0; row < pass.rows; row += kRowBlock) {
    for (int input = 0; input < inputs_; input += kInnerBlock) {
      MultiplyFloat(
          {.a = pass.images.back().data() + static_cast<std::ptrdiff_t>(row) * inputs_ + input,
           .a_row = inputs_,
           .b = linear_.data() + begin / kPanelColumns * panel +
                static_cast<std::ptrdiff_t>(input) / 2 * kPanelColumns,
           .b_panel = panel,
           .rows = std::min(kRowBlock, pass.rows - row),
           .inner = std::min(kInnerBlock, inputs_ - input),
           .columns = end - begin},
          /*accumulate=*/input > 0,
          pass.features.data() + static_cast<std::ptrdiff_t>(row) * features_ + begin, features_);
    }
  }
}

void CnnNetwork::RunHeads(Pass& pass, Rows rows) const {
  float* const features =
      pass.features.data() + static_cast<std::ptrdiff_t>(rows.begin) * features_;
  for (int row = 0; row < rows.count(); ++row) {
    AddBiasRelu(parameters_.data() + linear_bias_, features + row * features_, features_);
  }
  kernels_.multiply(
      {.a = features,
       .a_row = features_,
       .a_inner = 1,
       .b = head_weights_.data(),
       .b_row = head_columns_,
       .c = pass.heads.data() + static_cast<std::ptrdiff_t>(rows.begin) * head_columns_,
       .c_row = head_columns_,
       .bias = head_weights_.data() + static_cast<std::ptrdiff_t>(features_) * head_columns_,
       .rows = rows.count(),
       .inner = features_,
       .columns = head_columns_});
}

void CnnNetwork::PublishOutputs(Pass& pass) {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const int width = spec_.heads[i].width;
    if (heads_[i].weight >= 0) {
      pass.outputs[i] = {pass.heads.data() + heads_[i].column, pass.rows, width, head_columns_};
      continue;
    }
    AlignedFloats& constant = pass.constants[i];
    constant.Reserve(static_cast<std::ptrdiff_t>(pass.rows) * width);
    for (int row = 0; row < pass.rows; ++row) {
      std::copy_n(parameters_.data() + heads_[i].bias, width, constant.data() + row * width);
    }
    pass.outputs[i] = {constant.data(), pass.rows, width, width};
  }
}

}  // namespace menger
