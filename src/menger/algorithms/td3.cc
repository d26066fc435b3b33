// Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018).
#include "menger/algorithms/td3.h"

#include <algorithm>

#include "menger/algorithms/schedule.h"

namespace menger {
namespace {

enum NoiseUse { kNextActions };

}  // namespace

void Td3Config::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the critics are asked"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of actor and critics"});
  options.Add("learning_rate_schedule", &learning_rate_schedule,
              {.choices = {"constant", "linear"},
               .consequence = "linear: falls to 0 at the end of the run"});
  options.Add("target_rate", &target_rate,
              {.minimum = 0,
               .maximum = 1,
               .above_minimum = true,
               .consequence = "how far targets follow actor and critics in a step"});
  options.Add("critics", &critics,
              {.minimum = 1,
               .maximum = 100,
               .consequence = "the smallest of so many values counts: more are more careful"});
  options.Add("policy_delay", &policy_delay,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "updates",
               .consequence = "updates of the critics for each of actor and targets"});
  options.Add("exploration_noise", &exploration_noise,
              {.minimum = 0,
               .maximum = 10,
               .consequence = "standard deviation of what is added to actions while training"});
  options.Add("target_noise", &target_noise,
              {.minimum = 0,
               .maximum = 10,
               .consequence = "standard deviation of what is added to next actions: values of "
                              "neighbours are made alike"});
  options.Add("target_noise_clip", &target_noise_clip,
              {.minimum = 0, .maximum = 10, .consequence = "the largest of that"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
}

Td3::Td3(const Td3Config& config, const AlgorithmContext& context)
    : config_(config),
      model_({.discount = config.discount,
              .n_step = static_cast<int>(config.n_step),
              .critics = static_cast<int>(config.critics),
              .exploration = config.exploration_noise,
              .importance_exponent = config.importance_exponent},
             context, MakeSquashedPoint(ActionScaling(context.environment).elements())),
      target_actor_(model_.actor(), context.threads) {}

std::int64_t Td3::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterGroup& group : parameter_groups()) count += group.count;
  return count;
}

std::vector<std::string> Td3::metric_names() const {
  return {"critic_loss", "mean_value", "actor_value", "critic_gradient_norm",
          "actor_gradient_norm"};
}

Metrics Td3::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  const double rate = Scheduled(config_.learning_rate, config_.learning_rate_schedule, progress);
  model_.BeginUpdate(batch, progress);
  const auto rows = static_cast<std::size_t>(model_.rows());
  const std::size_t elements = model_.distribution().elements();
  for (auto* const of_actions : {&noise_, &actions_, &action_gradient_, &output_gradient_}) {
    of_actions->resize(rows * elements);
  }
  targets_.resize(rows);

  MakeTargets();
  const auto critics = model_.StepCritics(targets_, rate, update);
  if ((model_.updates() + 1) % config_.policy_delay == 0) {
    StepActor(rate, update);
    const auto target_rate = static_cast<float>(config_.target_rate);
    model_.target().Follow(model_.critics(), target_rate);
    target_actor_.Follow(model_.actor(), target_rate);
  }
  model_.EndUpdate();
  return {{"critic_loss", critics.loss},
          {"mean_value", critics.mean_value},
          {"actor_value", actor_value_},
          {"critic_gradient_norm", critics.gradient_norm},
          {"actor_gradient_norm", actor_norm_}};
}

// reward + discounted value of the target actor's next action, smoothed.
void Td3::MakeTargets() {
  const auto outputs = target_actor_.network().Infer(model_.next_observations());
  model_.DrawNoise(kNextActions, noise_);
  const auto scale = static_cast<float>(config_.target_noise);
  const auto most = static_cast<float>(config_.target_noise_clip);
  for (float& noise : noise_) noise = std::clamp(scale * noise, -most, most);
  model_.distribution().Sample(outputs[0], noise_.data(), actions_.data(),
                               /*log_probability=*/nullptr);
  model_.NextValues(actions_, targets_);
  for (std::size_t row = 0; row < targets_.size(); ++row) {
    targets_[row] = model_.returns()[row] + model_.bootstraps()[row] * targets_[row];
  }
}

void Td3::StepActor(double learning_rate, UpdateRule& update) {
  const Matrix output = model_.actor().Forward(model_.observations())[0];
  model_.distribution().Mode(output, actions_.data());
  actor_value_ =
      model_.ActionGradient(actions_, PathwiseActorCritic::Judge::kFirst, action_gradient_);
  const Matrix gradient{.data = output_gradient_.data(),
                        .rows = output.rows,
                        .columns = output.columns,
                        .stride = output.columns};
  model_.distribution().Gradient(output, /*noise=*/nullptr, actions_.data(),
                                 action_gradient_.data(), /*log_probability_gradient=*/nullptr,
                                 gradient);
  model_.actor().Backward({&gradient, 1});
  actor_norm_ = update.Step(model_.actor(), learning_rate, PathwiseActorCritic::kActor);
}

void Td3::Save(ArchiveWriter& archive) const {
  model_.Save(archive);
  target_actor_.Save(archive, "target_actor");
  archive.Write("actor_value", actor_value_);
  archive.Write("actor_norm", actor_norm_);
}

void Td3::Load(ArchiveReader& archive) {
  model_.Load(archive);
  target_actor_.Load(archive, "target_actor");
  archive.Read("actor_value", actor_value_);
  archive.Read("actor_norm", actor_norm_);
}

void Td3::LoadParameters(ArchiveReader& archive) {
  model_.LoadParameters(archive);
  target_actor_.Copy(model_.actor());
  Publish();
}

}  // namespace menger
