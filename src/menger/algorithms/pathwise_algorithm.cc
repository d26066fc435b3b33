#include "menger/algorithms/pathwise_algorithm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/random.h"

namespace menger {
namespace {

constexpr std::uint64_t kCriticsStream = 5;  // Spawned from the run's seed: their first weights.
constexpr std::uint32_t kNoiseStream = 4;    // Of CounterRandom.
constexpr int kNoiseUses = 4;                // In one update, at most.
constexpr int kWorthThread = 512;            // Elements of actions that are worth waking a thread.

std::unique_ptr<Network> MakeCritics(const AlgorithmContext& context,
                                     const PathwisePolicies& policies, std::int64_t critics) {
  LeafSpec input = policies.model().encoder().encoded();
  input.shape = {input.elements() + policies.distribution().elements()};
  NetworkSpec spec{.options = context.network,
                   .observation = std::move(input),
                   .heads = {},
                   .device = context.device,
                   .precision = context.precision};
  for (std::int64_t i = 0; i < critics; ++i) {
    spec.heads.push_back({.name = "critic_" + std::to_string(i)});
  }
  Random random(SeedSequence(context.seed).Spawn(kCriticsStream));
  return MakeNetwork(spec, random, context.threads);
}

}  // namespace

void PathwiseOptions::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the critics are asked"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of everything that is learned"});
  Schedule::Declare(options, "learning_rate_schedule", &learning_rate_schedule,
                    "the learning rate");
  options.Add("target_rate", &target_rate,
              {.minimum = 0,
               .maximum = 1,
               .above_minimum = true,
               .consequence = "how far targets follow in a step"});
  options.Add("critics", &critics,
              {.minimum = 1,
               .maximum = 100,
               .consequence = "the smallest of so many values counts: more are more careful"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
}

PathwiseAlgorithm::PathwiseAlgorithm(const PathwiseOptions& options,
                                     const AlgorithmContext& context,
                                     std::unique_ptr<const PathwiseDistribution> distribution,
                                     double exploration)
    : options_(options),
      learning_rate_schedule_(options.learning_rate_schedule),
      policies_(context, std::move(distribution), exploration),
      format_(context.environment, TransitionsFor(static_cast<int>(options.n_step), context)),
      published_(policies_.model(), context.threads, /*extra=*/1.0F),
      threads_(context.threads),
      critics_(MakeCritics(context, policies_, options.critics)),
      target_(*critics_, context.threads),
      noise_random_(context.seed, kNoiseStream),
      batch_(format_, published_, options.discount, options.importance_exponent) {}

std::int64_t PathwiseAlgorithm::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterGroup& group : parameter_groups()) count += group.count;
  return count;
}

std::vector<ParameterGroup> PathwiseAlgorithm::parameter_groups() const {
  return {{.name = "actor", .count = published_.network().manifest().size()},
          {.name = "critics", .count = critics_->manifest().size()}};
}

std::unique_ptr<SlabWriter> PathwiseAlgorithm::MakeWriter(const SlabWriterContext& context) const {
  if (context.own_errors_by != nullptr) {
    throw InvalidArgument(
        "replay.initial_priority = error, but policies that act by an actor say nothing of values; "
        "set it to highest");
  }
  return std::make_unique<TransitionWriter>(format_, context);
}

std::vector<std::string> PathwiseAlgorithm::metric_names() const {
  std::vector<std::string> names = {"critic_loss", "mean_value", "critic_gradient_norm"};
  for (std::string& name : own_metric_names()) names.push_back(std::move(name));
  return names;
}

void PathwiseAlgorithm::Reserve() {
  const auto rows = static_cast<std::size_t>(batch_.rows());
  if (targets_.size() == rows) return;
  for (auto* const column :
       {&targets_, &priorities_, &log_probabilities_, &log_probability_gradient_}) {
    column->resize(rows);
  }
  for (auto* const column : {&taken_, &actions_, &action_gradient_}) {
    column->resize(action_floats());
  }
  output_gradient_.resize(rows * distribution().head().width);
  const std::size_t width = policies_.model().encoder().elements() + distribution().elements();
  critic_input_.resize(rows * width);
  critic_input_gradient_.resize(rows * width);
  value_gradients_.resize(rows * options_.critics);
  value_gradient_matrices_.clear();
  for (std::int64_t i = 0; i < options_.critics; ++i) {
    value_gradient_matrices_.push_back({.data = value_gradients_.data() + i * rows,
                                        .rows = batch_.rows(),
                                        .columns = 1,
                                        .stride = 1});
  }
}

