#include "menger/networks/torch/torch_network.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Device.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/cuda.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "menger/base/error.h"
#include "menger/networks/batch_checks.h"
#include "menger/networks/torch/device_traffic.h"
#include "menger/networks/torch/model.h"
#include "menger/networks/torch/weight_store.h"

namespace menger {
namespace {

// Runs `body` so that nothing but menger::Error leaves it.
template <typename Body>
auto Translated(Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    throw Unavailable("the device is out of memory: {}", error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw Internal("libtorch: {}", error.what_without_backtrace());
  } catch (...) {
    throw TranslateCurrentException();
  }
}

// libtorch keeps a thread count for each thread, and a new thread starts with all cores.
void UseThreads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

c10::Device ParseDevice(const std::string& name) {
  std::optional<c10::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    // Not a device's name: reported with the names of kinds that are not supported.
  }
  if (!device || !(device->is_cpu() || device->is_cuda())) {
    throw InvalidArgument("device is '{}'; it must be 'cpu', 'cuda' or 'cuda:N'", name);
  }
  if (device->is_cpu()) return *device;
  // Only libtorch's CPU half is linked, so that a machine without a GPU does not load gigabytes.
  // Opening the other half makes it register itself; where it is missing, or no driver is,
  // is_available says no. libtorch may remember the answer of whoever asks first: a program that
  // wants CUDA makes its CUDA network before others.
  const void* const cuda_half = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
  if (cuda_half == nullptr || !torch::cuda::is_available()) {
    throw FailedPrecondition("device '{}' is asked for, but {}; use --device cpu", name,
                             cuda_half == nullptr ? "this build's libtorch has no CUDA"
                                                  : "this machine has no CUDA device that works");
  }
  if (device->index() >= static_cast<int>(torch::cuda::device_count())) {
    throw FailedPrecondition(
        "device '{}' is asked for, but this machine has {} CUDA device(s), from 0", name,
        torch::cuda::device_count());
  }
  return *device;
}

bool ParsePrecision(const std::string& name) {
  if (name != "fp32" && name != "bf16") {
    throw InvalidArgument("precision is '{}'; it must be 'fp32' or 'bf16'", name);
  }
  return name == "bf16";
}

class TorchNetwork final : public Network {
 public:
  TorchNetwork(const NetworkSpec& spec, int threads)
      : spec_(spec),
        threads_(threads),
        traffic_(ParseDevice(spec.device)),
        model_(spec),
        weights_(model_.plan(), traffic_, ParsePrecision(spec.precision)) {
    if (threads < 1) throw InvalidArgument("a network needs at least 1 thread, got {}", threads);
  }

  const ParameterManifest& manifest() const override { return model_.plan().manifest(); }
  std::span<float> parameters() override { return weights_.parameters(); }
  std::span<float> gradients() override {
    return Translated([&] { return weights_.gradients(); });
  }
  void ParametersChanged() override { weights_.Changed(); }

  void Initialise(Random& random) {
    model_.plan().Initialise(parameters(), random);
    ParametersChanged();
  }

  std::span<const Matrix> Forward(const NetworkInput& input) override {
    return Translated([&] {
      UseThreads(threads_);
      const auto streams = traffic_.Streams();
      graph_.clear();
      const c10::AutoGradMode gradients(true);
      at::Tensor observations = traffic_.TakeAnnounced(Observations(input));
      at::Tensor vector = Vector(input);
      // The graph outlives the call; what it keeps must not be the caller's memory.
      if (traffic_.device().is_cpu()) {
        observations = observations.clone();
        if (vector.defined()) vector = vector.clone();
      }
      if (has_input_gradients()) observations.requires_grad_(true);
      if (has_vector_gradients()) vector.requires_grad_(true);
      inputs_ = observations;
      vector_ = vector;
      at::Tensor next_state;
      graph_ = model_.Run(weights_.ForGradient(), {observations, vector}, State(input).clone(),
                          IsFirst(input), &next_state);
      return Publish(graph_, next_state);
    });
  }

