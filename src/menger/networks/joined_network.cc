#include "menger/networks/joined_network.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

std::unique_ptr<Network> MakeInner(NetworkSpec spec, Random& random, SharedWorkerPool threads) {
  if (spec.observation.dtype != DataType::kFloat32) {
    throw InvalidArgument("network.kind = \"{}\" reads float32 vectors, but '{}' is {} {}",
                          spec.options.kind, spec.observation.name, NameOf(spec.observation.dtype),
                          ToString(spec.observation.shape));
  }
  spec.observation.shape = {spec.observation.elements() + std::exchange(spec.vector_elements, 0)};
  return MakeNetwork(spec, random, std::move(threads));
}

}  // namespace

JoinedNetwork::JoinedNetwork(const NetworkSpec& spec, Random& random, SharedWorkerPool threads)
    : JoinedNetwork(MakeInner(spec, random, std::move(threads)),
                    static_cast<int>(spec.observation.elements()), spec.vector_elements) {}

JoinedNetwork::JoinedNetwork(std::unique_ptr<Network> inner, int observation_elements,
                             int vector_elements)
    : inner_(std::move(inner)),
      observation_elements_(observation_elements),
      vector_elements_(vector_elements) {}

NetworkInput JoinedNetwork::Joined(const NetworkInput& input, BatchMemory& memory) const {
  if (input.rows < 1) throw InvalidArgument("a batch of {} rows; at least 1 is needed", input.rows);
  if (input.vector == nullptr) {
    throw InvalidArgument("a network that reads {} numbers beside its observation was given none",
                          vector_elements_);
  }
  const auto floats =
      static_cast<std::size_t>(input.rows) * (observation_elements_ + vector_elements_);
  auto* const joined = reinterpret_cast<float*>(memory.Reserve(*inner_, floats * sizeof(float)));
  const auto* observation = static_cast<const float*>(input.observations);
  const float* vector = input.vector;
  float* to = joined;
  for (int row = 0; row < input.rows; ++row) {
    to = std::copy_n(observation, observation_elements_, to);
    to = std::copy_n(vector, vector_elements_, to);
    observation += observation_elements_;
    vector += vector_elements_;
  }
  NetworkInput result = input;
  result.observations = joined;
  result.vector = nullptr;
  return result;
}

std::span<const Matrix> JoinedNetwork::Forward(const NetworkInput& input) {
  forward_rows_ = input.rows;
  return inner_->Forward(Joined(input, forward_));
}

std::span<const Matrix> JoinedNetwork::Infer(const NetworkInput& input) {
  return inner_->Infer(Joined(input, inferred_));
}

void JoinedNetwork::Backward(std::span<const Matrix> output_gradients,
                             const GradientRequest& request) {
  if (request.inputs == nullptr && request.vector == nullptr) {
    return inner_->Backward(output_gradients, request);
  }
  const auto width =
      static_cast<std::size_t>(observation_elements_) + static_cast<std::size_t>(vector_elements_);
  input_gradient_.resize(forward_rows_ * width);
  GradientRequest of_joined = request;
  of_joined.inputs = input_gradient_.data();
  of_joined.vector = nullptr;
  inner_->Backward(output_gradients, of_joined);
  for (int row = 0; row < forward_rows_; ++row) {
    const float* const from = input_gradient_.data() + row * width;
    if (request.inputs != nullptr) {
      std::copy_n(from, observation_elements_,
                  request.inputs + static_cast<std::ptrdiff_t>(row) * observation_elements_);
    }
    if (request.vector != nullptr) {
      std::copy_n(from + observation_elements_, vector_elements_,
                  request.vector + static_cast<std::ptrdiff_t>(row) * vector_elements_);
    }
  }
}

std::unique_ptr<Network> JoinedNetwork::Clone(SharedWorkerPool threads) const {
  return std::unique_ptr<JoinedNetwork>(new JoinedNetwork(inner_->Clone(std::move(threads)),
                                                          observation_elements_, vector_elements_));
}

}  // namespace menger
