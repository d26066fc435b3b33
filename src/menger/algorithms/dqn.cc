// Deep Q-learning and its family (Mnih et al. 2015 to Hessel et al. 2018).
#include "menger/algorithms/dqn.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/q_losses.h"
#include "menger/algorithms/value_policy.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kInitialisationStream = 1;  // Spawned from the run's seed.
constexpr std::uint32_t kNoiseStream = 4;           // Of CounterRandom.

// Uses of noise in one update: each has draws of its own.
enum NoiseUse { kSelection, kTarget, kLoss, kNoiseUses };

ActionValues ValuesFor(const DqnConfig& config, const EnvironmentSpec& environment) {
  Dqn::Check(environment);
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

NetworkSpec NetworkSpecFor(const AlgorithmContext& context, const LeafSpec& observation,
                           const ActionValues& values) {
  return {.options = context.network,
          .observation = observation,
          .heads = values.heads(),
          .device = context.device,
          .precision = context.precision};
}

std::unique_ptr<Network> MakeValueNetwork(const DqnConfig& config, const AlgorithmContext& context,
                                          const LeafSpec& observation, const ActionValues& values) {
  Random random(SeedSequence(context.seed).Spawn(kInitialisationStream));
  auto network = MakeNetwork(NetworkSpecFor(context, observation, values), random, context.threads);
  if (network->state_width() > 0) {
    throw InvalidArgument(
        "network.kind = \"{}\" remembers, and single transitions do not say what; algorithm 'dqn' "
        "takes mlp, nature_cnn or a3c_cnn",
        context.network.kind);
  }
  if (!config.noisy) return network;
  return std::make_unique<NoisyNetwork>(std::move(network), config.noisy_sigma);
}

NoisyNetwork* Noisy(const DqnConfig& config, Network& network) {
  return config.noisy ? static_cast<NoisyNetwork*>(&network) : nullptr;
}

void DeclareReturns(DqnConfig& config, Options& options) {
  options.Add("distribution", &config.distribution,
              {.choices = {"none", "c51", "qr"},
               .consequence = "learn the distribution of returns: as probabilities of fixed "
                              "returns (c51) or as quantiles (qr)"});
  options.Add("atoms", &config.atoms,
              {.minimum = 2,
               .maximum = 10'000,
               .consequence = "c51: returns that a distribution distinguishes"});
  options.Add("value_minimum", &config.value_minimum,
              {.consequence = "c51: the smallest return; smaller ones count as this"});
  options.Add("value_maximum", &config.value_maximum,
              {.consequence = "c51: the largest return; larger ones count as this"});
  options.Add("quantiles", &config.quantiles,
              {.minimum = 1,
               .maximum = 10'000,
               .consequence = "qr: more describe a distribution better; time grows as the square"});
}

void DeclareExploration(DqnConfig& config, Options& options) {
  options.Add("noisy", &config.noisy,
              {.consequence = "noise in the weights explores; set epsilon_start, epsilon_end and "
                              "evaluation_epsilon to 0 with it"});
  options.Add("noisy_sigma", &config.noisy_sigma,
              {.minimum = 0, .consequence = "noise at the start: larger explores more widely"});
  options.Add("epsilon_start", &config.epsilon_start,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "probability of a random action at the start of a run"});
  options.Add("epsilon_end", &config.epsilon_end,
              {.minimum = 0, .maximum = 1, .consequence = "to which it falls in a straight line"});
  options.Add(
      "epsilon_fraction", &config.epsilon_fraction,
      {.minimum = 0, .maximum = 1, .unit = "of the run", .consequence = "until when it falls"});
  options.Add(
      "evaluation_epsilon", &config.evaluation_epsilon,
      {.minimum = 0, .maximum = 1, .consequence = "probability of a random action in evaluation"});
}

}  // namespace