  std::span<const Matrix> Infer(const NetworkInput& input) override {
    return Translated([&] {
      UseThreads(threads_);
      const auto streams = traffic_.Streams();
      const c10::InferenceMode inference(true);
      at::Tensor next_state;
      const at::Tensor observations = traffic_.ToDevice(Observations(input));
      const at::Tensor vector = Vector(input);
      const Tensors outputs = model_.Run(weights_.ForInference(), {observations, vector},
                                         State(input), IsFirst(input), &next_state);
      return Publish(outputs, next_state);
    });
  }

  void Backward(std::span<const Matrix> output_gradients, const GradientRequest& request) override {
    Translated([&] {
      UseThreads(threads_);
      const auto streams = traffic_.Streams();
      if (graph_.empty()) {
        throw FailedPrecondition("Backward needs a Forward of its own before it");
      }
      CheckRequest(request);
      const Tensors outputs = std::exchange(graph_, {});
      const at::Tensor inputs = std::exchange(inputs_, {});
      const at::Tensor vector = std::exchange(vector_, {});
      const Tensors gradients = OutputGradients(outputs, output_gradients);
      Tensors asked;
      std::vector<float*> places;
      if (request.inputs != nullptr) {
        asked.push_back(inputs);
        places.push_back(request.inputs);
      }
      if (request.vector != nullptr) {
        asked.push_back(vector);
        places.push_back(request.vector);
      }
      const Tensors given = weights_.Backward(outputs, gradients, request.parameters, asked);
      for (std::size_t i = 0; i < places.size(); ++i) {
        at::from_blob(places[i], given[i].sizes(), at::TensorOptions(at::kFloat)).copy_(given[i]);
      }
    });
  }
  using Network::Backward;

  void Prefetch(const NetworkInput& input) override {
    Translated([&] { traffic_.Announce(Observations(input)); });
  }

  std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const override {
    return Translated([&] {
      UseThreads(threads_);  // Memory is zeroed by as many.
      return traffic_.AllocateLocked(bytes);
    });
  }

  int state_width() const override { return model_.state_width(); }
  const float* next_state() const override {
    return next_state_.defined() ? next_state_.const_data_ptr<float>() : nullptr;
  }
  bool batch_invariant() const override { return false; }

  std::unique_ptr<Network> Clone(SharedWorkerPool threads) const override {
    return Translated([&]() -> std::unique_ptr<Network> {
      auto clone = std::make_unique<TorchNetwork>(spec_, threads.threads());
      std::ranges::copy(weights_.parameters(), clone->parameters().begin());
      clone->ParametersChanged();
      return clone;
    });
  }

 private:
  bool has_input_gradients() const {
    return spec_.observation.dtype == DataType::kFloat32 && state_width() == 0;
  }
  bool has_vector_gradients() const { return spec_.vector_elements > 0 && state_width() == 0; }

  void CheckRequest(const GradientRequest& request) const {
    if ((request.inputs != nullptr && !has_input_gradients()) ||
        (request.vector != nullptr && !has_vector_gradients())) {
      throw InvalidArgument("network.kind = \"{}\" has no gradient of its {}", spec_.options.kind,
                            request.inputs != nullptr ? "inputs" : "vector");
    }
  }

  // The caller's rows, in the caller's memory.
  at::Tensor Observations(const NetworkInput& input) const {
    if (input.rows < 1 || input.observations == nullptr) {
      throw InvalidArgument("a network needs at least 1 row of observations, got {}", input.rows);
    }
    const bool pixels = spec_.observation.dtype == DataType::kUint8;
    std::vector<std::int64_t> shape = {input.rows};
    if (pixels) {
      shape.insert(shape.end(), spec_.observation.shape.begin(), spec_.observation.shape.end());
    } else {
      shape.push_back(spec_.observation.elements());
    }
    return at::from_blob(const_cast<void*>(input.observations), shape,
                         at::TensorOptions(pixels ? at::kByte : at::kFloat));
  }

