// Deep Q-learning and its family (Mnih et al. 2015 to Hessel et al. 2018).
#include "menger/algorithms/dqn.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/q_losses.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint32_t kNoiseStream = 4;  // Of CounterRandom.

// Uses of noise in one update: each has draws of its own.
enum NoiseUse { kSelection, kTarget, kLoss, kNoiseUses };

ActionValues ValuesFor(const DqnConfig& config, const EnvironmentSpec& environment) {
  ValuePolicies::Check(environment);
  ActionValues values{.actions = static_cast<int>(OnlyAction(environment).counts[0]),
                      .duelling = config.duelling};
  if (config.distribution == "c51") {
    values.model = ReturnModel::kCategorical;
    values.atoms = static_cast<int>(config.atoms);
    values.support = {.minimum = static_cast<float>(config.value_minimum),
                      .maximum = static_cast<float>(config.value_maximum),
                      .atoms = values.atoms};
    if (config.value_minimum >= config.value_maximum) {
      throw InvalidArgument("dqn.value_minimum = {} is not below dqn.value_maximum = {}",
                            config.value_minimum, config.value_maximum);
    }
  } else if (config.distribution == "qr") {
    values.model = ReturnModel::kQuantiles;
    values.atoms = static_cast<int>(config.quantiles);
  }
  return values;
}

ValuePolicies::Options PolicyOptions(const DqnConfig& config, const EnvironmentSpec& environment) {
  ValuePolicies::Options options{.values = ValuesFor(config, environment),
                                 .noisy_sigma = {},
                                 .noise_per_environment = config.noise_per_environment,
                                 .epsilon_spread = config.epsilon.spread,
                                 .evaluation_epsilon = config.epsilon.evaluation};
  if (config.noisy) options.noisy_sigma = config.noisy_sigma;
  return options;
}

NoisyNetwork* Noisy(const DqnConfig& config, Network& network) {
  return config.noisy ? static_cast<NoisyNetwork*>(&network) : nullptr;
}

}  // namespace

std::unique_ptr<PolicyMaker> Dqn::MakePolicies(const DqnConfig& config,
                                               const AlgorithmContext& context) {
  return std::make_unique<ValuePolicies>(context, PolicyOptions(config, context.environment));
}

Dqn::Dqn(const DqnConfig& config, const AlgorithmContext& context)
    : config_(config),
      learning_rate_schedule_(config.learning_rate_schedule),
      epsilon_over_run_(config.epsilon),
      policies_(context, PolicyOptions(config, context.environment)),
      loss_(MakeReturnLoss(values(), config.huber_delta)),
      format_(context.environment, TransitionsFor(static_cast<int>(config.n_step), context)),
      published_(policies_.model(), context.threads, static_cast<float>(config.epsilon.start)),
      target_(network(), context.threads),
      noisy_(Noisy(config, network())),
      target_noisy_(Noisy(config, target_.network())),
      noise_random_(context.seed, kNoiseStream),
      epsilon_(static_cast<float>(config.epsilon.start)),
      batch_(format_, published_, config.discount, config.importance_exponent) {}

std::unique_ptr<SlabWriter> Dqn::MakeWriter(const SlabWriterContext& context) const {
  std::unique_ptr<OwnErrors> errors;
  if (context.own_errors_by != nullptr) {
    errors = std::make_unique<OwnErrors>(
        OwnErrorRule{.n_step = static_cast<int>(config_.n_step), .discount = config_.discount},
        context.environments, TransitionWriter::HistoryOf(format_), policies_,
        *context.own_errors_by);
  }
  return std::make_unique<TransitionWriter>(format_, context, std::move(errors));
}

std::vector<std::string> Dqn::metric_names() const {
  return {"loss", "mean_value", "mean_priority", "gradient_norm", "epsilon"};
}

Metrics Dqn::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  batch_.Take(batch, progress, update);
  const auto rows = static_cast<std::size_t>(batch_.rows());
  Reserve(rows);
  double sums[3] = {};  // Of losses, values and priorities.
  if (rows > 0) {
    ChooseNextAtoms();
    network().Prefetch(batch_.observations());  // Comes while targets are made.
    loss_->Targets(next_, batch_.returns(), batch_.bootstraps(), targets_);

    DrawNoise(noisy_, kLoss);
    const std::span<const Matrix> outputs = network().Forward(batch_.observations());
    values().Combine(outputs, combined_);
    sums[0] = Loss();
    const auto atoms = static_cast<std::size_t>(values().atoms);
    for (std::size_t i = 0; i < rows; ++i) {
      sums[1] += values().Mean(std::span(taken_).subspan(i * atoms, atoms));
      sums[2] += priorities_[i];
    }
    Backward(outputs);
  } else {
    std::ranges::fill(network().gradients(), 0.0F);
  }
  const double gradient_norm =
      update.Step(network(), config_.learning_rate * learning_rate_schedule_.At(progress));
  update.Sum(sums);

  if (++updates_ % config_.target_every == 0) target_.Copy(network());
  return {{"loss", sums[0]},
          {"mean_value", sums[1] / batch_.rows_of_all()},
          {"mean_priority", sums[2] / batch_.rows_of_all()},
          {"gradient_norm", gradient_norm},
          {"epsilon", epsilon_}};
}