void DqnConfig::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the value function is asked: more learns "
                              "faster, and from what old policies did"});
  options.Add("double", &double_q,
              {.consequence = "the network chooses the next action, its target values it: less "
                              "overestimation"});
  options.Add("duelling", &duelling,
              {.consequence = "a value of the state and advantages of actions, learned apart"});
  DeclareReturns(*this, options);
  options.Add("huber_delta", &huber_delta,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "distribution = none: larger errors pull no harder than this; where "
                              "returns are far beyond 1 too small a value can let estimates run "
                              "away, inf is the squared error"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  options.Add("target_every", &target_every,
              {.minimum = 1,
               .unit = "updates",
               .consequence = "how long the network that gives targets stays the same: longer is "
                              "steadier and slower"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
  DeclareExploration(*this, options);
}

void Dqn::Check(const EnvironmentSpec& environment) {
  const LeafSpec& action = OnlyAction(environment);
  if (action.space == Space::kDiscrete) return;
  throw InvalidArgument(
      "algorithm 'dqn' chooses one of several actions; those of {} are not "
      "Discrete: use ppo or a2c",
      environment.name);
}

Dqn::Dqn(const DqnConfig& config, const AlgorithmContext& context)
    : config_(config),
      context_(context),
      format_(context.environment, TransitionsFor(static_cast<int>(config.n_step), context)),
      encoder_(std::make_shared<ObservationEncoder>(
          context.environment.observation, static_cast<int>(context.transforms.frame_stack),
          context.network.reads_frames())),
      values_(ValuesFor(config, context.environment)),
      network_(MakeValueNetwork(config, context, encoder_->encoded(), values_)),
      target_(*network_, context.threads),
      noisy_(Noisy(config, *network_)),
      target_noisy_(Noisy(config, target_.network())),
      noise_random_(context.seed, kNoiseStream),
      epsilon_(static_cast<float>(config.epsilon_start)) {
  CheckMask(context.environment, encoder_->mask_leaf());
  policy_spec_.waits_for_device = context.device != "cpu";
  policy_spec_.batch_invariant = network_->batch_invariant();
  policy_spec_.columns = Spec({LeafSpec::Scalar("value", DataType::kFloat32)});
  ParameterManifest manifest = network_->manifest();
  manifest.Add("policy/epsilon", {1});
  blob_.resize(manifest.size());
  publication_ = std::make_shared<Publication>(std::move(manifest));
  Publish();
}

std::unique_ptr<Policy> Dqn::MakePolicy(PolicyMode mode, std::uint64_t seed) {
  ValuePolicy::Parts parts{.spec = policy_spec_,
                           .encoder = encoder_,
                           .values = values_,
                           .publication = publication_,
                           .network = network_->Clone(1),
                           .evaluation_epsilon = config_.evaluation_epsilon};
  if (config_.noisy) parts.noisy = static_cast<NoisyNetwork*>(parts.network.get());
  return std::make_unique<ValuePolicy>(std::move(parts), mode, seed);
}

PolicyDescription Dqn::DescribePolicy() const {
  PolicyDescription description =
      DescribeObservation(context_.environment.observation, *encoder_, context_.transforms,
                          /*statistics=*/{}, OnlyAction(context_.environment));
  std::vector<std::string> heads;
  for (const HeadSpec& head : values_.heads()) heads.push_back(head.name);
  description.network =
      LayersOf(NetworkSpecFor(context_, encoder_->encoded(), values_), network_->manifest(),
               std::span<const float>(blob_).first(blob_.size() - 1), heads);
  description.rule = ActionRule::kLargestValue;
  description.values = values_;
  return description;
}

void Dqn::Publish() {
  const std::span<const float> parameters = network_->parameters();
  std::copy(parameters.begin(), parameters.end(), blob_.begin());
  blob_.back() = epsilon_;
  publication_->Publish(blob_);
}

void Dqn::SetProgress(double progress) {
  const double share =
      progress < config_.epsilon_fraction ? progress / config_.epsilon_fraction : 1.0;
  epsilon_ = static_cast<float>(config_.epsilon_start +
                                share * (config_.epsilon_end - config_.epsilon_start));
}

std::vector<std::string> Dqn::metric_names() const {
  return {"loss", "mean_value", "mean_priority", "gradient_norm", "epsilon"};
}

Metrics Dqn::Learn(const ReplayBatch& batch, UpdateRule& update, double progress) {
  const auto rows = static_cast<std::size_t>(batch.size());
  Reserve(rows);
  NStepReturns({batch.column<float>(TransitionFormat::kReward), rows * config_.n_step},
               static_cast<int>(config_.n_step), batch.columns[TransitionFormat::kReward].rows,
               {batch.column<std::uint8_t>(TransitionFormat::kTerminated), rows}, config_.discount,
               returns_, bootstraps_);
  for (std::size_t i = 0; i < rows; ++i) probabilities_[i] = batch.items[i].probability;
  ImportanceWeights(probabilities_,
                    config_.importance_exponent + progress * (1 - config_.importance_exponent),
                    weights_);
  for (float& weight : weights_) weight /= static_cast<float>(rows);

  const NetworkInput input{.observations = batch.column<std::byte>(TransitionFormat::kObservation),
                           .rows = static_cast<int>(rows)};
  ChooseNextAtoms(batch);
  network_->Prefetch(input);  // Comes while targets are made.
  MakeTargets(rows);

  DrawNoise(noisy_, kLoss);
  const auto outputs = network_->Forward(input);
  values_.Combine(outputs, combined_);
  const auto* const actions = batch.column<std::int64_t>(TransitionFormat::kAction);
  const double loss = Loss(actions, rows);
  double value = 0;
  double priority = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    value += values_.Mean(std::span(taken_).subspan(i * values_.atoms, values_.atoms));
    priority += priorities_[i];
  }
  const double gradient_norm = TakeStep(actions, rows, update);

  if (++updates_ % config_.target_every == 0) target_.Copy(*network_);
  const auto count = static_cast<double>(rows);
  return {{"loss", loss},
          {"mean_value", value / count},
          {"mean_priority", priority / count},
          {"gradient_norm", gradient_norm},
          {"epsilon", epsilon_}};
}

// The atoms of the best next action, as the target network has them (van Hasselt et al. 2016, eq. 4
// where the network itself says which is best).
void Dqn::ChooseNextAtoms(const ReplayBatch& batch) {
  const NetworkInput next{
      .observations = batch.column<std::byte>(TransitionFormat::kNextObservation),
      .rows = batch.size()};
  if (config_.double_q) {
    DrawNoise(noisy_, kSelection);
    values_.Combine(network_->Infer(next), combined_);
    values_.Means(combined_, means_);
  }
  DrawNoise(target_noisy_, kTarget);
  values_.Combine(target_.network().Infer(next), combined_);
  if (!config_.double_q) values_.Means(combined_, means_);

  const auto actions = static_cast<std::size_t>(values_.actions);
  const auto atoms = static_cast<std::size_t>(values_.atoms);
  const std::uint8_t* const mask =
      format_.has_mask() ? batch.column<std::uint8_t>(TransitionFormat::kNextMask) : nullptr;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size()); ++i) {
    int best = 0;  // Where nothing follows, whatever a mask says of it.
    if (bootstraps_[i] != 0.0F) {
      best = GreedyAction(std::span(means_).subspan(i * actions, actions),
                          mask == nullptr ? nullptr : mask + i * actions);
    }
    std::copy_n(combined_.data() + i * values_.width() + best * atoms, atoms,
                next_.data() + i * atoms);
  }
}

