// Proximal Policy Optimisation, clipped objective (Schulman et al. 2017, eq. 7; details after Huang
// et al. 2022).
#include "menger/algorithms/ppo.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "menger/algorithms/losses.h"
#include "menger/algorithms/schedule.h"

namespace menger {
namespace {

constexpr std::uint64_t kShuffleStream =
    2;  // Spawned from the run's seed: the order of minibatches.

}  // namespace

void PpoConfig::Declare(Options& options) {
  const std::vector<std::string> schedules = {"constant", "linear"};
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("gae_lambda", &gae_lambda,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "0 trusts the value function, 1 the rewards alone"});
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
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  options.Add("learning_rate_schedule", &learning_rate_schedule,
              {.choices = schedules, .consequence = "linear: falls to 0 at the end of the run"});
  options.Add("clip", &clip,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "how far a probability ratio may move before its gradient stops"});
  options.Add("clip_schedule", &clip_schedule,
              {.choices = schedules, .consequence = "linear: falls to 0 at the end of the run"});
  options.Add("value_clip", &value_clip,
              {.minimum = 0, .consequence = "how far a value may move in one update; 0: no limit"});
  options.Add("value_coefficient", &value_coefficient,
              {.minimum = 0, .consequence = "weight of the value loss"});
  options.Add("entropy_coefficient", &entropy_coefficient,
              {.minimum = 0, .consequence = "larger explores longer"});
  options.Add("normalise_advantage", &normalise_advantage,
              {.consequence = "advantages of a minibatch get mean 0 and deviation 1"});
  options.Add("target_kl", &target_kl,
              {.minimum = 0,
               .unit = "nats",
               .consequence = "ends an update whose policy strayed further than this; 0: never"});
  options.Add("initial_log_std", &initial_log_std,
              {.minimum = -20,
               .maximum = 2,
               .consequence = "log standard deviation of continuous actions at the start"});
}

Ppo::Ppo(const PpoConfig& config, const AlgorithmContext& context)
    : config_(config),
      model_(context, config.discount, config.initial_log_std),
      batch_(model_),
      gradient_(model_),
      shuffle_(SeedSequence(context.seed).Spawn(kShuffleStream)) {}

std::int64_t Ppo::parameter_count() const { return model_.network().manifest().size(); }

struct Ppo::Totals {
  SurrogateStatistics policy;
  double value_loss = 0;
  double entropy = 0;
  double gradient_norm = 0;
  int minibatches = 0;
};

Minibatch Ppo::Gather(std::size_t begin, std::size_t count) {
  if (begin >= order_.size()) return {};
  const auto chosen =
      std::span<const std::int32_t>(order_).subspan(begin, std::min(count, order_.size() - begin));
  const Minibatch minibatch = model_.network().state_width() > 0 ? batch_.GatherSequences(chosen)
                                                                 : batch_.GatherRows(chosen);
  model_.network().Prefetch(minibatch.input);
  return minibatch;
}

bool Ppo::Epoch(UpdateRule& update, double progress, Totals& totals) {
  // What is shuffled: rows, or whole columns where the network has a memory.
  const bool recurrent = model_.network().state_width() > 0;
  if (recurrent) {
    order_.resize(batch_.columns());
    std::iota(order_.begin(), order_.end(), 0);
  } else {
    order_.assign(batch_.valid_rows().begin(), batch_.valid_rows().end());
  }
  shuffle_.Shuffle(std::span<std::int32_t>(order_));
  const std::int64_t rows_each = recurrent ? batch_.steps() : 1;
  const auto size =
      static_cast<std::size_t>(std::max<std::int64_t>(1, config_.minibatch_size / rows_each));

  const double learning_rate =
      Scheduled(config_.learning_rate, config_.learning_rate_schedule, progress);
  const double clip = Scheduled(config_.clip, config_.clip_schedule, progress);
  Minibatch minibatch = Gather(0, size);
  for (std::size_t next = size; minibatch.rows > 0; next += size) {
    gradient_.Evaluate(minibatch);

    if (config_.normalise_advantage)
      NormaliseAdvantages(minibatch.advantages, minibatch.weights, update);
    const SurrogateStatistics policy = ClippedSurrogate(
        gradient_.log_probabilities(), minibatch.log_probabilities, minibatch.advantages,
        minibatch.weights, clip, gradient_.log_probability_gradient());
    totals.value_loss +=
        ClippedValueLoss(gradient_.values(), minibatch.values, minibatch.returns, minibatch.weights,
                         config_.value_clip, config_.value_coefficient, gradient_.value_gradient());
    totals.entropy += WeightedSum(gradient_.entropies(), minibatch.weights);
    totals.policy.loss += policy.loss;
    totals.policy.approximate_kl += policy.approximate_kl;
    totals.policy.clip_fraction += policy.clip_fraction;
    ++totals.minibatches;

    std::array<double, 2> kl = {policy.approximate_kl, 1.0};
    if (config_.target_kl > 0) {
      update.Sum(kl);
      if (kl[0] / kl[1] > 1.5 * config_.target_kl) return false;  // As in Spinning Up.
    }
    gradient_.Backward(minibatch, config_.entropy_coefficient);
    minibatch = Gather(next, size);  // While a device computes.
    totals.gradient_norm += update.Step(model_.network(), learning_rate);
  }
  return true;
}

Metrics Ppo::Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) {
  batch_.Prepare(slabs, config_.discount, config_.gae_lambda);
  Totals totals;
  std::int64_t epochs = 0;
  while (epochs < config_.epochs && !batch_.valid_rows().empty()) {
    ++epochs;
    if (!Epoch(update, progress, totals)) break;
  }
  batch_.UpdateObservationStatistics();

  const double count = std::max(1, totals.minibatches);
  return {{"policy_loss", totals.policy.loss / count},
          {"value_loss", totals.value_loss / count},
          {"entropy", totals.entropy / count},
          {"approximate_kl", totals.policy.approximate_kl / count},
          {"clip_fraction", totals.policy.clip_fraction / count},
          {"gradient_norm", totals.gradient_norm / count},
          {"explained_variance", batch_.explained_variance()},
          {"mean_value", batch_.mean_value()},
          {"epochs", static_cast<double>(epochs)}};
}

void Ppo::Save(ArchiveWriter& archive) const {
  model_.Save(archive.Scope("model"));
  archive.Write("shuffle", shuffle_.Save());
}

void Ppo::Load(ArchiveReader& archive) {
  model_.Load(archive.Scope("model"));
  shuffle_.Restore(archive.Read<RandomState>("shuffle"));
}

}  // namespace menger
