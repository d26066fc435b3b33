// The algorithms of the program, composed: add a line here for a new one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/a2c.h"
#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/action_space.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/defaults.h"
#include "menger/algorithms/dqn.h"
#include "menger/algorithms/es.h"
#include "menger/algorithms/ppo.h"
#include "menger/algorithms/sac.h"
#include "menger/algorithms/td3.h"
#include "menger/networks/distribution.h"

namespace menger {
namespace {

// An on-policy algorithm that is made from a Config and works on any action space with a
// distribution.
template <typename Config, typename Implementation, auto kDefaults>
class ActorCriticEntry final : public AlgorithmEntry {
 public:
  ActorCriticEntry(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}

  std::string name() const override { return name_; }
  std::string description() const override { return description_; }
  void Declare(Options& options) override { config_.Declare(options); }
  std::vector<OptionDefault> Defaults(const EnvironmentSpec& environment,
                                      std::int64_t steps) const override {
    return kDefaults(environment, steps);
  }
  void Check(const EnvironmentSpec& environment) const override {
    MakeDistribution(OnlyAction(environment));
  }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<Implementation>(config_, context);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return std::make_unique<ActorCriticPolicies>(context, config_.common.initial_log_std);
  }

 private:
  const std::string name_;
  const std::string description_;
  Config config_;
};

class DqnEntry final : public AlgorithmEntry {
 public:
  std::string name() const override { return "dqn"; }
  std::string description() const override {
    return "Deep Q-learning (Mnih et al. 2015); double, duelling, n-step, noisy, C51, QR-DQN, "
           "prioritised: up to Rainbow; discrete actions";
  }
  DataRule data_rule() const override { return DataRule::kBatches; }
  void Declare(Options& options) override { config_.Declare(options); }
  std::vector<OptionDefault> Defaults(const EnvironmentSpec& environment,
                                      std::int64_t steps) const override {
    return DqnDefaults(environment, steps, config_.distribution);
  }
  void Check(const EnvironmentSpec& environment) const override { Dqn::Check(environment); }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<Dqn>(config_, context);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return Dqn::MakePolicies(config_, context);
  }

 private:
  DqnConfig config_;
};

// One that learns a policy of real actions from replay.
template <typename Config, typename Implementation>
class PathwiseEntry final : public AlgorithmEntry {
 public:
  PathwiseEntry(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}

  std::string name() const override { return name_; }
  std::string description() const override { return description_; }
  DataRule data_rule() const override { return DataRule::kBatches; }
  void Declare(Options& options) override { config_.Declare(options); }
  std::vector<OptionDefault> Defaults(const EnvironmentSpec& /*environment*/,
                                      std::int64_t steps) const override {
    return PathwiseDefaults(steps);
  }
  void Check(const EnvironmentSpec& environment) const override { ActionScaling{environment}; }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<Implementation>(config_, context);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return Implementation::MakePolicies(config_, context);
  }

 private:
  const std::string name_;
  const std::string description_;
  Config config_;
};

class EsEntry final : public AlgorithmEntry {
 public:
  std::string name() const override { return "es"; }
  std::string description() const override {
    return "Evolution Strategies (Salimans et al. 2017) on workers of the runtime; discrete and "
           "continuous actions";
  }
  DataRule data_rule() const override { return DataRule::kEpisodes; }
  void Declare(Options& options) override { config_.Declare(options); }
  void Check(const EnvironmentSpec& environment) const override {
    MakeDistribution(OnlyAction(environment));
  }
  std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const override {
    return std::make_unique<Es>(config_, context);
  }
  std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const override {
    return std::make_unique<EsPolicies>(context, config_.action_noise);
  }

 private:
  EsConfig config_;
};

}  // namespace

std::vector<std::unique_ptr<AlgorithmEntry>> AllAlgorithms() {
  std::vector<std::unique_ptr<AlgorithmEntry>> entries;
  entries.push_back(std::make_unique<ActorCriticEntry<PpoConfig, Ppo, PpoDefaults>>(
      "ppo",
      "Proximal Policy Optimisation, clipped (Schulman et al. 2017); discrete and continuous "
      "actions"));
  entries.push_back(std::make_unique<ActorCriticEntry<A2cConfig, A2c, A2cDefaults>>(
      "a2c",
      "Advantage Actor-Critic (Mnih et al. 2016), synchronous; discrete and continuous actions"));
  entries.push_back(std::make_unique<DqnEntry>());
  entries.push_back(std::make_unique<PathwiseEntry<SacConfig, Sac>>(
      "sac",
      "Soft actor-critic (Haarnoja et al. 2018), with a learned temperature; continuous actions"));
  entries.push_back(std::make_unique<PathwiseEntry<Td3Config, Td3>>(
      "td3",
      "Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018), DDPG by settings; "
      "continuous actions"));
  entries.push_back(std::make_unique<EsEntry>());
  return entries;
}

}  // namespace menger
