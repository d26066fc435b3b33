// The algorithms of the program, composed: add a line here for a new one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/a2c.h"
#include "menger/algorithms/action_space.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/algorithm_entries.h"
#include "menger/algorithms/defaults.h"
#include "menger/algorithms/dqn.h"
#include "menger/algorithms/es.h"
#include "menger/algorithms/ppo.h"
#include "menger/algorithms/r2d2.h"
#include "menger/algorithms/sac.h"
#include "menger/algorithms/td3.h"
#include "menger/networks/distribution.h"

namespace menger {
namespace {

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
  entries.push_back(std::make_unique<ReplayEntry<DqnConfig, Dqn, DqnDefaults>>(
      "dqn",
      "Deep Q-learning (Mnih et al. 2015); double, duelling, n-step, noisy, C51, QR-DQN, "
      "prioritised: up to Rainbow; discrete actions"));
  entries.push_back(std::make_unique<ReplayEntry<R2d2Config, R2d2, SequenceDefaults>>(
      "r2d2",
      "Q-learning with a memory, from sequences of replay with stored states and burn-in "
      "(Kapturowski et al. 2019); discrete actions"));
  entries.push_back(std::make_unique<PathwiseEntry<SacConfig, Sac>>(
      "sac",
      "Soft actor-critic (Haarnoja et al. 2018), with a learned temperature; continuous actions"));
  entries.push_back(std::make_unique<PathwiseEntry<Td3Config, Td3>>(
      "td3",
      "Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018), DDPG by settings; "
      "continuous actions"));
  entries.push_back(std::make_unique<EsEntry>());
  return WithCheckedNames(std::move(entries));
}

}  // namespace menger
