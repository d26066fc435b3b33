#pragma once

#include <cstdint>
#include <memory>

#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/policy_maker.h"
#include "menger/algorithms/policy_model.h"
#include "menger/networks/distribution.h"

namespace menger {

// Policies of PPO, A2C and their kin: a network with the heads of a distribution over actions and,
// last, the value of the observation.
//
// Greedy ones take the most likely action and write a log-probability of 0. Batch-invariant when
// the network is.
class ActorCriticPolicies final : public PolicyMaker {
 public:
  // Policy columns of the slabs.
  static constexpr int kLogProbability = 0;  // float32, of the action taken.
  static constexpr int kValue = 1;           // float32, V of the observation acted on.

  // Initial gains follow Huang et al. 2022: hidden sqrt(2), policy .01, value 1. Throws
  // InvalidArgument for observations, actions, masks or transforms that do not fit together.
  ActorCriticPolicies(const AlgorithmContext& context, double initial_log_std);

  const PolicyModel& model() const { return model_; }
  const Distribution& distribution() const { return *distribution_; }

  const PolicySpec& spec() const override { return spec_; }
  int history() const override { return model_.encoder().history(); }
  const ParameterManifest& manifest() const override { return model_.manifest(); }
  std::unique_ptr<Policy> Make(const ParameterSource& source, PolicyMode mode,
                               std::uint64_t seed) const override;
  PolicyDescription Describe(std::span<const float> version) const override;

 private:
  const ActionRange range_;
  const std::unique_ptr<const Distribution> distribution_;
  const PolicyModel model_;
  PolicySpec spec_;
};

}  // namespace menger
