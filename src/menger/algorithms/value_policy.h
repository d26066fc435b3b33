#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "menger/algorithms/action_values.h"
#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/policy_maker.h"
#include "menger/algorithms/policy_model.h"

namespace menger {

// Policies of the DQN family: the action of the largest expected value, or with probability epsilon
// any that is allowed; with a noisy network the noise explores too.
//
// The extra number of a version is the epsilon to train with: it belongs to the version, as all
// that acting depends on does. Each environment may have a power of it. A greedy policy has an
// epsilon of its own and no noise. Epsilon's draws are functions of environment and step, noise is
// one of the step (drawn anew for each), or of environment and step: slabs do not depend on the
// batching if the network is batch-invariant.
class ValuePolicies final : public PolicyMaker {
 public:
  // Policy columns of the slabs: from them an item's error can be computed where it is collected.
  static constexpr int kValue = 0;        // float32, the largest value that is allowed.
  static constexpr int kActionValue = 1;  // float32, of the action taken.

  struct Options {
    ActionValues values;
    std::optional<double> noisy_sigma;   // The network's weights are noisy: see NoisyNetwork.
    bool noise_per_environment = false;  // Else one draw for all environments of a step.
    double epsilon_spread = 0;           // Over the run's environments: see Epsilon::Of.
    double evaluation_epsilon = 0;
    bool remembers = false;  // The network may: what it is learned from says what it remembered.
  };
  // Throws InvalidArgument for actions that are not one Discrete or another number of them than
  // options.values has, and for observations, masks, transforms and networks that do not fit.
  ValuePolicies(const AlgorithmContext& context, const Options& options);

  // Throws InvalidArgument unless the environment's actions are one Discrete. For
  // AlgorithmEntry::Check.
  static void Check(const EnvironmentSpec& environment);

  const PolicyModel& model() const { return model_; }
  const Options& options() const { return options_; }
  int environments() const { return environments_; }  // Of the run.

  const PolicySpec& spec() const override { return spec_; }
  int history() const override { return model_.encoder().history(); }
  const ParameterManifest& manifest() const override { return model_.manifest(); }
  std::unique_ptr<Policy> Make(const ParameterSource& source, PolicyMode mode,
                               std::uint64_t seed) const override;
  PolicyDescription Describe(std::span<const float> version) const override;

 private:
  const Options options_;
  const int environments_;
  const PolicyModel model_;
  PolicySpec spec_;
};

}  // namespace menger
