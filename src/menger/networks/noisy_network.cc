#include "menger/networks/noisy_network.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::string_view kWeight = "/weight";

float Transformed(float normal) { return std::copysign(std::sqrt(std::abs(normal)), normal); }

}  // namespace

NoisyNetwork::NoisyNetwork(std::unique_ptr<Network> inner, Clean)
    : inner_(std::move(inner)), manifest_(inner_->manifest()) {
  std::size_t noise = 0;
  for (const ParameterEntry& entry : inner_->manifest().entries()) {
    if (entry.shape.size() != 2 || !entry.name.ends_with(kWeight)) continue;
    const std::string layer = entry.name.substr(0, entry.name.size() - kWeight.size());
    const ParameterEntry* const bias = inner_->manifest().Find(layer + "/bias");
    if (bias == nullptr) continue;
    layers_.push_back({.inputs = static_cast<int>(entry.shape[0]),
                       .outputs = static_cast<int>(entry.shape[1]),
                       .weight = entry.offset,
                       .bias = bias->offset,
                       .weight_sigma = manifest_.Add(entry.name + "/sigma", entry.shape),
                       .bias_sigma = manifest_.Add(bias->name + "/sigma", bias->shape),
                       .noise = noise});
    noise += static_cast<std::size_t>(entry.shape[0] + entry.shape[1]);
  }
  if (layers_.empty()) throw InvalidArgument("a network without a dense layer cannot be noisy");
  noise_.assign(noise, 0.0F);
  parameters_ = AlignedFloats(manifest_.size());
  gradients_ = AlignedFloats(manifest_.size());
}

NoisyNetwork::NoisyNetwork(std::unique_ptr<Network> inner, double sigma_0)
    : NoisyNetwork(std::move(inner), Clean()) {
  const std::span<const float> mu = inner_->parameters();
  std::copy(mu.begin(), mu.end(), parameters_.data());
  for (const Layer& layer : layers_) {
    const auto sigma = static_cast<float>(sigma_0 / std::sqrt(layer.inputs));
    std::fill_n(parameters_.data() + layer.weight_sigma,
                static_cast<std::ptrdiff_t>(layer.inputs) * layer.outputs, sigma);
    std::fill_n(parameters_.data() + layer.bias_sigma, layer.outputs, sigma);
  }
}

std::unique_ptr<Network> NoisyNetwork::Clone(SharedWorkerPool threads) const {
  std::unique_ptr<NoisyNetwork> clone(new NoisyNetwork(inner_->Clone(std::move(threads)), Clean()));
  std::copy_n(parameters_.data(), parameters_.size(), clone->parameters_.data());
  return clone;
}

void NoisyNetwork::DrawNoise(const CounterRandom& random, std::int64_t step, int environment) {
  for (std::size_t i = 0; i < noise_.size(); i += 4) {
    const auto words = random.Draw(i / 4, static_cast<std::uint64_t>(step),
                                   static_cast<std::uint32_t>(environment + 1));
    const auto [first, second] = CounterRandom::Normals(words[0], words[1]);
    const auto [third, fourth] = CounterRandom::Normals(words[2], words[3]);
    const float normals[] = {first, second, third, fourth};
    const std::size_t count = std::min<std::size_t>(4, noise_.size() - i);
    for (std::size_t k = 0; k < count; ++k) noise_[i + k] = Transformed(normals[k]);
  }
  composed_ = false;
}

void NoisyNetwork::Compose() {
  if (composed_) return;
  const std::span<float> weights = inner_->parameters();
  std::copy_n(parameters_.data(), weights.size(), weights.data());
  for (const Layer& layer : layers_) {
    const float* const input_noise = noise_.data() + layer.noise;
    const float* const output_noise = input_noise + layer.inputs;
    const float* sigma = parameters_.data() + layer.weight_sigma;
    float* weight = weights.data() + layer.weight;
    for (int i = 0; i < layer.inputs; ++i) {
      for (int j = 0; j < layer.outputs; ++j)
        weight[j] += sigma[j] * input_noise[i] * output_noise[j];
      weight += layer.outputs;
      sigma += layer.outputs;
    }
    const float* const bias_sigma = parameters_.data() + layer.bias_sigma;
    float* const bias = weights.data() + layer.bias;
    for (int j = 0; j < layer.outputs; ++j) bias[j] += bias_sigma[j] * output_noise[j];
  }
  inner_->ParametersChanged();
  composed_ = true;
}

std::span<const Matrix> NoisyNetwork::Forward(const NetworkInput& input) {
  Compose();
  return inner_->Forward(input);
}

std::span<const Matrix> NoisyNetwork::Infer(const NetworkInput& input) {
  Compose();
  return inner_->Infer(input);
}

void NoisyNetwork::Backward(std::span<const Matrix> output_gradients,
                            const GradientRequest& request) {
  inner_->Backward(output_gradients, request);
  if (!request.parameters) return;
  const std::span<const float> slopes = inner_->gradients();
  std::copy(slopes.begin(), slopes.end(), gradients_.data());
  for (const Layer& layer : layers_) {
    const float* const input_noise = noise_.data() + layer.noise;
    const float* const output_noise = input_noise + layer.inputs;
    const float* slope = slopes.data() + layer.weight;
    float* sigma = gradients_.data() + layer.weight_sigma;
    for (int i = 0; i < layer.inputs; ++i) {
      for (int j = 0; j < layer.outputs; ++j)
        sigma[j] = slope[j] * input_noise[i] * output_noise[j];
      slope += layer.outputs;
      sigma += layer.outputs;
    }
    const float* const bias_slope = slopes.data() + layer.bias;
    float* const bias_sigma = gradients_.data() + layer.bias_sigma;
    for (int j = 0; j < layer.outputs; ++j) bias_sigma[j] = bias_slope[j] * output_noise[j];
  }
}

}  // namespace menger
