// Advantage Actor-Critic (Mnih et al. 2016, synchronous; learning rate after Stooke & Abbeel 2018).
#include "menger/algorithms/a2c.h"

#include <cmath>

#include "menger/algorithms/losses.h"

namespace menger {

void A2cConfig::Declare(Options& options) {
  common.Declare(options);
  options.Add(
      "reference_batch", &reference_batch,
      {.minimum = 0,
       .unit = "rows",
       .consequence = "the learning rate is multiplied by sqrt(rows / this); 0: it is not"});
}

A2c::A2c(const A2cConfig& config, const AlgorithmContext& context)
    : ActorCriticAlgorithm(config.common, /*passes=*/{}, context),
      reference_batch_(config.reference_batch) {}

void A2c::Loss(const Minibatch& minibatch, PolicyGradient& policy, LossStep& step) {
  const double policy_loss =
      PolicyGradientLoss(policy.log_probabilities(), minibatch.advantages, minibatch.weights,
                         policy.log_probability_gradient());
  const double value_loss =
      ClippedValueLoss(policy.values(), minibatch.values, minibatch.returns, minibatch.weights,
                       /*clip=*/0, options().value_coefficient, policy.value_gradient());
  step.metrics = {policy_loss, value_loss};
}

double A2c::RateScale(double rows) const {
  return reference_batch_ == 0 ? 1 : std::sqrt(rows / static_cast<double>(reference_batch_));
}

}  // namespace menger
