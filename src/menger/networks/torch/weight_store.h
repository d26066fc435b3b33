#pragma once

#include <memory>
#include <span>
#include <vector>

#include "menger/networks/torch/device_traffic.h"
#include "menger/networks/torch/layers.h"
#include "menger/networks/torch/parameter_plan.h"

namespace menger {

// The parameters and gradients of one network: flat float32 vectors on the host, and the tensors
// that a model computes with.
//
// In fp32 on the CPU those tensors are views of the flat vector; elsewhere they are copies, renewed
// when they are first needed after Changed(). One thread at a time, under the traffic's Streams().
class WeightStore {
 public:
  // `traffic` outlives it. `reduced`: what the plan calls reducible is computed in bfloat16.
  // Parameters and gradients start as zeros.
  WeightStore(const ParameterPlan& plan, DeviceTraffic& traffic, bool reduced);
  ~WeightStore();

  std::span<float> parameters();
  std::span<const float> parameters() const;
  std::span<float> gradients();  // Waits for the last Backward.
  void Changed();                // parameters() were written.

  Tensors ForGradient();          // Part of the autograd graph; a call for each forward pass.
  const Tensors& ForInference();  // Call it in inference mode.

  // Overwrites gradients(), if they are asked for, with those of `outputs`, weighted by
  // `output_gradients` (on the device), with respect to the parameters. Returns the same with
  // respect to each of `inputs` of the graph. Frees the graph.
  Tensors Backward(const Tensors& outputs, const Tensors& output_gradients, bool of_parameters,
                   const Tensors& inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace menger
