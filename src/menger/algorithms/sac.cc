// Soft actor-critic (Haarnoja et al. 2018).
#include "menger/algorithms/sac.h"

#include <cmath>

namespace menger {
namespace {

enum NoiseUse { kNextActions, kActions };

}  // namespace

void SacConfig::Declare(Options& options) {
  common.Declare(options);
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
}

std::unique_ptr<PolicyMaker> Sac::MakePolicies(const SacConfig& /*config*/,
                                               const AlgorithmContext& context) {
  return std::make_unique<PathwisePolicies>(
      context, MakeSquashedGaussian(ActionScaling(context.environment).elements()),
      /*exploration=*/1);
}

Sac::Sac(const SacConfig& config, const AlgorithmContext& context)
    : PathwiseAlgorithm(config.common, context,
                        MakeSquashedGaussian(ActionScaling(context.environment).elements()),
                        /*exploration=*/1),
      config_(config),
      target_entropy_(config.target_entropy * distribution().elements()),
      log_temperature_(static_cast<float>(std::log(config.temperature))) {
  temperature_manifest_.Add("temperature/log", {1});
}

std::vector<ParameterGroup> Sac::parameter_groups() const {
  std::vector<ParameterGroup> groups = PathwiseAlgorithm::parameter_groups();
  groups.push_back({.name = "temperature", .count = 1});
  return groups;
}

double Sac::temperature() const { return std::exp(static_cast<double>(log_temperature_)); }

// reward + discounted soft value of the actor's next action.
void Sac::MakeTargets(std::span<float> targets) {
  noise_.resize(action_floats());
  next_actions_.resize(action_floats());
  next_log_probabilities_.resize(targets.size());
  const Matrix output = actor().Infer(batch().next_observations())[0];
  DrawNoise(kNextActions, noise_);
  Sample(output, noise_, next_actions_, next_log_probabilities_);
  NextValues(next_actions_, targets);
  const auto worth = static_cast<float>(temperature());
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const float soft = targets[row] - worth * next_log_probabilities_[row];
    targets[row] = batch().returns()[row] + batch().bootstraps()[row] * soft;
  }
}

std::vector<double> Sac::StepOthers(double learning_rate, UpdateRule& update) {
  const double temperature_before = temperature();
  noise_.resize(action_floats());
  DrawNoise(kActions, noise_);
  const ActorStep actor =
      StepActor({.judge = Judge::kSmallest, .noise = noise_, .temperature = temperature_before},
                learning_rate, update);
  const double entropy = update.Total(actor.entropy);
  if (config_.learn_temperature) {
    // Up where the entropy is below its target: the gradient of log_temperature * (entropy -
    // target), of which each learner gives as much as it has of the rows.
    const double share = batch().rows() / batch().rows_of_all();
    const auto gradient = static_cast<float>(actor.entropy - share * target_entropy_);
    update.Step(kTemperature,
                {.manifest = temperature_manifest_,
                 .parameters = {&log_temperature_, 1},
                 .gradients = {&gradient, 1}},
                learning_rate);
  }
  FollowTarget();
  return {actor.gradient_norm, entropy, temperature_before};
}

void Sac::SaveOwn(ArchiveWriter& archive) const {
  archive.Write("log_temperature", log_temperature_);
}

void Sac::LoadOwn(ArchiveReader& archive) { archive.Read("log_temperature", log_temperature_); }

}  // namespace menger