  // Of the computing stream; undefined where the network reads none.
  at::Tensor Vector(const NetworkInput& input) const {
    if (spec_.vector_elements == 0) {
      RefuseVector(input);
      return {};
    }
    if (input.vector == nullptr) {
      throw InvalidArgument("a network that reads {} numbers beside '{}' was given none",
                            spec_.vector_elements, spec_.observation.name);
    }
    return traffic_.ToDevice(at::from_blob(const_cast<float*>(input.vector),
                                           {input.rows, spec_.vector_elements},
                                           at::TensorOptions(at::kFloat)));
  }

  at::Tensor State(const NetworkInput& input) const {
    if (state_width() == 0) return at::zeros({0}, at::kFloat);
    if (input.steps < 1 || input.rows % input.steps != 0) {
      throw InvalidArgument("{} rows do not make {} steps of equally many sequences", input.rows,
                            input.steps);
    }
    const std::int64_t sequences = input.rows / input.steps;
    if (input.state == nullptr) {
      return at::zeros({sequences, state_width()},
                       at::TensorOptions(at::kFloat).device(traffic_.device()));
    }
    return traffic_.ToDevice(at::from_blob(const_cast<float*>(input.state),
                                           {sequences, state_width()},
                                           at::TensorOptions(at::kFloat)));
  }

  static std::span<const std::uint8_t> IsFirst(const NetworkInput& input) {
    if (input.is_first == nullptr) return {};
    return {input.is_first, static_cast<std::size_t>(input.rows)};
  }

  // Brings results to the host, where they stay until the next call.
  std::span<const Matrix> Publish(const Tensors& outputs, const at::Tensor& next_state) {
    outputs_.clear();
    matrices_.clear();
    for (const at::Tensor& output : outputs) {
      outputs_.push_back(traffic_.ToHost(output.detach()));
      const at::Tensor& host = outputs_.back();
      const int columns = static_cast<int>(host.size(1));
      matrices_.push_back(
          {host.data_ptr<float>(), static_cast<int>(host.size(0)), columns, columns});
    }
    if (next_state.defined()) next_state_ = traffic_.ToHost(next_state.detach());
    traffic_.Wait();
    return matrices_;
  }

  Tensors OutputGradients(const Tensors& outputs, std::span<const Matrix> matrices) const {
    if (matrices.size() != outputs.size()) {
      throw InvalidArgument("a gradient for each of {} heads is needed, got {}", outputs.size(),
                            matrices.size());
    }
    Tensors gradients;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const Matrix& matrix = matrices[i];
      CheckGradient(model_.heads()[i], matrix, static_cast<int>(outputs[i].size(0)));
      gradients.push_back(
          traffic_.Send(at::from_blob(matrix.data, {matrix.rows, matrix.columns},
                                      {matrix.stride, 1}, at::TensorOptions(at::kFloat))));
    }
    return gradients;
  }

  const NetworkSpec spec_;
  const int threads_;
  DeviceTraffic traffic_;
  const Model model_;
  WeightStore weights_;

  at::Tensor inputs_;  // What the graph below was given,
  at::Tensor vector_;  // and beside it.
  Tensors graph_;      // Outputs of the last Forward with their graph; empty after Backward.
  Tensors outputs_;    // What matrices_ points into.
  std::vector<Matrix> matrices_;
  at::Tensor next_state_;
};

}  // namespace

}  // namespace menger

menger::Network* menger_make_torch_network(const menger::NetworkSpec* spec, menger::Random* random,
                                           int threads) {
  return menger::Translated([&] {
    auto network = std::make_unique<menger::TorchNetwork>(*spec, threads);
    network->Initialise(*random);
    return network.release();
  });
}
