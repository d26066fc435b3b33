#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/algorithms/actor_critic_algorithm.h"
#include "menger/base/options.h"

namespace menger {

// Options of section [a2c]. Defaults are those of Stable-Baselines3's A2C: OpenAI Baselines' for
// Mnih et al. 2016, but without their entropy bonus (0.01) and with a constant learning rate. Use
// [optimiser] kind = "rmsprop" with them, or "torch_rmsprop" as Stable-Baselines3 does.
struct A2cConfig {
  ActorCriticOptions common{.gae_lambda = 1.0,
                            .learning_rate = 7e-4,
                            .learning_rate_schedule = "constant",
                            .value_coefficient = 1.0,
                            .entropy_coefficient = 0.0,
                            .normalise_advantage = false};
  std::int64_t reference_batch = 0;

  void Declare(Options& options);
};

// Advantage Actor-Critic: one gradient step from each slab (the synchronous form of Mnih et al.
// 2016). The learning rate may grow with the square root of the batch (Stooke & Abbeel 2018,
// section 4.1).
class A2c final : public ActorCriticAlgorithm {
 public:
  A2c(const A2cConfig& config, const AlgorithmContext& context);

 private:
  void Loss(const Minibatch& minibatch, PolicyGradient& policy, LossStep& step) override;
  std::vector<std::string> loss_names() const override { return {"policy_loss", "value_loss"}; }
  double RateScale(double rows) const override;

  const std::int64_t reference_batch_;
};

}  // namespace menger
