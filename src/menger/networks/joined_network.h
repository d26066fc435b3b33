#pragma once

#include <memory>
#include <span>
#include <vector>

#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"

namespace menger {

// A network of two parts for kinds that read one: it lays observation and vector side by side, row
// by row, for a network of [observation + vector elements], and takes the gradient of its inputs
// apart again. Parameters, threads and errors are those of that network; the price is a copy of
// each batch, which Forward keeps until its Backward.
class JoinedNetwork final : public Network {
 public:
  // The spec must have passed MakeNetwork's checks and have a vector. Throws InvalidArgument if the
  // observation is not float32.
  JoinedNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads);

  const ParameterManifest& manifest() const override { return inner_->manifest(); }
  std::span<float> parameters() override { return inner_->parameters(); }
  std::span<float> gradients() override { return inner_->gradients(); }
  void ParametersChanged() override { inner_->ParametersChanged(); }

  std::span<const Matrix> Forward(const NetworkInput& input) override;
  std::span<const Matrix> Infer(const NetworkInput& input) override;
  void Backward(std::span<const Matrix> output_gradients, const GradientRequest& request) override;
  using Network::Backward;
  std::unique_ptr<Memory> AllocateBatch(std::size_t bytes) const override {
    return inner_->AllocateBatch(bytes);
  }

  int state_width() const override { return inner_->state_width(); }
  const float* next_state() const override { return inner_->next_state(); }
  bool batch_invariant() const override { return inner_->batch_invariant(); }
  std::unique_ptr<Network> Clone(SharedWorkerPool threads) const override;

 private:
  JoinedNetwork(std::unique_ptr<Network> inner, int observation_elements, int vector_elements);

  // The same input with its two parts in one, in `memory`.
  NetworkInput Joined(const NetworkInput& input, BatchMemory& memory) const;

  const std::unique_ptr<Network> inner_;
  const int observation_elements_;
  const int vector_elements_;
  int forward_rows_ = 0;
  BatchMemory forward_;  // What the last Forward was given.
  BatchMemory inferred_;
  std::vector<float> input_gradient_;  // Of the joined rows.
};

}  // namespace menger
