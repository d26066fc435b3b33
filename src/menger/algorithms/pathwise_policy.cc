#include "menger/algorithms/pathwise_policy.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace menger {
namespace {

constexpr std::uint32_t kActionStream = 2;  // Of CounterRandom.

}  // namespace

PathwisePolicy::PathwisePolicy(Parts parts, PolicyMode mode, std::uint64_t seed)
    : parts_(std::move(parts)), mode_(mode), random_(seed, kActionStream) {
  Refresh();
}

void PathwisePolicy::Refresh() {
  auto latest = parts_.publication->Latest();
  if (latest == blob_) return;
  blob_ = std::move(latest);
  const std::span<float> parameters = parts_.network->parameters();
  std::copy_n(blob_->values().begin(), parameters.size(), parameters.begin());
  parts_.network->ParametersChanged();
  uniform_ = mode_ == PolicyMode::kSample && blob_->values().back() != 0;
}

const void* PathwisePolicy::Observations(const Slab& slab, int row, PositionRange positions) {
  const ObservationEncoder& encoder = *parts_.encoder;
  if (encoder.identity()) {
    return slab.observation(encoder.identity_leaf(), row, positions.first);
  }
  std::byte* const encoded = encoded_.Reserve(*parts_.network, encoder.bytes() * positions.count);
  encoder.Encode(slab, row, positions.first, positions.count, encoded);
  return encoded;
}

void PathwisePolicy::Act(Slab& slab, int row, PositionRange positions) {
  const auto count = static_cast<std::size_t>(positions.count) * parts_.scaling->elements();
  noise_.resize(count);
  actions_.resize(count);
  if (uniform_) {
    DrawUniform(slab, row, positions);
  } else {
    const auto outputs = parts_.network->Infer(
        {.observations = Observations(slab, row, positions), .rows = positions.count});
    if (mode_ == PolicyMode::kGreedy) {
      parts_.distribution->Mode(outputs[0], actions_.data());
    } else {
      DrawNoise(slab, row, positions);
      parts_.distribution->Sample(outputs[0], noise_.data(), actions_.data(),
                                  /*log_probability=*/nullptr);
    }
  }
  parts_.scaling->ToEnvironment(actions_.data(), positions.count,
                                slab.action<float>(0, row, positions.first));
  std::fill_n(slab.version(row) + positions.first, positions.count, blob_->version().packed());
}

// Padding (environments below 0) keeps what it has.
void PathwisePolicy::DrawNoise(const Slab& slab, int row, PositionRange positions) {
  const auto step = static_cast<std::uint64_t>(slab.first_step() + row);
  const std::span<const int> environments = slab.columns().EnvironmentsAt(positions);
  const int elements = parts_.scaling->elements();
  float* noise = noise_.data();
  for (const int environment : environments) {
    for (int i = 0; environment >= 0 && i < elements; i += 2) {
      const auto words = random_.Draw(environment, step, i / 4);  // Two pairs a draw.
      const auto [first, second] = CounterRandom::Normals(words[i % 4], words[i % 4 + 1]);
      noise[i] = parts_.exploration * first;
      if (i + 1 < elements) noise[i + 1] = parts_.exploration * second;
    }
    noise += elements;
  }
}

void PathwisePolicy::DrawUniform(const Slab& slab, int row, PositionRange positions) {
  const auto step = static_cast<std::uint64_t>(slab.first_step() + row);
  const std::span<const int> environments = slab.columns().EnvironmentsAt(positions);
  const int elements = parts_.scaling->elements();
  float* action = actions_.data();
  for (const int environment : environments) {
    for (int i = 0; environment >= 0 && i < elements; ++i) {
      const auto words = random_.Draw(environment, step, i / 4);
      action[i] = 2.0F * CounterRandom::Uniform01(words[i % 4]) - 1.0F;
    }
    action += elements;
  }
}

}  // namespace menger