Metrics PathwiseAlgorithm::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  const double rate = options_.learning_rate * learning_rate_schedule_.At(progress);
  batch_.Take(batch, progress, update);
  Reserve();
  if (batch_.rows() > 0) {
    policies_.scaling().FromEnvironment(batch_.actions<float>(), batch_.rows(), taken_.data());
    MakeTargets(targets_);
  }
  const CriticStep critics = StepCritics(rate, update);
  double means[] = {critics.loss, critics.value};
  update.Sum(means);
  const std::vector<std::string> own_names = own_metric_names();
  const std::vector<double> own = StepOthers(rate, update);
  if (own.size() != own_names.size()) {
    throw Internal("StepOthers returned {} metrics; own_metric_names() has {}: {}", own.size(),
                   own_names.size(), fmt::join(own_names, ", "));
  }
  ++updates_;

  Metrics metrics = {{"critic_loss", means[0]},
                     {"mean_value", means[1]},
                     {"critic_gradient_norm", critics.gradient_norm}};
  for (std::size_t i = 0; i < own.size(); ++i) metrics.emplace_back(own_names[i], own[i]);
  return metrics;
}

// Cut among the threads; rows have nothing to do with each other.
void PathwiseAlgorithm::ByRows(FunctionRef<void(int begin, int end)> function) const {
  const int rows = batch_.rows();
  const int parts =
      std::clamp(rows * distribution().elements() / kWorthThread, 1, threads_.threads());
  threads_.Run(parts, [&](int part) { function(rows * part / parts, rows * (part + 1) / parts); });
}

void PathwiseAlgorithm::DrawNoise(int use, std::span<float> noise) const {
  const auto step = static_cast<std::uint64_t>(updates_ * kNoiseUses + use);
  ByRows([&](int begin, int end) {
    // A number's place is that in the batches of all learners together.
    const int elements = distribution().elements();
    auto place = static_cast<std::uint64_t>((batch_.rows_before() + begin) * elements);
    float normals[4] = {};
    for (int i = begin * elements; i < end * elements; ++i, ++place) {
      if (i == begin * elements || place % 4 == 0) {
        const auto words = noise_random_.Draw(place / 4, step);
        std::tie(normals[0], normals[1]) = CounterRandom::Normals(words[0], words[1]);
        std::tie(normals[2], normals[3]) = CounterRandom::Normals(words[2], words[3]);
      }
      noise[i] = normals[place % 4];
    }
  });
}

void PathwiseAlgorithm::Sample(const Matrix& output, std::span<const float> noise,
                               std::span<float> actions, std::span<float> log_probabilities) const {
  ByRows([&](int begin, int end) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(begin) * distribution().elements();
    const Matrix part{.data = output.row(begin),
                      .rows = end - begin,
                      .columns = output.columns,
                      .stride = output.stride};
    distribution().Sample(part, noise.data() + first, actions.data() + first,
                          log_probabilities.empty() ? nullptr : log_probabilities.data() + begin);
  });
}

// Observation and action side by side.
NetworkInput PathwiseAlgorithm::CriticInput(const NetworkInput& observations,
                                            std::span<const float> actions) {
  const int seen = policies_.model().encoder().elements();
  const int done = distribution().elements();
  const auto* observation = static_cast<const float*>(observations.observations);
  const float* action = actions.data();
  float* to = critic_input_.data();
  for (int row = 0; row < observations.rows; ++row) {
    to = std::copy_n(observation, seen, to);
    to = std::copy_n(action, done, to);
    observation += seen;
    action += done;
  }
  return {.observations = critic_input_.data(), .rows = observations.rows};
}

void PathwiseAlgorithm::NextValues(std::span<const float> next_actions, std::span<float> values) {
  const auto outputs =
      target_.network().Infer(CriticInput(batch_.next_observations(), next_actions));
  for (int row = 0; row < batch_.rows(); ++row) {
    float smallest = *outputs[0].row(row);
    for (const Matrix& output : outputs) smallest = std::min(smallest, *output.row(row));
    values[row] = smallest;
  }
}

// Each towards the targets, by half its squared error.
PathwiseAlgorithm::CriticStep PathwiseAlgorithm::StepCritics(double learning_rate,
                                                             UpdateRule& update) {
  CriticStep step;
  std::ranges::fill(priorities_, 0.0F);
  if (batch_.rows() == 0) {
    std::ranges::fill(critics_->gradients(), 0.0F);
  } else {
    const auto outputs = critics_->Forward(CriticInput(batch_.observations(), taken_));
    const auto critics = static_cast<float>(outputs.size());
    const double share = 1 / (critics * batch_.rows_of_all());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      for (int row = 0; row < batch_.rows(); ++row) {
        const float value = *outputs[i].row(row);
        const float error = value - targets_[row];
        const float weight = batch_.weights()[row];
        *value_gradient_matrices_[i].row(row) = weight * error;
        step.loss += 0.5 * weight * error * error;
        step.value += share * value;
        priorities_[row] += std::abs(error) / critics;
      }
    }
    critics_->Backward(value_gradient_matrices_);
  }
  step.gradient_norm = update.Step(*critics_, learning_rate, kCritics);
  return step;
}

