#include "menger/algorithms/value_policy.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

// Of CounterRandom.
constexpr std::uint32_t kChoiceStream = 2;
constexpr std::uint32_t kNoiseStream = 3;

}  // namespace

ValuePolicy::ValuePolicy(Parts parts, PolicyMode mode, std::uint64_t seed)
    : parts_(std::move(parts)),
      mode_(mode),
      choice_random_(seed, kChoiceStream),
      noise_random_(seed, kNoiseStream) {
  Refresh();
}

void ValuePolicy::Refresh() {
  auto latest = parts_.publication->Latest();
  if (latest == blob_) return;
  blob_ = std::move(latest);
  const std::span<float> parameters = parts_.network->parameters();
  std::copy_n(blob_->values().begin(), parameters.size(), parameters.begin());
  parts_.network->ParametersChanged();
  epsilon_ = mode_ == PolicyMode::kSample ? blob_->values().back()
                                          : static_cast<float>(parts_.evaluation_epsilon);
}

const void* ValuePolicy::Observations(const Slab& slab, int row, PositionRange positions) {
  const ObservationEncoder& encoder = *parts_.encoder;
  if (encoder.identity()) {
    return slab.observation(encoder.identity_leaf(), row, positions.first);
  }
  std::byte* const encoded = encoded_.Reserve(*parts_.network, encoder.bytes() * positions.count);
  encoder.Encode(slab, row, positions.first, positions.count, encoded);
  return encoded;
}

int ValuePolicy::Choose(std::span<const float> values, const std::uint8_t* mask, int environment,
                        std::int64_t step) const {
  if (environment < 0) return 0;  // Padding.
  const auto words = choice_random_.Draw(static_cast<std::uint64_t>(environment),
                                         static_cast<std::uint64_t>(step));
  if (CounterRandom::Uniform01(words[0]) >= epsilon_) return GreedyAction(values, mask);
  const auto actions = static_cast<int>(values.size());
  const auto allowed = [&](int action) { return mask == nullptr || mask[action] != 0; };
  int count = 0;
  for (int action = 0; action < actions; ++action) count += allowed(action) ? 1 : 0;
  auto chosen = static_cast<int>((static_cast<std::uint64_t>(words[1]) * count) >> 32);
  for (int action = 0; action < actions; ++action) {
    if (allowed(action) && chosen-- == 0) return action;
  }
  return GreedyAction(values, mask);  // Nothing is allowed: says so.
}

void ValuePolicy::Act(Slab& slab, int row, PositionRange positions) {
  const std::int64_t step = slab.first_step() + row;
  if (parts_.noisy != nullptr && mode_ == PolicyMode::kSample && step != noise_step_) {
    parts_.noisy->DrawNoise(noise_random_, step);
    noise_step_ = step;
  }
  const auto outputs = parts_.network->Infer(
      {.observations = Observations(slab, row, positions), .rows = positions.count});
  const auto rows = static_cast<std::size_t>(positions.count);
  const auto actions = static_cast<std::size_t>(parts_.values.actions);
  combined_.resize(rows * parts_.values.width());
  values_.resize(rows * actions);
  parts_.values.Combine(outputs, combined_);
  parts_.values.Means(combined_, values_);

  const int mask_leaf = parts_.encoder->mask_leaf();
  const std::uint8_t* const mask =
      mask_leaf < 0 ? nullptr : slab.observation<std::uint8_t>(mask_leaf, row, positions.first);
  auto* const action = slab.action<std::int64_t>(0, row, positions.first);
  auto* const value = slab.policy<float>(kValue, row, positions.first);
  const std::span<const int> environments = slab.columns().EnvironmentsAt(positions);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const float> of_row(values_.data() + i * actions, actions);
    action[i] =
        Choose(of_row, mask == nullptr ? nullptr : mask + i * actions, environments[i], step);
    value[i] = *std::max_element(of_row.begin(), of_row.end());
  }
  std::fill_n(slab.version(row) + positions.first, positions.count, blob_->version().packed());
}

}  // namespace menger