// The atoms of the best next action, as the target network has them (van Hasselt et al. 2016, eq. 4
// where the network itself says which is best).
void Dqn::ChooseNextAtoms() {
  const NetworkInput next = batch_.next_observations();
  if (config_.double_q) {
    DrawNoise(noisy_, kSelection);
    values().Combine(network().Infer(next), combined_);
    values().Means(combined_, means_);
  }
  DrawNoise(target_noisy_, kTarget);
  values().Combine(target_.network().Infer(next), combined_);
  if (!config_.double_q) values().Means(combined_, means_);

  const auto actions = static_cast<std::size_t>(values().actions);
  const auto atoms = static_cast<std::size_t>(values().atoms);
  const std::uint8_t* const mask = batch_.next_mask();
  for (std::size_t i = 0; i < static_cast<std::size_t>(next.rows); ++i) {
    int best = 0;  // Where nothing follows, whatever a mask says of it.
    if (batch_.bootstraps()[i] != 0.0F) {
      best = GreedyAction(std::span(means_).subspan(i * actions, actions),
                          mask == nullptr ? nullptr : mask + i * actions);
    }
    std::copy_n(combined_.data() + i * values().width() + best * atoms, atoms,
                next_.data() + i * atoms);
  }
}

// Of the actions taken, whose atoms go to `taken_`.
double Dqn::Loss() {
  const auto* const actions = batch_.actions<std::int64_t>();
  const auto atoms = static_cast<std::size_t>(values().atoms);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch_.rows()); ++i) {
    std::copy_n(combined_.data() + i * values().width() + actions[i] * atoms, atoms,
                taken_.data() + i * atoms);
  }
  return loss_->Loss(taken_, targets_, batch_.weights(), priorities_, slope_);
}

void Dqn::Backward(std::span<const Matrix> outputs) {
  const auto* const actions = batch_.actions<std::int64_t>();
  const auto atoms = static_cast<std::size_t>(values().atoms);
  std::ranges::fill(combined_gradient_, 0.0F);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch_.rows()); ++i) {
    std::copy_n(slope_.data() + i * atoms, atoms,
                combined_gradient_.data() + i * values().width() + actions[i] * atoms);
  }
  const std::span<const Matrix> gradients = output_gradients_.Like(outputs);
  values().CombineGradient(combined_gradient_, gradients);
  network().Backward(gradients);
}

void Dqn::Reserve(std::size_t rows) {
  if (priorities_.size() == rows) return;
  priorities_.resize(rows);
  means_.resize(rows * values().actions);
  combined_.resize(rows * values().width());
  combined_gradient_.resize(rows * values().width());
  for (auto* const column : {&next_, &targets_, &taken_, &slope_}) {
    column->resize(rows * values().atoms);
  }
}

void Dqn::DrawNoise(NoisyNetwork* network, int use) const {
  if (network != nullptr) network->DrawNoise(noise_random_, updates_ * kNoiseUses + use);
}

std::vector<float> Dqn::ValuesOf(Network& network, const NetworkInput& input) const {
  const std::unique_ptr<Network> quiet = network.Clone(1);
  std::vector<float> combined(input.rows * values().width());
  std::vector<float> means(static_cast<std::size_t>(input.rows) * values().actions);
  values().Combine(quiet->Infer(input), combined);
  values().Means(combined, means);
  return means;
}

void Dqn::Save(ArchiveWriter& archive) const {
  published_.Save(archive);
  target_.Save(archive, "target");
  archive.Write("updates", updates_);
}

void Dqn::LoadParameters(ArchiveReader& archive) {
  published_.LoadParameters(archive);
  target_.Copy(network());
  Publish();
}

void Dqn::Load(ArchiveReader& archive) {
  published_.Load(archive);
  target_.Load(archive, "target");
  archive.Read("updates", updates_);
  epsilon_ = published_.published_extra();
}

}  // namespace menger
