#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/networks/network.h"
#include "menger/networks/torch/parameter_plan.h"

namespace at {
class Tensor;
}

namespace menger {

// One tensor an entry of a ParameterPlan, in its order.
using Tensors = std::vector<at::Tensor>;

// The parts of a model. Each lays out its arrays when it is made and afterwards is a pure function
// of the weights: immutable, and safe from any thread. Values are computed in the precision of the
// layer's own weights.

// inputs x weight + bias. The weight is stored [inputs, outputs].
class Dense {
 public:
  // Arrays "<name>/weight" and "<name>/bias".
  Dense(ParameterPlan& plan, const std::string& name, std::int64_t inputs, std::int64_t outputs,
        double gain, double bias);

  at::Tensor operator()(const Tensors& weights, const at::Tensor& rows) const;
  std::int64_t inputs() const { return inputs_; }

 private:
  std::int64_t inputs_ = 0;
  int weight_ = 0;
  int bias_ = 0;
};

// What a model reads: observations, and float32 [rows, vector elements] beside them, undefined
// where a model has none.
struct ModelInput {
  const at::Tensor& observations;
  const at::Tensor& vector;
};

// From observations to features: [rows, outputs()].
class Trunk {
 public:
  virtual ~Trunk() = default;
  virtual at::Tensor operator()(const Tensors& weights, const ModelInput& input) const = 0;
  virtual std::int64_t outputs() const = 0;
};

// Hidden layers "<name>/0", "<name>/1", ... over float32 [rows, elements]. Throws InvalidArgument
// for other observations, for an activation that is neither tanh nor relu, and for a width below 1.
// No layers at all is allowed: features = observations.
std::unique_ptr<Trunk> MakeMlpTrunk(ParameterPlan& plan, const std::string& name,
                                    const LeafSpec& observation, const NetworkOptions& options);

// The convolutions "<name>/conv0", ... and the dense layer "<name>/linear" of nature_cnn (Mnih et
// al. 2015) or a3c_cnn (Mnih et al. 2016), relu after each, over uint8 [rows, frames, height,
// width] taken as 0 .. 1. Convolution weights are stored [outputs, inputs, height, width]; the
// dense layer reads the last image pixel by pixel, all channels of one after the other, then the
// vector beside the image if there is one, and is spec.streams() times as wide as the paper's.
// With a vector that layer stays in fp32 whatever the precision: bfloat16 would leave three digits
// of what somebody measured. Throws InvalidArgument for other observations and for images that are
// too small.
std::unique_ptr<Trunk> MakeConvolutionTrunk(ParameterPlan& plan, const std::string& name,
                                            const NetworkSpec& spec);

// One layer of long short-term memory cells. Weights "<name>/input_weight" [inputs, 4 size],
// "<name>/hidden_weight" [size, 4 size] and "<name>/bias" [4 size] hold the candidate and the
// input, forget and output gates, in this order.
class LstmLayer {
 public:
  // Throws InvalidArgument unless size >= 1.
  LstmLayer(ParameterPlan& plan, const std::string& name, std::int64_t inputs, std::int64_t size);

  std::int64_t size() const { return size_; }

  // `rows` [steps * sequences, inputs], step-major; `state` [sequences, 2 size], hidden values then
  // cells. `is_first` is on the host, [steps * sequences] or empty (nowhere): before each step the
  // marked sequences forget everything. Returns the hidden values [steps * sequences, size] and the
  // state after the last step.
  std::pair<at::Tensor, at::Tensor> Run(const Tensors& weights, const at::Tensor& rows,
                                        const at::Tensor& state,
                                        std::span<const std::uint8_t> is_first) const;

 private:
  std::int64_t size_ = 0;
  int input_weight_ = 0;
  int hidden_weight_ = 0;
  int bias_ = 0;
};

}  // namespace menger
