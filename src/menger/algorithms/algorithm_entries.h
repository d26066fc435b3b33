#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/action_space.h"
#include "menger/algorithms/actor_critic_policy.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/defaults.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/networks/distribution.h"

namespace menger {

// Entries of algorithms that are made from a Config, which has Declare(Options&), and a context:
// with them an algorithm of one's own is one line of all_algorithms.cc. What an Implementation must
// have beside its constructor stands at each.
//
// `kDefaults` is a function of environment and steps (and of the Config, if it wants that) as in
// defaults.h: one's own, or that of the algorithm that it is kin to.
template <typename Config, typename Implementation, auto kDefaults>
class ConfiguredEntry : public AlgorithmEntry {
 public:
  ConfiguredEntry(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}

  std::string name() const override { return name_; }
  std::string description() const override { return description_; }
  DataRule data_rule() const override {
    return std::is_base_of_v<ReplayAlgorithm, Implementation> ? DataRule::kBatches
                                                              : DataRule::kSlabs;
  }
  void Declare(Options& options) override { config_.Declare(options); }
  std::vector<OptionDefault> Defaults(const EnvironmentSpec& environment,
                                      std::int64_t steps) const override {
    Config config = config_;
    Options own(name_);
    config.Declare(own);
    if constexpr (std::is_invocable_v<decltype(kDefaults), const EnvironmentSpec&, std::int64_t,
                                      const Config&>) {
      return DefaultsOf(own, kDefaults(environment, steps, config_));
    } else {
      return DefaultsOf(own, kDefaults(environment, steps));
    }
  }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<Implementation>(config_, context);
  }

 protected:
  const Config& config() const { return config_; }

 private:
  const std::string name_;
  const std::string description_;
  Config config_;
};

// An ActorCriticAlgorithm, on any action space with a distribution. Its Config has its
// ActorCriticOptions as `common`.
template <typename Config, typename Implementation, auto kDefaults>
class ActorCriticEntry final : public ConfiguredEntry<Config, Implementation, kDefaults> {
 public:
  using ConfiguredEntry<Config, Implementation, kDefaults>::ConfiguredEntry;

  void Check(const EnvironmentSpec& environment) const override {
    MakeDistribution(OnlyAction(environment));
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return std::make_unique<ActorCriticPolicies>(context, this->config().common.initial_log_std);
  }
};

// A ReplayAlgorithm that says itself what it fits and how it acts, by two static functions:
//     void Check(const EnvironmentSpec& environment);  // As AlgorithmEntry::Check.
//     std::unique_ptr<PolicyMaker> MakePolicies(const Config&, const AlgorithmContext&);
template <typename Config, typename Implementation, auto kDefaults = ValueDefaults>
class ReplayEntry final : public ConfiguredEntry<Config, Implementation, kDefaults> {
 public:
  using ConfiguredEntry<Config, Implementation, kDefaults>::ConfiguredEntry;

  void Check(const EnvironmentSpec& environment) const override {
    Implementation::Check(environment);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return Implementation::MakePolicies(this->config(), context);
  }
};

// A PathwiseAlgorithm, which learns a policy of real actions from replay. It says how it acts by a
// static MakePolicies, as for ReplayEntry.
template <typename Config, typename Implementation, auto kDefaults = PathwiseDefaults>
class PathwiseEntry final : public ConfiguredEntry<Config, Implementation, kDefaults> {
 public:
  using ConfiguredEntry<Config, Implementation, kDefaults>::ConfiguredEntry;

  void Check(const EnvironmentSpec& environment) const override { ActionScaling{environment}; }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return Implementation::MakePolicies(this->config(), context);
  }
};

}  // namespace menger
