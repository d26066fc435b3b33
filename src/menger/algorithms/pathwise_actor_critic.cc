#include "menger/algorithms/pathwise_actor_critic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/pathwise_policy.h"
#include "menger/algorithms/q_losses.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kInitialisationStream = 1;  // Spawned from the run's seed.
constexpr std::uint32_t kNoiseStream = 4;           // Of CounterRandom.
constexpr int kNoiseUses = 4;                       // In one update, at most.

std::shared_ptr<const ObservationEncoder> EncoderFor(const AlgorithmContext& context) {
  auto encoder = std::make_shared<ObservationEncoder>(
      context.environment.observation, static_cast<int>(context.transforms.frame_stack),
      context.network.reads_frames());
  if (encoder->is_image() || context.network.kind != "mlp") {
    throw InvalidArgument(
        "network.kind = \"{}\": critics of real actions read vectors so far; it takes mlp",
        context.network.kind);
  }
  return encoder;
}

NetworkSpec SpecOf(const AlgorithmContext& context, LeafSpec observation,
                   std::vector<HeadSpec> heads) {
  return {.options = context.network,
          .observation = std::move(observation),
          .heads = std::move(heads),
          .device = context.device,
          .precision = context.precision};
}

NetworkSpec ActorSpec(const AlgorithmContext& context, const ObservationEncoder& encoder,
                      const PathwiseDistribution& distribution) {
  HeadSpec head = distribution.head();
  head.gain = 0.01;  // First actions near the middle, as PPO's.
  return SpecOf(context, encoder.encoded(), {head});
}

NetworkSpec CriticSpec(const AlgorithmContext& context, const ObservationEncoder& encoder,
                       const PathwiseDistribution& distribution, int critics) {
  std::vector<HeadSpec> heads;
  for (int i = 0; i < critics; ++i) heads.push_back({.name = "critic_" + std::to_string(i)});
  LeafSpec input = encoder.encoded();
  input.shape = {encoder.elements() + distribution.elements()};
  return SpecOf(context, std::move(input), std::move(heads));
}

// The greedy action as layers: tanh of the means, which are the first outputs of the last layer,
// and then a dense layer that scales each to its bounds.
void AddSquashAndScale(const ActionScaling& scaling, NetworkLayers& network) {
  NetworkLayer& last = network.layers[network.heads[0]];
  const auto elements = static_cast<std::size_t>(scaling.elements());
  const auto outputs = static_cast<std::size_t>(last.outputs);
  for (int input = 0; input < last.inputs; ++input) {
    std::copy_n(last.weight.begin() + static_cast<std::ptrdiff_t>(input * outputs), elements,
                last.weight.begin() + static_cast<std::ptrdiff_t>(input * elements));
  }
  last.outputs = scaling.elements();
  last.weight.resize(last.inputs * elements);
  last.bias.resize(elements);
  last.activation = NetworkLayer::Activation::kTanh;
  NetworkLayer scale{.source = network.heads[0],
                     .inputs = scaling.elements(),
                     .outputs = scaling.elements(),
                     .weight = std::vector<float>(elements * elements),
                     .bias = scaling.middle()};
  for (std::size_t i = 0; i < elements; ++i) scale.weight[i * elements + i] = scaling.half()[i];
  network.heads[0] = static_cast<int>(network.layers.size());
  network.layers.push_back(std::move(scale));
}

ParameterManifest PublishedManifest(const Network& actor) {
  ParameterManifest manifest = actor.manifest();
  manifest.Add("policy/uniform", {1});
  return manifest;
}

}  // namespace

PathwiseActorCritic::PathwiseActorCritic(const PathwiseOptions& options,
                                         const AlgorithmContext& context,
                                         std::shared_ptr<const PathwiseDistribution> distribution)
    : options_(options),
      context_(context),
      format_(context.environment, TransitionsFor(options.n_step, context)),
      encoder_(EncoderFor(context)),
      distribution_(std::move(distribution)),
      scaling_(std::make_shared<ActionScaling>(context.environment)),
      random_(SeedSequence(context.seed).Spawn(kInitialisationStream)),
      actor_(MakeNetwork(ActorSpec(context, *encoder_, *distribution_), random_, context.threads)),
      critics_(MakeNetwork(CriticSpec(context, *encoder_, *distribution_, options.critics), random_,
                           context.threads)),
      target_(*critics_, context.threads),
      publication_(std::make_shared<Publication>(PublishedManifest(*actor_))),
      noise_random_(context.seed, kNoiseStream) {
  CheckMask(context.environment, encoder_->mask_leaf());
  policy_spec_.waits_for_device = context.device != "cpu";
  policy_spec_.batch_invariant = actor_->batch_invariant();
  blob_.resize(publication_->manifest().size());
  Publish();
}

