#include "menger/networks/torch/layers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>

#include <cmath>
#include <cstddef>

#include "menger/base/error.h"

namespace menger {
namespace {

const double kHiddenGain = std::sqrt(2.0);

class MlpTrunk final : public Trunk {
 public:
  MlpTrunk(ParameterPlan& plan, const std::string& name, const LeafSpec& observation,
           const NetworkOptions& options)
      : relu_(options.activation == "relu"), outputs_(observation.elements()) {
    const int first = plan.size();
    for (std::size_t i = 0; i < options.hidden.size(); ++i) {
      const std::int64_t width = options.hidden[i];
      if (width < 1) {
        throw InvalidArgument("network.hidden[{}] is {}; a layer needs at least 1 unit", i, width);
      }
      layers_.emplace_back(plan, fmt::format("{}/{}", name, i), outputs_, width, kHiddenGain,
                           /*bias=*/0.0);
      outputs_ = width;
    }
    plan.MarkReducible(first);
    first_weight_ = layers_.empty() ? -1 : first;
  }

  at::Tensor operator()(const Tensors& weights, const ModelInput& input) const override {
    if (layers_.empty()) return input.observations;
    at::Tensor features = input.observations.to(weights[first_weight_].scalar_type());
    for (const Dense& layer : layers_) {
      features = layer(weights, features);
      relu_ ? features.relu_()
            : features.tanh_();  // In place: a matrix product does not need its result again.
    }
    return features;
  }

  std::int64_t outputs() const override { return outputs_; }

 private:
  const bool relu_;
  std::vector<Dense> layers_;
  std::int64_t outputs_;
  int first_weight_ = -1;
};

struct ConvolutionShape {
  int channels;
  int kernel;
  int stride;
};

struct Convolution {
  int weight;
  int bias;
  int stride;
};

class ConvolutionTrunk final : public Trunk {
 public:
  ConvolutionTrunk(ParameterPlan& plan, const std::string& name, const NetworkSpec& spec,
                   std::span<const ConvolutionShape> shapes, int outputs)
      : outputs_(outputs) {
    const LeafSpec& observation = spec.observation;
    const int first = plan.size();
    std::int64_t channels = observation.shape[0];
    std::int64_t height = observation.shape[1];
    std::int64_t width = observation.shape[2];
    for (const ConvolutionShape& shape : shapes) {
      if (height < shape.kernel || width < shape.kernel) {
        throw InvalidArgument(
            "observation '{}' of shape {} is too small for {}; Atari's is (4, 84, 84)",
            observation.name, ToString(observation.shape), spec.options.kind);
      }
      const std::string part = fmt::format("{}/conv{}", name, layers_.size());
      const int weight = plan.AddOrthogonal(
          part + "/weight", {shape.channels, channels, shape.kernel, shape.kernel}, shape.channels,
          static_cast<int>(channels * shape.kernel * shape.kernel), kHiddenGain);
      const int bias = plan.AddConstant(part + "/bias", {shape.channels}, 0.0);
      layers_.push_back({weight, bias, shape.stride});
      channels = shape.channels;
      height = (height - shape.kernel) / shape.stride + 1;
      width = (width - shape.kernel) / shape.stride + 1;
    }
    if (spec.vector_elements > 0) plan.MarkReducible(first);
    linear_ = std::make_unique<Dense>(plan, name + "/linear",
                                      channels * height * width + spec.vector_elements, outputs,
                                      kHiddenGain, /*bias=*/0.0);
    if (spec.vector_elements == 0) plan.MarkReducible(first);
  }

  at::Tensor operator()(const Tensors& weights, const ModelInput& input) const override {
    // Pixels stay 0 .. 255, exact even in bfloat16: dividing the first weights instead is less
    // work. Channels-last weights make every image after them channels-last, which is what the
    // kernels are fastest at.
    at::Tensor image = input.observations.to(weights[layers_[0].weight].scalar_type());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      at::Tensor weight = weights[layers_[i].weight];
      if (i == 0) weight = weight.mul(1.0 / 255.0);
      image = at::conv2d(image, weight.contiguous(at::MemoryFormat::ChannelsLast),
                         weights[layers_[i].bias], layers_[i].stride);
      image.relu_();
    }
    at::Tensor pixels = image.permute({0, 2, 3, 1});
    pixels = pixels.reshape({pixels.size(0), -1});
    if (input.vector.defined()) pixels = at::cat({pixels.to(at::kFloat), input.vector}, 1);
    return (*linear_)(weights, pixels).relu_();
  }

  std::int64_t outputs() const override { return outputs_; }

 private:
  std::vector<Convolution> layers_;
  std::unique_ptr<Dense> linear_;
  const std::int64_t outputs_;
};

}  // namespace

Dense::Dense(ParameterPlan& plan, const std::string& name, std::int64_t inputs,
             std::int64_t outputs, double gain, double bias)
    : inputs_(inputs),
      weight_(plan.AddOrthogonal(name + "/weight", {inputs, outputs}, static_cast<int>(inputs),
                                 static_cast<int>(outputs), gain)),
      bias_(plan.AddConstant(name + "/bias", {outputs}, bias)) {}

at::Tensor Dense::operator()(const Tensors& weights, const at::Tensor& rows) const {
  return at::addmm(weights[bias_], rows, weights[weight_]);
}

std::unique_ptr<Trunk> MakeMlpTrunk(ParameterPlan& plan, const std::string& name,
                                    const LeafSpec& observation, const NetworkOptions& options) {
  if (observation.dtype != DataType::kFloat32) {
    throw InvalidArgument("network '{}' reads float32 observations, but '{}' is {}", options.kind,
                          observation.name, NameOf(observation.dtype));
  }
  if (options.activation != "tanh" && options.activation != "relu") {
    throw InvalidArgument("network.activation is '{}'; it must be 'tanh' or 'relu'",
                          options.activation);
  }
  return std::make_unique<MlpTrunk>(plan, name, observation, options);
}

std::unique_ptr<Trunk> MakeConvolutionTrunk(ParameterPlan& plan, const std::string& name,
                                            const NetworkSpec& spec) {
  static constexpr ConvolutionShape kNature[] = {{32, 8, 4}, {64, 4, 2}, {64, 3, 1}};
  static constexpr ConvolutionShape kA3c[] = {{16, 8, 4}, {32, 4, 2}};

  const LeafSpec& observation = spec.observation;
  if (observation.dtype != DataType::kUint8 || observation.shape.size() != 3) {
    throw InvalidArgument(
        "network '{}' reads uint8 images of shape (frames, height, width), but '{}' is {} {}",
        spec.options.kind, observation.name, NameOf(observation.dtype),
        ToString(observation.shape));
  }
  if (spec.options.has_convolutions("nature_cnn")) {
    return std::make_unique<ConvolutionTrunk>(plan, name, spec, kNature, 512 * spec.streams());
  }
  return std::make_unique<ConvolutionTrunk>(plan, name, spec, kA3c, 256 * spec.streams());
}

}  // namespace menger
