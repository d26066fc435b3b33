#pragma once

#include <cstdint>
#include <memory>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/policy_maker.h"
#include "menger/algorithms/policy_model.h"
#include "menger/networks/pathwise_distribution.h"

namespace menger {

// Policies of SAC, TD3 and their kin: real actions, smooth functions of an actor's output and of
// noise.
//
// The extra number of a version is 1 where it is still to act uniformly at random, else 0. Draws
// are functions of environment and step. Batch-invariant when the network is. A greedy policy adds
// no noise.
class PathwisePolicies final : public PolicyMaker {
 public:
  // `exploration`: what standard normal noise is multiplied by. Throws InvalidArgument for
  // observations, actions, masks, transforms and networks that do not fit.
  PathwisePolicies(const AlgorithmContext& context,
                   std::unique_ptr<const PathwiseDistribution> distribution, double exploration);

  const PolicyModel& model() const { return model_; }
  const PathwiseDistribution& distribution() const { return *distribution_; }
  const ActionScaling& scaling() const { return scaling_; }
  float exploration() const { return exploration_; }

  const PolicySpec& spec() const override { return spec_; }
  int history() const override { return model_.encoder().history(); }
  const ParameterManifest& manifest() const override { return model_.manifest(); }
  std::unique_ptr<Policy> Make(const ParameterSource& source, PolicyMode mode,
                               std::uint64_t seed) const override;
  PolicyDescription Describe(std::span<const float> version) const override;

 private:
  const std::unique_ptr<const PathwiseDistribution> distribution_;
  const ActionScaling scaling_;
  const float exploration_;
  const PolicyModel model_;
  const PolicySpec spec_;
};

}  // namespace menger