std::vector<ParameterGroup> PathwiseActorCritic::parameter_groups() const {
  return {{.name = "actor", .count = actor_->manifest().size()},
          {.name = "critics", .count = critics_->manifest().size()}};
}

std::unique_ptr<Policy> PathwiseActorCritic::MakePolicy(PolicyMode mode, std::uint64_t seed) const {
  return std::make_unique<PathwisePolicy>(
      PathwisePolicy::Parts{.spec = policy_spec_,
                            .encoder = encoder_,
                            .distribution = distribution_,
                            .scaling = scaling_,
                            .publication = publication_,
                            .network = actor_->Clone(1),
                            .exploration = static_cast<float>(options_.exploration)},
      mode, seed);
}

PolicyDescription PathwiseActorCritic::DescribePolicy() const {
  PolicyDescription description =
      DescribeObservation(context_.environment.observation, *encoder_, context_.transforms,
                          /*statistics=*/{}, OnlyAction(context_.environment));
  const std::string head = distribution_->head().name;
  description.network = LayersOf(ActorSpec(context_, *encoder_, *distribution_), actor_->manifest(),
                                 std::span<const float>(blob_).first(blob_.size() - 1), {&head, 1});
  AddSquashAndScale(*scaling_, description.network);
  description.rule = ActionRule::kMean;
  description.clips_action = true;
  return description;
}

void PathwiseActorCritic::Publish() {
  const std::span<const float> parameters = actor_->parameters();
  std::copy(parameters.begin(), parameters.end(), blob_.begin());
  blob_.back() = updates_ == 0 ? 1.0F : 0.0F;
  publication_->Publish(blob_);
}

void PathwiseActorCritic::Reserve(int rows) {
  if (rows_ == rows) return;
  rows_ = rows;
  const auto count = static_cast<std::size_t>(rows);
  const std::size_t width = encoder_->elements() + distribution_->elements();
  probabilities_.resize(count);
  for (auto* const column : {&returns_, &bootstraps_, &weights_, &priorities_}) {
    column->resize(count);
  }
  actions_.resize(count * distribution_->elements());
  critic_input_.resize(count * width);
  input_gradient_.resize(count * width);
  value_gradients_.resize(count * options_.critics);
  value_gradient_matrices_.clear();
  for (int i = 0; i < options_.critics; ++i) {
    value_gradient_matrices_.push_back(
        {.data = value_gradients_.data() + i * count, .rows = rows, .columns = 1, .stride = 1});
  }
}

void PathwiseActorCritic::BeginUpdate(const ReplayBatch& batch, double progress) {
  Reserve(batch.size());
  batch_ = batch;
  const auto rows = static_cast<std::size_t>(rows_);
  NStepReturns({batch.column<float>(TransitionFormat::kReward), rows * options_.n_step},
               options_.n_step, batch.columns[TransitionFormat::kReward].rows,
               {batch.column<std::uint8_t>(TransitionFormat::kTerminated), rows}, options_.discount,
               returns_, bootstraps_);
  for (std::size_t i = 0; i < rows; ++i) probabilities_[i] = batch.items[i].probability;
  ImportanceWeights(probabilities_,
                    options_.importance_exponent + progress * (1 - options_.importance_exponent),
                    weights_);
  for (float& weight : weights_) weight /= static_cast<float>(rows);
  scaling_->FromEnvironment(batch.column<float>(TransitionFormat::kAction), rows_, actions_.data());
}

NetworkInput PathwiseActorCritic::observations() const {
  return {.observations = batch_.column<float>(TransitionFormat::kObservation), .rows = rows_};
}

NetworkInput PathwiseActorCritic::next_observations() const {
  return {.observations = batch_.column<float>(TransitionFormat::kNextObservation), .rows = rows_};
}

void PathwiseActorCritic::DrawNoise(int use, std::span<float> noise) const {
  const std::int64_t step = updates_ * kNoiseUses + use;
  for (std::size_t i = 0; i < noise.size(); i += 4) {
    const auto words = noise_random_.Draw(i / 4, static_cast<std::uint64_t>(step));
    const auto [first, second] = CounterRandom::Normals(words[0], words[1]);
    const auto [third, fourth] = CounterRandom::Normals(words[2], words[3]);
    const float normals[] = {first, second, third, fourth};
    std::copy_n(normals, std::min<std::size_t>(4, noise.size() - i), noise.data() + i);
  }
}

// Observation and action side by side.
NetworkInput PathwiseActorCritic::CriticInput(const float* observations,
                                              std::span<const float> actions) {
  const int seen = encoder_->elements();
  const int done = distribution_->elements();
  float* to = critic_input_.data();
  const float* action = actions.data();
  for (int row = 0; row < rows_; ++row) {
    to = std::copy_n(observations, seen, to);
    to = std::copy_n(action, done, to);
    observations += seen;
    action += done;
  }
  return {.observations = critic_input_.data(), .rows = rows_};
}

