#pragma once

// For tests of networks on libtorch: networks, batches and losses of all kinds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/networks/network.h"
#include "menger/networks/torch/torch_network.h"

namespace menger {

inline std::unique_ptr<Network> Make(const NetworkSpec& spec, int threads = 1) {
  Random random = Random::FromSeed(7);
  return std::unique_ptr<Network>(menger_make_torch_network(&spec, &random, threads));
}

// A policy, a value and a head that is the same for every input.
inline NetworkSpec SpecOf(const std::string& kind, LeafSpec observation) {
  NetworkSpec spec;
  spec.options.kind = kind;
  spec.options.hidden = {8, 6};
  spec.options.lstm_size = 5;
  spec.observation = std::move(observation);
  spec.heads = {{.name = "policy", .width = 3, .gain = 0.5},
                {.name = "value", .width = 1, .gain = 1.0, .bias = 0.25},
                {.name = "log_std", .width = 2, .constant = true, .bias = -0.5}};
  return spec;
}

inline LeafSpec Vector(std::int64_t elements) {
  return LeafSpec::Box("observation", DataType::kFloat32, {elements}, {-10.0}, {10.0});
}

inline LeafSpec Image(Shape shape) {
  return LeafSpec::Box("observation", DataType::kUint8, std::move(shape), {0.0}, {255.0});
}

// Made-up rows for a network, with what they are read through.
struct Batch {
  Batch(const NetworkSpec& spec, int rows, int steps, int state_width, std::uint64_t seed = 3)
      : state(static_cast<std::size_t>(rows / steps) * state_width), is_first(rows) {
    Random random = Random::FromSeed(seed);
    const std::size_t elements = static_cast<std::size_t>(spec.observation.elements()) * rows;
    if (spec.observation.dtype == DataType::kUint8) {
      for (std::size_t i = 0; i < elements; ++i) pixels.push_back(random.Integers(0, 256));
    } else {
      for (std::size_t i = 0; i < elements; ++i) floats.push_back(random.Normal());
    }
    for (float& value : state) value = static_cast<float>(random.Uniform(-0.5, 0.5));
    for (int i = 0; i < rows * spec.vector_elements; ++i) vector.push_back(random.Normal());
    input.observations = pixels.empty() ? static_cast<const void*>(floats.data()) : pixels.data();
    input.vector = vector.empty() ? nullptr : vector.data();
    input.rows = rows;
    input.steps = steps;
    input.state = state.empty() ? nullptr : state.data();
    input.is_first = is_first.data();
  }

  std::vector<float> floats;
  std::vector<std::uint8_t> pixels;
  std::vector<float> vector;
  std::vector<float> state;
  std::vector<std::uint8_t> is_first;
  NetworkInput input;
};

// The outputs of all heads, one head after the other.
inline std::vector<float> Copy(std::span<const Matrix> outputs) {
  std::vector<float> values;
  for (const Matrix& output : outputs) {
    for (int row = 0; row < output.rows; ++row) {
      values.insert(values.end(), output.row(row), output.row(row) + output.columns);
    }
  }
  return values;
}

inline void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
  }
}

// Weights for a linear loss over all outputs: loss = sum(weight * output).
inline std::vector<float> LossWeights(std::size_t size) {
  Random random = Random::FromSeed(11);
  std::vector<float> weights(size);
  for (float& weight : weights) weight = static_cast<float>(random.Normal());
  return weights;
}

inline std::vector<Matrix> AsGradients(std::span<const Matrix> outputs,
                                       std::vector<float>& weights) {
  std::vector<Matrix> gradients;
  float* next = weights.data();
  for (const Matrix& output : outputs) {
    gradients.push_back({next, output.rows, output.columns, output.columns});
    next += output.rows * output.columns;
  }
  return gradients;
}

// A linear loss of the outputs.
inline double Loss(Network& network, const NetworkInput& input, const std::vector<float>& weights) {
  const std::vector<float> outputs = Copy(network.Infer(input));
  double loss = 0.0;
  for (std::size_t i = 0; i < outputs.size(); ++i) loss += double{weights[i]} * outputs[i];
  return loss;
}

// For each array: the loss must rise along the gradient exactly as steeply as the gradient is long.
// A wrong element anywhere makes the two differ, short of an error at right angles to the gradient.
inline void CheckGradient(Network& network, const NetworkInput& input) {
  const auto outputs = network.Forward(input);
  std::vector<float> weights = LossWeights(Copy(outputs).size());
  network.Backward(AsGradients(outputs, weights));

  const double step = 5e-4;  // Small, for the kinks of relu.
  const std::vector<float> start(network.parameters().begin(), network.parameters().end());
  for (const ParameterEntry& entry : network.manifest().entries()) {
    const auto gradient = network.gradients().subspan(entry.offset, entry.elements());
    double length = 0.0;
    for (const float value : gradient) length += double{value} * value;
    length = std::sqrt(length);
    ASSERT_GT(length, 0.1) << entry.name;
    double difference = 0.0;
    for (const double sign : {1.0, -1.0}) {
      std::ranges::copy(start, network.parameters().begin());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        network.parameters()[entry.offset + i] +=
            static_cast<float>(sign * step * gradient[i] / length);
      }
      network.ParametersChanged();
      difference += sign * Loss(network, input, weights);
    }
    EXPECT_NEAR(difference / (2 * step), length, 0.01 * length + 2e-3) << entry.name;
  }
  std::ranges::copy(start, network.parameters().begin());
  network.ParametersChanged();
}

template <typename Body>
Error ErrorOf(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a menger::Error: " << error.what();
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

}  // namespace menger
