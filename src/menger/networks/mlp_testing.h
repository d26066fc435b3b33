#pragma once

// For tests of MlpNetwork: networks, batches and losses that tools/record_networks.py has, too.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/networks/mlp.h"
#include "menger/networks/recorded_input.h"

namespace menger {

inline NetworkSpec MakeSpec(int observation, std::vector<std::int64_t> hidden,
                            std::vector<HeadSpec> heads) {
  NetworkSpec spec;
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {observation}, {-1}, {1});
  spec.options.hidden = std::move(hidden);
  spec.heads = std::move(heads);
  return spec;
}

inline MlpNetwork MakeRecorded(const NetworkSpec& spec, int threads = 1,
                               const Kernels& kernels = BestKernels()) {
  Random random = Random::FromSeed(1);
  return MlpNetwork(spec, random, threads, kernels);
}

inline void SetRecordedParameters(Network& network) {
  const auto values = RecordedInput(network.parameters().size(), 1, 0.25f);
  std::copy(values.begin(), values.end(), network.parameters().begin());
  network.ParametersChanged();
}

inline std::vector<float> Flatten(std::span<const Matrix> outputs) {
  std::vector<float> flat;
  for (const Matrix& output : outputs) {
    for (int i = 0; i < output.rows; ++i) {
      flat.insert(flat.end(), output.row(i), output.row(i) + output.columns);
    }
  }
  return flat;
}

// Gradients of the outputs, as the recording has them.
struct OutputGradients {
  OutputGradients(const NetworkSpec& spec, int rows) {
    for (std::size_t head = 0; head < spec.heads.size(); ++head) {
      const int width = spec.heads[head].width;
      values.push_back(RecordedInput(static_cast<std::size_t>(rows) * width, 3 + head, 1.0f));
      matrices.push_back({values.back().data(), rows, width, width});
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<Matrix> matrices;
};

// What a batch gives.
struct Pass {
  std::vector<float> outputs, inferred, gradients;
  bool operator==(const Pass&) const = default;
};

inline Pass RunPass(Network& network, const NetworkSpec& spec, int rows) {
  const auto x = RecordedInput(rows * spec.observation.elements(), 2, 1.0f);
  const NetworkInput input{.observations = x.data(), .rows = rows};
  Pass pass;
  pass.outputs = Flatten(network.Forward(input));
  pass.inferred = Flatten(network.Infer(input));
  network.Backward(OutputGradients(spec, rows).matrices);
  pass.gradients.assign(network.gradients().begin(), network.gradients().end());
  return pass;
}

// d(sum of gradients x outputs)/d(inputs) by central differences.
inline std::vector<double> InputDifferences(Network& network, const NetworkSpec& spec, int rows) {
  auto x = RecordedInput(rows * spec.observation.elements(), 2, 1.0f);
  const auto loss = [&] {
    const auto outputs = Flatten(network.Infer({.observations = x.data(), .rows = rows}));
    double sum = 0;
    std::size_t at = 0;
    for (const auto& gradient : OutputGradients(spec, rows).values) {
      for (const float weight : gradient) sum += double{weight} * outputs[at++];
    }
    return sum;
  };
  std::vector<double> slopes;
  constexpr float kStep = 1.0f / 256;  // Exact, so that the sum of it and an input nearly is.
  for (float& value : x) {
    const float middle = value;
    value = middle + kStep;
    const double up = loss();
    value = middle - kStep;
    slopes.push_back((up - loss()) / (2 * kStep));
    value = middle;
  }
  return slopes;
}

}  // namespace menger
