#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "menger/algorithms/actor_critic_policy.h"
#include "menger/algorithms/published_model.h"
#include "menger/algorithms/transforms.h"
#include "menger/base/archive.h"
#include "menger/networks/distribution.h"
#include "menger/networks/network.h"

namespace menger {

// What PPO, A2C and their kin learn: the network of their policies, published with the statistics
// of what it sees, and what they make of rewards. The learner's thread.
class ActorCritic {
 public:
  // Throws as ActorCriticPolicies.
  ActorCritic(const AlgorithmContext& context, double discount, double initial_log_std);

  const ActorCriticPolicies& policies() const { return policies_; }
  PublishedModel& published() { return published_; }
  const ObservationEncoder& encoder() const { return policies_.model().encoder(); }
  const Distribution& distribution() const { return policies_.distribution(); }
  Network& network() const { return published_.network(); }
  bool normalises_observations() const { return policies_.model().normalises(); }

  // What the raw reward is multiplied by and clipped to.
  float TransformReward(double reward) const;

  // Merges the rewards of all learners' slabs into their statistics: before learning from them.
  void UpdateRewardStatistics(std::span<Slab* const> slabs, UpdateRule& update);

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);
  void LoadParameters(ArchiveReader archive);  // And publishes them.

 private:
  const TransformOptions transforms_;
  const ActorCriticPolicies policies_;
  PublishedModel published_;
  std::optional<RewardNormaliser> rewards_;
};

}  // namespace menger
