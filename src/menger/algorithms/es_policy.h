#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/network_policy.h"
#include "menger/algorithms/policy_maker.h"
#include "menger/algorithms/policy_model.h"
#include "menger/base/counter_random.h"
#include "menger/networks/distribution.h"

namespace menger {

class EsPolicy;

// Policies of Evolution Strategies: a network that gives the best action itself; in training,
// continuous ones with a little noise, a function of seed, environment and step.
class EsPolicies final : public PolicyMaker {
 public:
  // `action_noise`: its standard deviation. Throws InvalidArgument for networks, devices, actions,
  // masks or transforms that do not fit.
  EsPolicies(const AlgorithmContext& context, double action_noise);

  const PolicyModel& model() const { return model_; }
  const Distribution& distribution() const { return *distribution_; }
  const ActionRange& range() const { return range_; }

  const PolicySpec& spec() const override { return spec_; }
  int history() const override { return model_.encoder().history(); }
  const ParameterManifest& manifest() const override { return model_.manifest(); }
  std::unique_ptr<Policy> Make(const ParameterSource& source, PolicyMode mode,
                               std::uint64_t seed) const override;
  PolicyDescription Describe(std::span<const float> version) const override;

  // For a worker: one that follows nobody and acts with noise, see EsPolicy::Use.
  std::unique_ptr<EsPolicy> MakeForWorker() const;

 private:
  const double action_noise_;
  const ActionRange range_;
  const std::unique_ptr<const Distribution> distribution_;
  const PolicyModel model_;
  const PolicySpec spec_;
};

class EsPolicy final : public NetworkPolicy {
 public:
  // `source`: null for one that acts with what Use gives it.
  EsPolicy(const EsPolicies& maker, const ParameterSource* source, double action_noise,
           std::uint64_t seed);

  // Acts with a version's values from here on, and restarts the noise.
  void Use(std::span<const float> version, std::uint64_t seed);

 private:
  void Choose(const ActSlice& slice, std::span<const Matrix> outputs) override;
  void AddNoise(const ActSlice& slice) const;

  const Distribution& distribution_;
  const ActionRange& range_;
  const float action_noise_;
  CounterRandom random_;
};

}  // namespace menger
