#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/counter_random.h"
#include "menger/networks/aligned_floats.h"
#include "menger/networks/network.h"

namespace menger {

// A network whose dense layers have noisy weights, w = mu + sigma * noise (Fortunato et al. 2018),
// around any network.
//
// Dense layers are the manifest's "NAME/weight" of two dimensions [inputs, outputs] with their
// "NAME/bias". Their noise is factorised (eq. 10 and 11): f(x_i) f(y_j) for a weight and f(y_j) for
// a bias, f(x) = sign(x) sqrt|x|, x and y standard normal. The parameters are the inner network's
// (mu, as that was initialised) followed by one sigma for each weight and bias of a dense layer,
// "NAME/weight/sigma" and "NAME/bias/sigma", at first sigma_0 / sqrt(inputs). The gradient of mu is
// that of the inner network's weights, the gradient of sigma is that times the noise.
//
// Without a draw there is no noise: the network is mu. A draw costs about as much as copying the
// parameters. Threads and shapes as the inner network.
class NoisyNetwork final : public Network {
 public:
  // Throws InvalidArgument if the inner network has no dense layer.
  NoisyNetwork(std::unique_ptr<Network> inner, double sigma_0);

  // Draws new noise, a function of (random, step, environment) alone: two networks of one shape
  // that are given the same have the same noise. `environment` below 0: one for all. Between a
  // Forward and its Backward only at the cost of a wrong gradient.
  void DrawNoise(const CounterRandom& random, std::int64_t step, int environment = -1);

  const ParameterManifest& manifest() const override { return manifest_; }
  std::span<float> parameters() override { return parameters_.span(); }
  std::span<float> gradients() override { return gradients_.span(); }
  void ParametersChanged() override { composed_ = false; }

  std::span<const Matrix> Forward(const NetworkInput& input) override;
  std::span<const Matrix> Infer(const NetworkInput& input) override;
  void Backward(std::span<const Matrix> output_gradients, const GradientRequest& request) override;
  using Network::Backward;
  void Prefetch(const NetworkInput& input) override { inner_->Prefetch(input); }
  std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const override {
    return inner_->AllocateBatch(bytes);
  }

  int state_width() const override { return inner_->state_width(); }
  const float* next_state() const override { return inner_->next_state(); }
  bool batch_invariant() const override { return inner_->batch_invariant(); }

  // The clone has no noise until it draws some.
  std::unique_ptr<Network> Clone(SharedWorkerPool threads) const override;

 private:
  // arithmetic of a weight with one input whose noise is 1.
  // A dense layer; offsets are in floats from the start of the parameters.
  struct Layer {
    int inputs = 0;
    int outputs = 0;
    std::int64_t weight = 0;
    std::int64_t bias = 0;
    std::int64_t weight_sigma = 0;
    std::int64_t bias_sigma = 0;
    std::size_t noise = 0;  // Into noise_: that of the inputs, then that of the outputs.
  };
  struct Clean {};  // Selects the constructor that leaves the parameters zero.
  NoisyNetwork(std::unique_ptr<Network> inner, Clean);

  void Compose();

  std::unique_ptr<Network> inner_;  // Its parameters are the noisy weights.
  ParameterManifest manifest_;
  std::vector<Layer> layers_;
  std::vector<float> noise_;
  AlignedFloats parameters_;
  AlignedFloats gradients_;
  bool composed_ = false;  // The inner network has the parameters with the noise.
};

}  // namespace menger
