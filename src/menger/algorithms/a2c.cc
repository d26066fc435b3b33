// Advantage Actor-Critic (Mnih et al. 2016, synchronous; learning rate after Stooke & Abbeel 2018).
#include "menger/algorithms/a2c.h"

#include <cmath>
#include <numeric>

#include "menger/algorithms/losses.h"
#include "menger/algorithms/schedule.h"

namespace menger {

void A2cConfig::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add(
      "gae_lambda", &gae_lambda,
      {.minimum = 0,
       .maximum = 1,
       .consequence = "1: returns to the end of the slab; smaller trusts the value function more"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  options.Add("learning_rate_schedule", &learning_rate_schedule,
              {.choices = {"constant", "linear"},
               .consequence = "linear: falls to 0 at the end of the run"});
  options.Add(
      "reference_batch", &reference_batch,
      {.minimum = 0,
       .unit = "rows",
       .consequence = "the learning rate is multiplied by sqrt(rows / this); 0: it is not"});
  options.Add(
      "value_coefficient", &value_coefficient,
      {.minimum = 0,
       .consequence = "weight of the value loss, which is half the squared error: twice the "
                      "vf_coef of other libraries"});
  options.Add("entropy_coefficient", &entropy_coefficient,
              {.minimum = 0, .consequence = "larger explores longer"});
  options.Add("normalise_advantage", &normalise_advantage,
              {.consequence = "advantages of a slab get mean 0 and deviation 1"});
  options.Add("initial_log_std", &initial_log_std,
              {.minimum = -20,
               .maximum = 2,
               .consequence = "log standard deviation of continuous actions at the start"});
}

A2c::A2c(const A2cConfig& config, const AlgorithmContext& context)
    : config_(config),
      model_(context, config.discount, config.initial_log_std),
      batch_(model_),
      gradient_(model_) {}

std::int64_t A2c::parameter_count() const { return model_.network().manifest().size(); }

double A2c::LearningRate(double progress, double rows) const {
  const double rate = Scheduled(config_.learning_rate, config_.learning_rate_schedule, progress);
  if (config_.reference_batch == 0) return rate;
  return rate * std::sqrt(rows / static_cast<double>(config_.reference_batch));
}

struct A2c::Losses {
  double policy = 0;
  double value = 0;
  double entropy = 0;
  double gradient_norm = 0;
};

A2c::Losses A2c::TakeStep(UpdateRule& update, double learning_rate) {
  columns_.resize(batch_.columns());
  std::iota(columns_.begin(), columns_.end(), 0);
  Minibatch minibatch = model_.network().state_width() > 0 ? batch_.GatherSequences(columns_)
                                                           : batch_.GatherRows(batch_.valid_rows());
  gradient_.Evaluate(minibatch);

  if (config_.normalise_advantage)
    NormaliseAdvantages(minibatch.advantages, minibatch.weights, update);
  Losses losses;
  losses.policy = PolicyGradientLoss(gradient_.log_probabilities(), minibatch.advantages,
                                     minibatch.weights, gradient_.log_probability_gradient());
  losses.value =
      ClippedValueLoss(gradient_.values(), minibatch.values, minibatch.returns, minibatch.weights,
                       /*clip=*/0, config_.value_coefficient, gradient_.value_gradient());
  losses.entropy = WeightedSum(gradient_.entropies(), minibatch.weights);
  gradient_.Backward(minibatch, config_.entropy_coefficient);
  losses.gradient_norm = update.Step(model_.network(), learning_rate);
  return losses;
}

Metrics A2c::Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) {
  batch_.Prepare(slabs, config_.discount, config_.gae_lambda);
  const double learning_rate =
      LearningRate(progress, static_cast<double>(batch_.valid_rows().size()));
  Losses losses;
  if (!batch_.valid_rows().empty()) losses = TakeStep(update, learning_rate);
  batch_.UpdateObservationStatistics();
  return {{"policy_loss", losses.policy},     {"value_loss", losses.value},
          {"entropy", losses.entropy},        {"gradient_norm", losses.gradient_norm},
          {"learning_rate", learning_rate},   {"explained_variance", batch_.explained_variance()},
          {"mean_value", batch_.mean_value()}};
}

}  // namespace menger
