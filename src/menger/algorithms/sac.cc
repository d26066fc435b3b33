// Soft actor-critic (Haarnoja et al. 2018).
#include "menger/algorithms/sac.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/schedule.h"
#include "menger/base/error.h"

namespace menger {
namespace {

enum NoiseUse { kNextActions, kActions };

double Mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void SacConfig::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the critics are asked"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of actor, critics and temperature"});
  options.Add("learning_rate_schedule", &learning_rate_schedule,
              {.choices = {"constant", "linear"},
               .consequence = "linear: falls to 0 at the end of the run"});
  options.Add("target_rate", &target_rate,
              {.minimum = 0,
               .maximum = 1,
               .above_minimum = true,
               .consequence = "how far the critics' target follows them in an update"});
  options.Add("critics", &critics,
              {.minimum = 1,
               .maximum = 100,
               .consequence = "the smallest of so many values counts: more are more careful"});
  options.Add("learn_temperature", &learn_temperature,
              {.consequence = "what entropy is worth follows from target_entropy"});
  options.Add("temperature", &temperature,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "what a nat of entropy is worth beside reward; where it is learned, "
                              "at the start"});
  options.Add("target_entropy", &target_entropy,
              {.unit = "nats",
               .consequence = "for each element of an action: where a learned temperature keeps "
                              "the entropy; lower is more certain"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
}

Sac::Sac(const SacConfig& config, const AlgorithmContext& context)
    : config_(config),
      model_({.discount = config.discount,
              .n_step = static_cast<int>(config.n_step),
              .critics = static_cast<int>(config.critics),
              .importance_exponent = config.importance_exponent},
             context, MakeSquashedGaussian(ActionScaling(context.environment).elements())),
      target_entropy_(config.target_entropy * model_.distribution().elements()),
      log_temperature_(static_cast<float>(std::log(config.temperature))) {
  temperature_manifest_.Add("temperature/log", {1});
}

std::int64_t Sac::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterGroup& group : parameter_groups()) count += group.count;
  return count;
}

std::vector<ParameterGroup> Sac::parameter_groups() const {
  std::vector<ParameterGroup> groups = model_.parameter_groups();
  groups.push_back({.name = "temperature", .count = 1});
  return groups;
}

double Sac::temperature() const { return std::exp(static_cast<double>(log_temperature_)); }

std::vector<std::string> Sac::metric_names() const {
  return {"critic_loss", "mean_value",           "entropy",
          "temperature", "critic_gradient_norm", "actor_gradient_norm"};
}

Metrics Sac::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  const double rate = Scheduled(config_.learning_rate, config_.learning_rate_schedule, progress);
  model_.BeginUpdate(batch, progress);
  const auto rows = static_cast<std::size_t>(model_.rows());
  const std::size_t elements = model_.distribution().elements();
  for (auto* const of_actions : {&noise_, &sampled_, &action_gradient_}) {
    of_actions->resize(rows * elements);
  }
  for (auto* const of_rows : {&log_probabilities_, &targets_, &log_probability_gradient_}) {
    of_rows->resize(rows);
  }
  output_gradient_.resize(rows * model_.distribution().head().width);

  MakeTargets();
  const auto critics = model_.StepCritics(targets_, rate, update);
  const double temperature_before = temperature();
  const ActorStep actor = StepActor(rate, update);
  if (config_.learn_temperature) StepTemperature(actor.entropy, rate, update);
  model_.target().Follow(model_.critics(), static_cast<float>(config_.target_rate));
  model_.EndUpdate();
  return {{"critic_loss", critics.loss},
          {"mean_value", critics.mean_value},
          {"entropy", actor.entropy},
          {"temperature", temperature_before},
          {"critic_gradient_norm", critics.gradient_norm},
          {"actor_gradient_norm", actor.gradient_norm}};
}

// reward + discounted soft value of the actor's next action.
void Sac::MakeTargets() {
  const auto outputs = model_.actor().Infer(model_.next_observations());
  model_.DrawNoise(kNextActions, noise_);
  model_.distribution().Sample(outputs[0], noise_.data(), sampled_.data(),
                               log_probabilities_.data());
  model_.NextValues(sampled_, targets_);
  const auto temperature = static_cast<float>(this->temperature());
  for (std::size_t row = 0; row < targets_.size(); ++row) {
    const float soft = targets_[row] - temperature * log_probabilities_[row];
    targets_[row] = model_.returns()[row] + model_.bootstraps()[row] * soft;
  }
}

Sac::ActorStep Sac::StepActor(double learning_rate, UpdateRule& update) {
  const Matrix output = model_.actor().Forward(model_.observations())[0];
  model_.DrawNoise(kActions, noise_);
  model_.distribution().Sample(output, noise_.data(), sampled_.data(), log_probabilities_.data());
  ActorStep step;
  step.entropy = -Mean(log_probabilities_);
  step.mean_value =
      model_.ActionGradient(sampled_, PathwiseActorCritic::Judge::kSmallest, action_gradient_);
  std::fill(log_probability_gradient_.begin(), log_probability_gradient_.end(),
            static_cast<float>(temperature() / model_.rows()));
  const Matrix gradient{.data = output_gradient_.data(),
                        .rows = output.rows,
                        .columns = output.columns,
                        .stride = output.columns};
  model_.distribution().Gradient(output, noise_.data(), sampled_.data(), action_gradient_.data(),
                                 log_probability_gradient_.data(), gradient);
  model_.actor().Backward({&gradient, 1});
  step.gradient_norm = update.Step(model_.actor(), learning_rate, PathwiseActorCritic::kActor);
  return step;
}

// Up where the entropy is below its target. The gradient of log_temperature * (entropy - target).
void Sac::StepTemperature(double entropy, double learning_rate, UpdateRule& update) {
  const auto gradient = static_cast<float>(entropy - target_entropy_);
  update.Step(kTemperature,
              {.manifest = temperature_manifest_,
               .parameters = {&log_temperature_, 1},
               .gradients = {&gradient, 1}},
              learning_rate);
}

void Sac::Save(ArchiveWriter& archive) const {
  model_.Save(archive);
  archive.Write("log_temperature", log_temperature_);
}

void Sac::Load(ArchiveReader& archive) {
  model_.Load(archive);
  archive.Read("log_temperature", log_temperature_);
}

void Sac::LoadParameters(ArchiveReader& archive) {
  model_.LoadParameters(archive);
  archive.Read("log_temperature", log_temperature_);
  Publish();
}

}  // namespace menger