double PathwiseAlgorithm::ActionGradient(Judge judge, std::span<const float> actions,
                                         std::span<float> gradient) {
  NetworkInput input = CriticInput(batch_.observations(), actions);
  if (judge == Judge::kFirst) input.heads = 1;
  const auto outputs = critics_->Forward(input);
  std::ranges::fill(value_gradients_, 0.0F);
  const auto share = static_cast<float>(1 / batch_.rows_of_all());
  double sum = 0;
  for (int row = 0; row < batch_.rows(); ++row) {
    std::size_t judging = 0;
    for (std::size_t i = 1; judge == Judge::kSmallest && i < outputs.size(); ++i) {
      if (*outputs[i].row(row) < *outputs[judging].row(row)) judging = i;
    }
    sum += *outputs[judging].row(row);
    *value_gradient_matrices_[judging].row(row) = -share;
  }
  critics_->Backward(value_gradient_matrices_,
                     {.parameters = false, .inputs = critic_input_gradient_.data()});
  const int seen = policies_.model().encoder().elements();
  const int done = distribution().elements();
  const float* from = critic_input_gradient_.data() + seen;
  float* to = gradient.data();
  for (int row = 0; row < batch_.rows(); ++row, from += seen + done) {
    to = std::copy_n(from, done, to);
  }
  return sum / batch_.rows_of_all();
}

void PathwiseAlgorithm::ActorGradient(const Matrix& output, const ActorLoss& loss) {
  std::ranges::fill(log_probability_gradient_,
                    static_cast<float>(loss.temperature / batch_.rows_of_all()));
  const Matrix gradient{.data = output_gradient_.data(),
                        .rows = output.rows,
                        .columns = output.columns,
                        .stride = output.columns};
  const bool noisy = !loss.noise.empty();
  distribution().Gradient(output, noisy ? loss.noise.data() : nullptr, actions_.data(),
                          action_gradient_.data(),
                          noisy ? log_probability_gradient_.data() : nullptr, gradient);
  actor().Backward({&gradient, 1});
}

PathwiseAlgorithm::ActorStep PathwiseAlgorithm::StepActor(const ActorLoss& loss,
                                                          double learning_rate,
                                                          UpdateRule& update) {
  ActorStep step;
  if (batch_.rows() == 0) {
    std::ranges::fill(actor().gradients(), 0.0F);
  } else {
    const Matrix output = actor().Forward(batch_.observations())[0];
    if (loss.noise.empty()) {
      distribution().Mode(output, actions_.data());
    } else {
      Sample(output, loss.noise, actions_, log_probabilities_);
      for (const float log_probability : log_probabilities_) {
        step.entropy -= log_probability / batch_.rows_of_all();
      }
    }
    step.value = ActionGradient(loss.judge, actions_, action_gradient_);
    ActorGradient(output, loss);
  }
  step.gradient_norm = update.Step(actor(), learning_rate, kActor);
  return step;
}

void PathwiseAlgorithm::Save(ArchiveWriter& archive) const {
  published_.Save(archive);
  archive.Write("critics_manifest", critics_->manifest().ToText());
  archive.Write("critics", std::span<const float>(critics_->parameters()));
  target_.Save(archive, "target");
  archive.Write("updates", updates_);
  SaveOwn(archive);
}

void PathwiseAlgorithm::Load(ArchiveReader& archive) {
  published_.Load(archive);
  LoadCritics(archive);
  target_.Load(archive, "target");
  archive.Read("updates", updates_);
  LoadOwn(archive);
}

void PathwiseAlgorithm::LoadParameters(ArchiveReader& archive) {
  published_.LoadParameters(archive);
  LoadCritics(archive);
  target_.Copy(*critics_);
  LoadOwnParameters(archive);
  Publish();
}

void PathwiseAlgorithm::LoadCritics(const ArchiveReader& archive) {
  critics_->manifest().CheckEqual(
      ParameterManifest::FromText(archive.Read<std::string>("critics_manifest")),
      "checkpoint '" + archive.path() + "'");
  archive.Read("critics", critics_->parameters());
  critics_->ParametersChanged();
}

}  // namespace menger
