#include "menger/algorithms/actor_critic_algorithm.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "menger/algorithms/losses.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kShuffleStream = 2;  // Spawned from the run's seed: order of minibatches.

}  // namespace

void ActorCriticOptions::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add(
      "gae_lambda", &gae_lambda,
      {.minimum = 0,
       .maximum = 1,
       .consequence = "0 trusts the value function, 1 the rewards alone, to the end of the slab"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  Schedule::Declare(options, "learning_rate_schedule", &learning_rate_schedule,
                    "the learning rate");
  options.Add(
      "value_coefficient", &value_coefficient,
      {.minimum = 0,
       .consequence = "weight of the value loss, which is half the squared error: twice the "
                      "vf_coef of libraries that do not halve it"});
  options.Add("entropy_coefficient", &entropy_coefficient,
              {.minimum = 0, .consequence = "larger explores longer"});
  options.Add("normalise_advantage", &normalise_advantage,
              {.consequence = "advantages of a minibatch get mean 0 and deviation 1"});
  options.Add("initial_log_std", &initial_log_std,
              {.minimum = -20,
               .maximum = 2,
               .consequence = "log standard deviation of continuous actions at the start"});
}

ActorCriticAlgorithm::ActorCriticAlgorithm(const ActorCriticOptions& options, const Passes& passes,
                                           const AlgorithmContext& context)
    : options_(options),
      passes_(passes),
      learning_rate_schedule_(options.learning_rate_schedule),
      model_(context, options.discount, options.initial_log_std),
      batch_(model_),
      gradient_(model_),
      shuffle_(SeedSequence(context.seed).Spawn(kShuffleStream)) {}

struct ActorCriticAlgorithm::Totals {
  std::vector<double> losses;
  double entropy = 0;
  double gradient_norm = 0;
  int minibatches = 0;
};

std::int64_t ActorCriticAlgorithm::MinibatchCount() const {
  const auto rows = static_cast<std::int64_t>(batch_.valid_rows().size());
  if (rows == 0 || passes_.minibatch_size == 0) return std::min<std::int64_t>(rows, 1);
  const bool recurrent = model_.network().state_width() > 0;
  const std::int64_t items = recurrent ? batch_.columns() : rows;
  const std::int64_t rows_each = recurrent ? batch_.steps() : 1;
  const std::int64_t size = std::max<std::int64_t>(1, passes_.minibatch_size / rows_each);
  return (items + size - 1) / size;
}

Minibatch ActorCriticAlgorithm::Gather(std::int64_t index, std::int64_t count) {
  const auto items = static_cast<std::int64_t>(order_.size());
  const auto begin = static_cast<std::size_t>(items * index / count);
  const auto end = static_cast<std::size_t>(items * (index + 1) / count);
  if (index == count || begin == end) return {};
  const auto chosen = std::span<const std::int32_t>(order_).subspan(begin, end - begin);
  const Minibatch minibatch = model_.network().state_width() > 0 ? batch_.GatherSequences(chosen)
                                                                 : batch_.GatherRows(chosen);
  model_.network().Prefetch(minibatch.input);
  return minibatch;
}

void ActorCriticAlgorithm::AddLosses(const LossStep& step, Totals& totals) const {
  if (step.metrics.size() != totals.losses.size()) {
    throw Internal("the loss set {} metrics; loss_names() has {}: {}", step.metrics.size(),
                   totals.losses.size(), fmt::join(loss_names(), ", "));
  }
  for (std::size_t i = 0; i < totals.losses.size(); ++i) totals.losses[i] += step.metrics[i];
}

bool ActorCriticAlgorithm::Epoch(std::int64_t minibatches, double learning_rate, LossStep& step,
                                 Totals& totals) {
  if (model_.network().state_width() > 0 && !batch_.valid_rows().empty()) {
    order_.resize(batch_.columns());
    std::iota(order_.begin(), order_.end(), 0);
  } else {
    order_.assign(batch_.valid_rows().begin(), batch_.valid_rows().end());
  }
  if (passes_.minibatch_size > 0) shuffle_.Shuffle(std::span<std::int32_t>(order_));

  Minibatch minibatch = Gather(0, minibatches);
  for (std::int64_t next = 1; next <= minibatches; ++next) {
    minibatch.Weigh(step.update);
    gradient_.Evaluate(minibatch);
    if (options_.normalise_advantage) {
      NormaliseAdvantages(minibatch.advantages, minibatch.weights, step.update);
    }
    Loss(minibatch, gradient_, step);
    AddLosses(step, totals);
    totals.entropy += WeightedSum(gradient_.entropies(), minibatch.weights);
    ++totals.minibatches;
    if (step.stray) return false;

    gradient_.Backward(minibatch, options_.entropy_coefficient);
    minibatch = Gather(next, minibatches);  // While a device computes.
    totals.gradient_norm += step.update.Step(model_.network(), learning_rate);
  }
  return true;
}

Metrics ActorCriticAlgorithm::Learn(std::span<Slab* const> slabs, UpdateRule& update,
                                    double progress) {
  batch_.Prepare(slabs, update);
  EstimateAdvantages(batch_);
  const std::int64_t minibatches = update.Agree(MinibatchCount());
  const double learning_rate =
      options_.learning_rate * learning_rate_schedule_.At(progress) *
      RateScale(update.Total(static_cast<double>(batch_.valid_rows().size())));
  Totals totals{.losses = std::vector(loss_names().size(), 0.0)};
  LossStep step{.progress = progress, .update = update, .metrics = totals.losses};
  std::int64_t epochs = 0;
  while (epochs < passes_.epochs && minibatches > 0) {
    ++epochs;
    if (!Epoch(minibatches, learning_rate, step, totals)) break;
  }
  batch_.UpdateObservationStatistics(update);

  totals.losses.push_back(totals.entropy);  // Each learner's share of what all have together.
  update.Sum(totals.losses);
  const double count = std::max(1, totals.minibatches);
  std::vector<double> values = std::move(totals.losses);  // The entropy is their last.
  for (double& value : values) value /= count;
  values.insert(values.end(),
                {totals.gradient_norm / count, learning_rate, batch_.explained_variance(),
                 batch_.mean_value(), static_cast<double>(epochs)});
  Metrics metrics;
  for (std::string& name : metric_names()) {
    metrics.emplace_back(std::move(name), values[metrics.size()]);
  }
  return metrics;
}

std::vector<std::string> ActorCriticAlgorithm::metric_names() const {
  std::vector<std::string> names = loss_names();
  names.insert(names.end(), {"entropy", "gradient_norm", "learning_rate", "explained_variance",
                             "mean_value", "epochs"});
  return names;
}

void ActorCriticAlgorithm::Save(ArchiveWriter& archive) const {
  model_.Save(archive.Scope("model"));
  archive.Write("shuffle", shuffle_.Save());
}

void ActorCriticAlgorithm::Load(ArchiveReader& archive) {
  model_.Load(archive.Scope("model"));
  shuffle_.Restore(archive.Read<RandomState>("shuffle"));
}

void ActorCriticAlgorithm::BeforeCollection(UpdateRule& update) {
  if (!update.Pull(0, network().parameters())) return;
  network().ParametersChanged();
  Publish();
}

void ActorCriticAlgorithm::LoadParameters(ArchiveReader& archive) {
  model_.LoadParameters(archive.Scope("model"));
}

}  // namespace menger