// reward + discounted next return, in the terms of the distribution.
void Dqn::MakeTargets(std::size_t rows) {
  const auto atoms = static_cast<std::size_t>(values_.atoms);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto next = std::span(next_).subspan(i * atoms, atoms);
    const auto target = std::span(targets_).subspan(i * atoms, atoms);
    if (values_.model == ReturnModel::kCategorical) {
      Softmax(next, next);
      ProjectCategorical(values_.support, next, returns_[i], bootstraps_[i], target);
      continue;
    }
    for (std::size_t atom = 0; atom < atoms; ++atom) {
      target[atom] = returns_[i] + bootstraps_[i] * next[atom];
    }
  }
}

// Of the actions taken, whose atoms go to `taken_` and their gradient to `slope_`; fills
// `priorities_`.
double Dqn::Loss(const std::int64_t* actions, std::size_t rows) {
  const auto atoms = static_cast<std::size_t>(values_.atoms);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(combined_.data() + i * values_.width() + actions[i] * atoms, atoms,
                taken_.data() + i * atoms);
  }
  if (values_.model == ReturnModel::kMean) {
    const double loss =
        HuberLoss(taken_, targets_, weights_, config_.huber_delta, priorities_, slope_);
    for (float& priority : priorities_) priority = std::abs(priority);
    return loss;
  }
  if (values_.model == ReturnModel::kCategorical) {
    return CategoricalCrossEntropy(taken_, targets_, values_.atoms, weights_, priorities_, slope_);
  }
  const double loss =
      QuantileHuberLoss(taken_, targets_, values_.atoms, weights_, priorities_, slope_);
  for (std::size_t i = 0; i < rows; ++i) {
    priorities_[i] = std::abs(values_.Mean(std::span(targets_).subspan(i * atoms, atoms)) -
                              values_.Mean(std::span(taken_).subspan(i * atoms, atoms)));
  }
  return loss;
}

