// Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018).
#include "menger/algorithms/td3.h"

#include <algorithm>

namespace menger {
namespace {

enum NoiseUse { kNextActions };

}  // namespace

void Td3Config::Declare(Options& options) {
  common.Declare(options);
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
}

std::unique_ptr<PolicyMaker> Td3::MakePolicies(const Td3Config& config,
                                               const AlgorithmContext& context) {
  return std::make_unique<PathwisePolicies>(
      context, MakeSquashedPoint(ActionScaling(context.environment).elements()),
      config.exploration_noise);
}

Td3::Td3(const Td3Config& config, const AlgorithmContext& context)
    : PathwiseAlgorithm(config.common, context,
                        MakeSquashedPoint(ActionScaling(context.environment).elements()),
                        config.exploration_noise),
      config_(config),
      target_actor_(actor(), context.threads) {}

// reward + discounted value of the target actor's next action, smoothed.
void Td3::MakeTargets(std::span<float> targets) {
  noise_.resize(action_floats());
  next_actions_.resize(action_floats());
  const Matrix output = target_actor_.network().Infer(batch().next_observations())[0];
  DrawNoise(kNextActions, noise_);
  const auto scale = static_cast<float>(config_.target_noise);
  const auto most = static_cast<float>(config_.target_noise_clip);
  for (float& noise : noise_) noise = std::clamp(scale * noise, -most, most);
  Sample(output, noise_, next_actions_, /*log_probabilities=*/{});
  NextValues(next_actions_, targets);
  for (std::size_t row = 0; row < targets.size(); ++row) {
    targets[row] = batch().returns()[row] + batch().bootstraps()[row] * targets[row];
  }
}

std::vector<double> Td3::StepOthers(double learning_rate, UpdateRule& update) {
  if ((updates() + 1) % config_.policy_delay == 0) {
    const ActorStep step = StepActor({.judge = Judge::kFirst, .noise = {}}, learning_rate, update);
    actor_value_ = update.Total(step.value);
    actor_norm_ = step.gradient_norm;
    FollowTarget();
    target_actor_.Follow(actor(), static_cast<float>(target_rate()));
  }
  return {actor_norm_, actor_value_};
}

void Td3::SaveOwn(ArchiveWriter& archive) const {
  target_actor_.Save(archive, "target_actor");
  archive.Write("actor_value", actor_value_);
  archive.Write("actor_norm", actor_norm_);
}

void Td3::LoadOwn(ArchiveReader& archive) {
  target_actor_.Load(archive, "target_actor");
  archive.Read("actor_value", actor_value_);
  archive.Read("actor_norm", actor_norm_);
}

}  // namespace menger
