// Recurrent replay distributed DQN (Kapturowski et al. 2019).
#include "menger/algorithms/r2d2.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/q_losses.h"

namespace menger {
namespace {

ValuePolicies::Options PolicyOptions(const R2d2Config& config, const EnvironmentSpec& environment) {
  ValuePolicies::Check(environment);
  return {.values = {.actions = static_cast<int>(OnlyAction(environment).counts[0]),
                     .duelling = config.duelling},
          .noisy_sigma = {},
          .epsilon_spread = config.epsilon.spread,
          .evaluation_epsilon = config.epsilon.evaluation,
          .remembers = true};
}

}  // namespace

void R2d2Config::Declare(Options& options) {
  sequences.Declare(options);
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("duelling", &duelling,
              {.consequence = "a value of the state and advantages of actions, learned apart"});
  options.Add("value_rescaling", &value_rescaling,
              {.minimum = 1e-6,
               .maximum = 1,
               .consequence = "returns x are learned as sign(x) (sqrt(|x| + 1) - 1) + this x: less "
                              "squashes large ones more"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  Schedule::Declare(options, "learning_rate_schedule", &learning_rate_schedule,
                    "the learning rate");
  options.Add("target_every", &target_every,
              {.minimum = 1,
               .unit = "updates",
               .consequence = "how long the network that gives targets stays the same: longer is "
                              "steadier and slower"});
  options.Add("priority_mix", &priority_mix,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "a sequence's priority is this x its largest error + the rest x its "
                              "mean error"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
  epsilon.Declare(options);
}

std::unique_ptr<PolicyMaker> R2d2::MakePolicies(const R2d2Config& config,
                                                const AlgorithmContext& context) {
  return std::make_unique<ValuePolicies>(context, PolicyOptions(config, context.environment));
}

R2d2::R2d2(const R2d2Config& config, const AlgorithmContext& context)
    : config_(config),
      learning_rate_schedule_(config.learning_rate_schedule),
      epsilon_over_run_(config.epsilon),
      policies_(context, PolicyOptions(config, context.environment)),
      loss_(MakeReturnLoss(values(), std::numeric_limits<double>::infinity())),
      format_(config.sequences, context, policies_.model().network().state_width()),
      published_(policies_.model(), context.threads, static_cast<float>(config.epsilon.start)),
      target_(network(), context.threads),
      epsilon_(static_cast<float>(config.epsilon.start)),
      batch_(format_, published_, config.discount, config.importance_exponent) {}

std::unique_ptr<SlabWriter> R2d2::MakeWriter(const SlabWriterContext& context) const {
  std::unique_ptr<OwnErrors> errors;
  if (context.own_errors_by != nullptr) {
    errors = std::make_unique<OwnErrors>(OwnErrorRule{.n_step = format_.n_step(),
                                                      .discount = config_.discount,
                                                      .rescaling = config_.value_rescaling},
                                         context.environments, SequenceWriter::HistoryOf(format_),
                                         policies_, *context.own_errors_by);
  }
  return std::make_unique<SequenceWriter>(format_, context, std::move(errors),
                                          config_.priority_mix);
}

std::vector<std::string> R2d2::metric_names() const {
  return {"loss", "mean_value", "mean_priority", "gradient_norm", "epsilon"};
}

Metrics R2d2::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  batch_.Take(batch, progress, update);
  Reserve();
  double sums[3] = {};  // Of losses, values and priorities.
  if (batch_.sequences() > 0) {
    values().Combine(target_.network().Infer(batch_.window(Remember(target_.network()))),
                     target_values_);
    const std::span<const Matrix> outputs = network().Forward(batch_.window(Remember(network())));
    values().Combine(outputs, combined_);
    MakeTargets();
    sums[0] = loss_->Loss(taken_, targets_, batch_.weights(), errors_, slope_);
    for (int row = 0; row < batch_.rows(); ++row) {
      if (row / batch_.sequences() >= batch_.decisions(row % batch_.sequences())) continue;
      sums[1] += RestoreValue(taken_[row], config_.value_rescaling);
    }
    MakePriorities();
    for (const float priority : priorities_) sums[2] += priority;
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
          {"mean_priority", sums[2] / batch_.sequences_of_all()},
          {"gradient_norm", gradient_norm},
          {"epsilon", epsilon_}};
}

// The state in which a network comes to the window; null: the stored one.
const float* R2d2::Remember(Network& network) {
  const NetworkInput before = batch_.before();
  if (before.rows == 0) return nullptr;
  network.Infer(before);
  state_.assign(network.next_state(),
                network.next_state() +
                    static_cast<std::ptrdiff_t>(batch_.sequences()) * network.state_width());
  return state_.data();
}

// h(return + bootstrap * h^-1(Q(next, best)): the network says what is best, its target what that
// is worth. And what the network says of the actions taken.
void R2d2::MakeTargets() {
  const auto actions = static_cast<std::size_t>(values().actions);
  const std::span<const std::int64_t> taken = batch_.actions<std::int64_t>();
  for (std::size_t row = 0; row < taken.size(); ++row) {
    taken_[row] = combined_[row * actions + taken[row]];
    next_[row] = 0;
    if (batch_.bootstraps()[row] == 0.0F) continue;  // Nothing follows, whatever a mask says.
    const std::size_t next = static_cast<std::size_t>(batch_.next_rows()[row]) * actions;
    const int best = GreedyAction(std::span(combined_).subspan(next, actions),
                                  batch_.mask() == nullptr ? nullptr : batch_.mask() + next);
    next_[row] =
        static_cast<float>(RestoreValue(target_values_[next + best], config_.value_rescaling));
  }
  loss_->Targets(next_, batch_.returns(), batch_.bootstraps(), targets_);
  for (float& target : targets_) {
    target = static_cast<float>(RescaleValue(target, config_.value_rescaling));
  }
}

void R2d2::MakePriorities() {
  for (int i = 0; i < batch_.sequences(); ++i) {
    float largest = 0;
    float sum = 0;
    for (int step = 0; step < batch_.decisions(i); ++step) {
      const float error = errors_[static_cast<std::size_t>(step) * batch_.sequences() + i];
      largest = std::max(largest, error);
      sum += error;
    }
    const auto mix = static_cast<float>(config_.priority_mix);
    priorities_[i] = mix * largest + (1 - mix) * sum / static_cast<float>(batch_.decisions(i));
  }
}

// The window's first rows are the decisions; those after them only gave values.
void R2d2::Backward(std::span<const Matrix> outputs) {
  const auto actions = static_cast<std::size_t>(values().actions);
  const std::span<const std::int64_t> taken = batch_.actions<std::int64_t>();
  std::ranges::fill(combined_gradient_, 0.0F);
  for (std::size_t row = 0; row < taken.size(); ++row) {
    combined_gradient_[row * actions + taken[row]] = slope_[row];
  }
  const std::span<const Matrix> gradients = output_gradients_.Like(outputs);
  values().CombineGradient(combined_gradient_, gradients);
  network().Backward(gradients);
}

void R2d2::Reserve() {
  const auto sequences = static_cast<std::size_t>(batch_.sequences());
  if (priorities_.size() == sequences) return;
  priorities_.resize(sequences);
  for (auto* const column : {&next_, &targets_, &taken_, &errors_, &slope_}) {
    column->resize(static_cast<std::size_t>(batch_.rows()));
  }
  const std::size_t shown = sequences * (format_.steps() + 1);
  for (auto* const column : {&combined_, &target_values_, &combined_gradient_}) {
    column->resize(shown * values().width());
  }
}

void R2d2::Save(ArchiveWriter& archive) const {
  published_.Save(archive);
  target_.Save(archive, "target");
  archive.Write("updates", updates_);
}

void R2d2::LoadParameters(ArchiveReader& archive) {
  published_.LoadParameters(archive);
  target_.Copy(network());
  Publish();
}

void R2d2::Load(ArchiveReader& archive) {
  published_.Load(archive);
  target_.Load(archive, "target");
  archive.Read("updates", updates_);
  epsilon_ = published_.published_extra();
}

}  // namespace menger