double Dqn::TakeStep(const std::int64_t* actions, std::size_t rows, UpdateRule& update) {
  const auto atoms = static_cast<std::size_t>(values_.atoms);
  std::fill(combined_gradient_.begin(), combined_gradient_.end(), 0.0F);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(slope_.data() + i * atoms, atoms,
                combined_gradient_.data() + i * values_.width() + actions[i] * atoms);
  }
  values_.CombineGradient(combined_gradient_, output_gradient_matrices_);
  network_->Backward(output_gradient_matrices_);
  return update.Step(*network_, config_.learning_rate);
}

void Dqn::Reserve(std::size_t rows) {
  if (returns_.size() == rows) return;
  for (auto* const column : {&returns_, &bootstraps_, &weights_, &priorities_}) {
    column->resize(rows);
  }
  probabilities_.resize(rows);
  means_.resize(rows * values_.actions);
  combined_.resize(rows * values_.width());
  combined_gradient_.resize(rows * values_.width());
  for (auto* const column : {&next_, &targets_, &taken_, &slope_}) {
    column->resize(rows * values_.atoms);
  }
  std::size_t floats = 0;
  for (const HeadSpec& head : values_.heads()) floats += rows * head.width;
  output_gradients_.resize(floats);
  output_gradient_matrices_.clear();
  float* data = output_gradients_.data();
  for (const HeadSpec& head : values_.heads()) {
    output_gradient_matrices_.push_back({.data = data,
                                         .rows = static_cast<int>(rows),
                                         .columns = head.width,
                                         .stride = head.width});
    data += rows * head.width;
  }
}

void Dqn::DrawNoise(NoisyNetwork* network, int use) const {
  if (network != nullptr) network->DrawNoise(noise_random_, updates_ * kNoiseUses + use);
}

std::vector<float> Dqn::ValuesOf(Network& network, const NetworkInput& input) const {
  const std::unique_ptr<Network> quiet = network.Clone(1);
  std::vector<float> combined(input.rows * values_.width());
  std::vector<float> values(static_cast<std::size_t>(input.rows) * values_.actions);
  values_.Combine(quiet->Infer(input), combined);
  values_.Means(combined, values);
  return values;
}

void Dqn::Save(ArchiveWriter& archive) const {
  archive.Write("manifest", publication_->manifest().ToText());
  const ParameterVersion version = publication_->Latest()->version();
  archive.Write("incarnation", version.incarnation);
  archive.Write("version", version.number);
  archive.Write("parameters", std::span<const float>(network_->parameters()));
  target_.Save(archive, "target");
  archive.Write("published", blob_);
  archive.Write("updates", updates_);
}

void Dqn::LoadNetwork(const ArchiveReader& archive) {
  std::string manifest;
  archive.Read("manifest", manifest);
  publication_->manifest().CheckEqual(ParameterManifest::FromText(manifest),
                                      "checkpoint '" + archive.path() + "'");
  archive.Read("parameters", network_->parameters());
  network_->ParametersChanged();
}

void Dqn::LoadParameters(ArchiveReader& archive) {
  LoadNetwork(archive);
  target_.Copy(*network_);
  Publish();
}

void Dqn::Load(ArchiveReader& archive) {
  LoadNetwork(archive);
  target_.Load(archive, "target");
  archive.Read("updates", updates_);
  ParameterVersion version;
  archive.Read("incarnation", version.incarnation);
  archive.Read("version", version.number);
  archive.Read("published", std::span<float>(blob_));
  epsilon_ = blob_.back();
  publication_->Restore(version, blob_);
}

}  // namespace menger
