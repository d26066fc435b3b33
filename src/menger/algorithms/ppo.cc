// Proximal Policy Optimisation, clipped objective (Schulman et al. 2017, eq. 7; details after Huang
// et al. 2022).
#include "menger/algorithms/ppo.h"

#include "menger/algorithms/losses.h"

namespace menger {

void PpoConfig::Declare(Options& options) {
  common.Declare(options);
  options.Add(
      "epochs", &epochs,
      {.minimum = 1,
       .maximum = 1000,
       .unit = "passes",
       .consequence =
           "more learns more from each slab, and strays further from the policy that acted"});
  options.Add("minibatch_size", &minibatch_size,
              {.minimum = 1,
               .unit = "rows",
               .consequence = "larger is faster and less noisy, with fewer updates; environments x "
                              "horizon at most"});
  options.Add("clip", &clip,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "how far a probability ratio may move before its gradient stops"});
  Schedule::Declare(options, "clip_schedule", &clip_schedule, "the clip");
  options.Add("value_clip", &value_clip,
              {.minimum = 0, .consequence = "how far a value may move in one update; 0: no limit"});
  options.Add("target_kl", &target_kl,
              {.minimum = 0,
               .unit = "nats",
               .consequence = "ends an update whose policy strayed further than this; 0: never"});
}

Ppo::Ppo(const PpoConfig& config, const AlgorithmContext& context)
    : ActorCriticAlgorithm(config.common,
                           {.epochs = config.epochs, .minibatch_size = config.minibatch_size},
                           context),
      config_(config),
      clip_schedule_(config.clip_schedule) {}

void Ppo::Loss(const Minibatch& minibatch, PolicyGradient& policy, LossStep& step) {
  const SurrogateStatistics surrogate = ClippedSurrogate(
      policy.log_probabilities(), minibatch.log_probabilities, minibatch.advantages,
      minibatch.weights, config_.clip * clip_schedule_.At(step.progress),
      policy.log_probability_gradient());
  const double value_loss =
      ClippedValueLoss(policy.values(), minibatch.values, minibatch.returns, minibatch.weights,
                       config_.value_clip, options().value_coefficient, policy.value_gradient());
  step.metrics = {surrogate.loss, value_loss, surrogate.approximate_kl, surrogate.clip_fraction};
  if (config_.target_kl > 0) {  // As in Spinning Up.
    step.stray = step.update.Total(surrogate.approximate_kl) > 1.5 * config_.target_kl;
  }
}

}  // namespace menger
