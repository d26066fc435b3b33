#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/algorithms/actor_critic_algorithm.h"
#include "menger/algorithms/schedule.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [ppo]. Defaults are those of Huang et al. 2022 ("The 37 implementation
// details"), but without clipping of the value loss, which they found not to help.
struct PpoConfig {
  ActorCriticOptions common;
  std::int64_t epochs = 4;
  std::int64_t minibatch_size = 256;
  double clip = 0.2;
  std::string clip_schedule = "constant";
  double value_clip = 0;
  double target_kl = 0;

  void Declare(Options& options);
};

// Proximal Policy Optimisation with the clipped objective (Schulman et al. 2017).
class Ppo final : public ActorCriticAlgorithm {
 public:
  Ppo(const PpoConfig& config, const AlgorithmContext& context);

 private:
  void Loss(const Minibatch& minibatch, PolicyGradient& policy, LossStep& step) override;
  std::vector<std::string> loss_names() const override {
    return {"policy_loss", "value_loss", "approximate_kl", "clip_fraction"};
  }

  const PpoConfig config_;
  const Schedule clip_schedule_;
};

}  // namespace menger
