#include "menger/networks/torch/weight_store.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstddef>

namespace menger {
namespace {

// Each array of the plan as a view of `flat`, outside any graph.
Tensors Views(const ParameterPlan& plan, const at::Tensor& flat) {
  Tensors views;
  for (const ParameterEntry& entry : plan.manifest().entries()) {
    views.push_back(flat.narrow(0, entry.offset, entry.elements()).view(entry.shape).detach());
  }
  return views;
}

std::span<float> Floats(const at::Tensor& flat) {
  return {flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

}  // namespace

struct WeightStore::State {
  DeviceTraffic& traffic;
  at::Tensor parameters;         // On the host.
  at::Tensor gradients;          // On the host.
  at::Tensor device_parameters;  // The same tensor when the device is the CPU.
  at::Tensor device_gradients;   // The same tensor when the device is the CPU.
  Tensors leaves;                // Views of device_parameters that ask for gradients.
  Tensors gradient_views;        // Of device_gradients.
  std::vector<bool> reduced;     // An array each: computed in bfloat16.
  Tensors inference;             // What ForInference returns; empty when out of date.
  bool device_is_stale = false;  // parameters was written since the last copy.
  bool gradients_come = false;   // Backward was called, and nobody has waited for it.

  explicit State(DeviceTraffic& its_traffic) : traffic(its_traffic) {}

  bool on_host() const { return device_parameters.is_same(parameters); }

  // Whoever changes parameters after this has waited for what was computed with them.
  void CopyToDevice() {
    if (!device_is_stale) return;
    device_parameters.copy_(parameters, /*non_blocking=*/true);
    device_is_stale = false;
  }

  at::Tensor Lowered(int index) const {
    return reduced[index] ? leaves[index].to(at::kBFloat16) : leaves[index];
  }
};

WeightStore::WeightStore(const ParameterPlan& plan, DeviceTraffic& traffic, bool reduced)
    : state_(std::make_unique<State>(traffic)) {
  const auto streams = traffic.Streams();
  const std::int64_t size = plan.manifest().size();
  state_->parameters = traffic.HostZeros(size, at::kFloat);
  state_->gradients = traffic.HostZeros(size, at::kFloat);
  state_->device_parameters = traffic.ToDevice(state_->parameters);
  state_->device_gradients = traffic.ToDevice(state_->gradients);
  traffic.Wait();
  state_->leaves = Views(plan, state_->device_parameters);
  for (at::Tensor& leaf : state_->leaves) leaf.requires_grad_(true);
  state_->gradient_views = Views(plan, state_->device_gradients);
  for (int i = 0; i < plan.size(); ++i) state_->reduced.push_back(reduced && plan.reducible(i));
}

WeightStore::~WeightStore() = default;

std::span<float> WeightStore::parameters() { return Floats(state_->parameters); }
std::span<const float> WeightStore::parameters() const { return Floats(state_->parameters); }

std::span<float> WeightStore::gradients() {
  if (state_->gradients_come) state_->traffic.Wait();
  state_->gradients_come = false;
  return Floats(state_->gradients);
}

void WeightStore::Changed() {
  state_->device_is_stale = !state_->on_host();
  state_->inference.clear();
}

Tensors WeightStore::ForGradient() {
  state_->CopyToDevice();
  Tensors weights;
  for (int i = 0; i < static_cast<int>(state_->leaves.size()); ++i) {
    weights.push_back(state_->Lowered(i));
  }
  return weights;
}

const Tensors& WeightStore::ForInference() {
  if (state_->inference.empty()) state_->inference = ForGradient();
  return state_->inference;
}

Tensors WeightStore::Backward(const Tensors& outputs, const Tensors& output_gradients,
                              bool of_parameters, const Tensors& inputs) {
  Tensors asked;
  if (of_parameters) asked = state_->leaves;
  asked.insert(asked.end(), inputs.begin(), inputs.end());
  if (asked.empty()) return {};
  // grad, not backward: that would add to what must first be zeroed.
  Tensors gradients =
      torch::autograd::grad(outputs, asked, output_gradients, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  Tensors of_inputs;
  const std::size_t first = gradients.size() - inputs.size();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& gradient = gradients[first + i];
    of_inputs.push_back(gradient.defined() ? gradient : at::zeros_like(inputs[i]));
  }
  gradients.resize(first);
  if (!of_parameters) return of_inputs;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor& view = state_->gradient_views[i];
    gradients[i].defined() ? view.copy_(gradients[i]) : view.zero_();
  }
  if (state_->on_host()) return of_inputs;
  state_->gradients.copy_(state_->device_gradients, /*non_blocking=*/true);
  state_->gradients_come = true;
  return of_inputs;
}

}  // namespace menger
