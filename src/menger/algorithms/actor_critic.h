#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/transforms.h"
#include "menger/base/archive.h"
#include "menger/networks/distribution.h"
#include "menger/networks/network.h"
#include "menger/parameters/publication.h"

namespace menger {

// What PPO, A2C and their kin have in common: a network with a distribution over actions and a
// value, the statistics that normalise what it sees, the policy that acts with both, and their
// publication as one blob.
//
// Used by the learner's thread, except that policies made here live on any thread: they share only
// immutable parts and the publication.
class ActorCritic {
 public:
  // Policy columns of the slabs.
  static constexpr int kLogProbability = 0;  // float32, of the action taken.
  static constexpr int kValue = 1;           // float32, V of the observation acted on.

  // Initial gains follow Huang et al. 2022: hidden sqrt(2), policy .01, value 1. Throws
  // InvalidArgument for observations, actions, masks or transforms that do not fit together.
  ActorCritic(const AlgorithmContext& context, double discount, double initial_log_std);

  Network& network() { return *network_; }
  const Distribution& distribution() const { return *distribution_; }
  const ObservationEncoder& encoder() const { return *encoder_; }
  const PolicySpec& policy_spec() const { return policy_spec_; }
  int policy_heads() const { return static_cast<int>(distribution_->heads().size()); }
  Publication& publication() { return *publication_; }

  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) const;
  PolicyDescription DescribePolicy() const;

  // Makes parameters and statistics visible to policies.
  void Publish();

  // Normalises encoded rows in place with the statistics as last published; nothing without
  // normalise_observation.
  void NormaliseRows(std::span<float> rows) const;
  bool normalises_observations() const { return normaliser_.has_value(); }

  // What the raw reward is multiplied by and clipped to.
  float TransformReward(double reward) const;

  // Merge a slab's data into the statistics: rewards before learning, observations after.
  void UpdateRewardStatistics(std::span<Slab* const> slabs);
  void UpdateObservationStatistics(std::span<const float> raw_rows, std::span<const float> weights);

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);
  void LoadParameters(ArchiveReader archive);

 private:
  void LoadModel(const ArchiveReader& archive);  // Without publishing it.

  AlgorithmContext context_;
  std::shared_ptr<const ObservationEncoder> encoder_;  // Shared with policies, immutable.
  std::shared_ptr<const Distribution> distribution_;   // Shared with policies, immutable.
  std::unique_ptr<Network> network_;
  PolicySpec policy_spec_;
  std::shared_ptr<Publication> publication_;  // Shared with policies, thread-safe.
  std::optional<ObservationNormaliser> normaliser_;
  std::optional<RewardNormaliser> reward_normaliser_;
  std::vector<float> blob_;  // Parameters, then scales and shifts: what was published last.
};

}  // namespace menger