void PathwiseActorCritic::NextValues(std::span<const float> next_actions, std::span<float> values) {
  const auto outputs = target_.network().Infer(
      CriticInput(batch_.column<float>(TransitionFormat::kNextObservation), next_actions));
  for (int row = 0; row < rows_; ++row) {
    float smallest = *outputs[0].row(row);
    for (const Matrix& output : outputs) smallest = std::min(smallest, *output.row(row));
    values[row] = smallest;
  }
}

PathwiseActorCritic::CriticStep PathwiseActorCritic::StepCritics(std::span<const float> targets,
                                                                 double learning_rate,
                                                                 UpdateRule& update) {
  const auto outputs = critics_->Forward(
      CriticInput(batch_.column<float>(TransitionFormat::kObservation), actions_));
  CriticStep step;
  std::fill(priorities_.begin(), priorities_.end(), 0.0F);
  const auto critics = static_cast<float>(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (int row = 0; row < rows_; ++row) {
      const float value = *outputs[i].row(row);
      const float error = value - targets[row];
      *value_gradient_matrices_[i].row(row) = weights_[row] * error;
      step.loss += 0.5 * weights_[row] * error * error;
      step.mean_value += value / (critics * static_cast<float>(rows_));
      priorities_[row] += std::abs(error) / critics;
    }
  }
  critics_->Backward(value_gradient_matrices_);
  step.gradient_norm = update.Step(*critics_, learning_rate, kCritics);
  return step;
}

double PathwiseActorCritic::ActionGradient(std::span<const float> actions, Judge judge,
                                           std::span<float> gradient) {
  const auto outputs =
      critics_->Forward(CriticInput(batch_.column<float>(TransitionFormat::kObservation), actions));
  std::fill(value_gradients_.begin(), value_gradients_.end(), 0.0F);
  const float share = 1.0F / static_cast<float>(rows_);
  double sum = 0;
  for (int row = 0; row < rows_; ++row) {
    std::size_t judge_of_row = 0;
    for (std::size_t i = 1; judge == Judge::kSmallest && i < outputs.size(); ++i) {
      if (*outputs[i].row(row) < *outputs[judge_of_row].row(row)) judge_of_row = i;
    }
    sum += *outputs[judge_of_row].row(row);
    *value_gradient_matrices_[judge_of_row].row(row) = -share;
  }
  critics_->Backward(value_gradient_matrices_,
                     {.parameters = false, .inputs = input_gradient_.data()});
  const int seen = encoder_->elements();
  const int done = distribution_->elements();
  for (int row = 0; row < rows_; ++row) {
    std::copy_n(input_gradient_.data() + static_cast<std::ptrdiff_t>(row) * (seen + done) + seen,
                done, gradient.data() + static_cast<std::ptrdiff_t>(row) * done);
  }
  return sum / rows_;
}

void PathwiseActorCritic::Save(ArchiveWriter& archive) const {
  archive.Write("manifest", publication_->manifest().ToText());
  archive.Write("critics_manifest", critics_->manifest().ToText());
  const ParameterVersion version = publication_->Latest()->version();
  archive.Write("incarnation", version.incarnation);
  archive.Write("version", version.number);
  archive.Write("parameters", std::span<const float>(actor_->parameters()));
  archive.Write("critics", std::span<const float>(critics_->parameters()));
  target_.Save(archive, "target");
  archive.Write("published", blob_);
  archive.Write("updates", updates_);
}

void PathwiseActorCritic::LoadNetworks(const ArchiveReader& archive) {
  const std::string source = "checkpoint '" + archive.path() + "'";
  std::string manifest;
  archive.Read("manifest", manifest);
  publication_->manifest().CheckEqual(ParameterManifest::FromText(manifest), source);
  archive.Read("critics_manifest", manifest);
  critics_->manifest().CheckEqual(ParameterManifest::FromText(manifest), source);
  archive.Read("parameters", actor_->parameters());
  actor_->ParametersChanged();
  archive.Read("critics", critics_->parameters());
  critics_->ParametersChanged();
}

void PathwiseActorCritic::LoadParameters(ArchiveReader& archive) {
  LoadNetworks(archive);
  target_.Copy(*critics_);
}

void PathwiseActorCritic::Load(ArchiveReader& archive) {
  LoadNetworks(archive);
  target_.Load(archive, "target");
  archive.Read("updates", updates_);
  ParameterVersion version;
  archive.Read("incarnation", version.incarnation);
  archive.Read("version", version.number);
  archive.Read("published", std::span<float>(blob_));
  publication_->Restore(version, blob_);
}

}  // namespace menger
