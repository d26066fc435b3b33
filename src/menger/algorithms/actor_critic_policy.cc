#include "menger/algorithms/actor_critic_policy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/algorithms/actor_critic.h"

namespace menger {
namespace {

constexpr std::uint32_t kActionStream = 1;  // Of CounterRandom: what training policies draw from.

}  // namespace

ActorCriticPolicy::ActorCriticPolicy(Parts parts, PolicyMode mode, std::uint64_t seed)
    : parts_(std::move(parts)),
      mode_(mode),
      random_(seed, kActionStream),
      normalises_(parts_.publication->manifest().size() > parts_.network->manifest().size()) {
  Refresh();
}

void ActorCriticPolicy::Refresh() {
  auto latest = parts_.publication->Latest();
  if (latest == blob_) return;
  blob_ = std::move(latest);
  const std::span<float> parameters = parts_.network->parameters();
  std::copy_n(blob_->values().begin(), parameters.size(), parameters.begin());
  parts_.network->ParametersChanged();
}

const void* ActorCriticPolicy::Observations(const Slab& slab, int row, PositionRange positions) {
  const ObservationEncoder& encoder = *parts_.encoder;
  if (encoder.identity() && !normalises_) {
    return slab.observation(encoder.identity_leaf(), row, positions.first);
  }
  std::byte* const encoded = encoded_.Reserve(*parts_.network, encoder.bytes() * positions.count);
  encoder.Encode(slab, row, positions.first, positions.count, encoded);
  if (normalises_) {
    const auto elements = static_cast<std::size_t>(encoder.elements());
    const auto statistics = blob_->values().subspan(parts_.network->manifest().size());
    Normalise({reinterpret_cast<float*>(encoded), elements * positions.count},
              statistics.first(elements), statistics.subspan(elements, elements),
              parts_.observation_clip);
  }
  return encoded;
}

void ActorCriticPolicy::Act(Slab& slab, int row, PositionRange positions) {
  const int width = parts_.network->state_width();
  NetworkInput input{.observations = Observations(slab, row, positions), .rows = positions.count};
  if (width > 0) {
    input.state = slab.state<float>(0, row, positions.first);
    input.is_first = slab.is_first(row) + positions.first;
  }
  const std::span<const Matrix> outputs = parts_.network->Infer(input);
  if (width > 0) {
    std::memcpy(slab.state<float>(0, row + 1, positions.first), parts_.network->next_state(),
                sizeof(float) * width * positions.count);
  }

  const int mask_leaf = parts_.encoder->mask_leaf();
  const std::uint8_t* const mask =
      mask_leaf < 0 ? nullptr : slab.observation<std::uint8_t>(mask_leaf, row, positions.first);
  void* const actions = slab.action(0, row, positions.first);
  auto* const log_probability =
      slab.policy<float>(ActorCritic::kLogProbability, row, positions.first);
  const std::span<const Matrix> policy_outputs = outputs.first(outputs.size() - 1);
  if (mode_ == PolicyMode::kSample) {
    parts_.distribution->Sample(policy_outputs, mask, random_,
                                slab.columns().EnvironmentsAt(positions), slab.first_step() + row,
                                actions, log_probability);
  } else {
    parts_.distribution->Mode(policy_outputs, mask, actions);
    std::fill_n(log_probability, positions.count, 0.0F);
  }
  auto* const value = slab.policy<float>(ActorCritic::kValue, row, positions.first);
  for (int i = 0; i < positions.count; ++i) value[i] = *outputs.back().row(i);
  std::fill_n(slab.version(row) + positions.first, positions.count, blob_->version().packed());
}

}  // namespace menger
