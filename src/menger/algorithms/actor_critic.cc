#include "menger/algorithms/actor_critic.h"

#include <algorithm>
#include <string>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/actor_critic_policy.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kInitialisationStream =
    1;  // Spawned from the run's seed: the network's first weights.

NetworkSpec NetworkSpecFor(const AlgorithmContext& context, const LeafSpec& observation,
                           const Distribution& distribution) {
  NetworkSpec spec{.options = context.network,
                   .observation = observation,
                   .heads = distribution.heads(),
                   .device = context.device,
                   .precision = context.precision};
  spec.heads.push_back({.name = "value", .width = 1, .gain = 1.0});
  return spec;
}

std::unique_ptr<Network> MakeActorCriticNetwork(const AlgorithmContext& context,
                                                const LeafSpec& observation,
                                                const Distribution& distribution) {
  const NetworkSpec spec = NetworkSpecFor(context, observation, distribution);
  Random random(SeedSequence(context.seed).Spawn(kInitialisationStream));
  return MakeNetwork(spec, random, context.threads);
}

}  // namespace

ActorCritic::ActorCritic(const AlgorithmContext& context, double discount, double initial_log_std)
    : context_(context),
      encoder_(std::make_shared<ObservationEncoder>(
          context.environment.observation, static_cast<int>(context.transforms.frame_stack),
          context.network.reads_frames())),
      distribution_(MakeDistribution(OnlyAction(context.environment), initial_log_std)),
      network_(MakeActorCriticNetwork(context, encoder_->encoded(), *distribution_)) {
  CheckMask(context.environment, encoder_->mask_leaf());
  policy_spec_.waits_for_device = context.device != "cpu";
  policy_spec_.batch_invariant = network_->batch_invariant();
  policy_spec_.columns = Spec({LeafSpec::Scalar("log_probability", DataType::kFloat32),
                               LeafSpec::Scalar("value", DataType::kFloat32)});
  if (network_->state_width() > 0) {
    LeafSpec state = LeafSpec::Scalar("recurrent_state", DataType::kFloat32);
    state.shape = {network_->state_width()};
    policy_spec_.state = Spec({state});
  }
  ParameterManifest manifest = network_->manifest();
  if (context.transforms.Has("normalise_observation")) {
    if (encoder_->is_image()) {
      throw InvalidArgument(
          "transforms.apply has normalise_observation, but {} shows pixels; leave it out",
          context.environment.name);
    }
    normaliser_.emplace(encoder_->elements());
    manifest.Add("transforms/observation", {2, encoder_->elements()});
  }
  if (context.transforms.Has("normalise_reward")) {
    reward_normaliser_.emplace(context.environments, discount);
  }
  blob_.resize(manifest.size());
  publication_ = std::make_shared<Publication>(std::move(manifest));
  Publish();
}

std::unique_ptr<Policy> ActorCritic::MakePolicy(PolicyMode mode, std::uint64_t seed) const {
  return std::make_unique<ActorCriticPolicy>(
      ActorCriticPolicy::Parts{
          .spec = policy_spec_,
          .encoder = encoder_,
          .distribution = distribution_,
          .publication = publication_,
          .network = network_->Clone(1),
          .observation_clip = static_cast<float>(context_.transforms.observation_clip)},
      mode, seed);
}

PolicyDescription ActorCritic::DescribePolicy() const {
  const std::span<const float> blob = blob_;
  const auto parameters = static_cast<std::size_t>(network_->manifest().size());
  const LeafSpec& action = OnlyAction(context_.environment);
  PolicyDescription description =
      DescribeObservation(context_.environment.observation, *encoder_, context_.transforms,
                          blob.subspan(parameters), action);
  // The first head of every distribution decides what is most likely.
  const std::string head = distribution_->heads().front().name;
  description.network = LayersOf(NetworkSpecFor(context_, encoder_->encoded(), *distribution_),
                                 network_->manifest(), blob.first(parameters), {&head, 1});
  description.rule = action.space == Space::kBox ? ActionRule::kMean : ActionRule::kLargestLogit;
  return description;
}

void ActorCritic::Publish() {
  const std::span<float> parameters = network_->parameters();
  std::copy(parameters.begin(), parameters.end(), blob_.begin());
  if (normaliser_) normaliser_->WriteTo(std::span<float>(blob_).subspan(parameters.size()));
  publication_->Publish(blob_);
}

void ActorCritic::NormaliseRows(std::span<float> rows) const {
  if (!normaliser_) return;
  const auto elements = static_cast<std::size_t>(encoder_->elements());
  const auto statistics = std::span<const float>(blob_).last(2 * elements);
  Normalise(rows, statistics.first(elements), statistics.last(elements),
            static_cast<float>(context_.transforms.observation_clip));
}

float ActorCritic::TransformReward(double reward) const {
  for (const std::string& transform : context_.transforms.apply) {
    const double clip = context_.transforms.reward_clip;
    if (transform == "normalise_reward") {
      reward = std::clamp(reward * reward_normaliser_->scale(), -clip, clip);
    } else if (transform == "clip_reward") {
      reward = std::clamp(reward, -clip, clip);
    }
  }
  return static_cast<float>(reward);
}

void ActorCritic::UpdateRewardStatistics(std::span<Slab* const> slabs) {
  if (reward_normaliser_) reward_normaliser_->Update(slabs);
}

void ActorCritic::UpdateObservationStatistics(std::span<const float> raw_rows,
                                              std::span<const float> weights) {
  if (normaliser_) normaliser_->Update(raw_rows, weights);
}

void ActorCritic::Save(ArchiveWriter archive) const {
  archive.Write("manifest", publication_->manifest().ToText());
  // Field by field: the struct has padding, and a checkpoint has no random bytes.
  const ParameterVersion version = publication_->Latest()->version();
  archive.Write("incarnation", version.incarnation);
  archive.Write("version", version.number);
  archive.Write("parameters", std::span<const float>(network_->parameters()));
  archive.Write("published", blob_);
  if (normaliser_) normaliser_->Save(archive.Scope("observation_statistics"));
  if (reward_normaliser_) reward_normaliser_->Save(archive.Scope("reward_statistics"));
}

void ActorCritic::LoadModel(const ArchiveReader& archive) {
  std::string manifest;
  archive.Read("manifest", manifest);
  publication_->manifest().CheckEqual(ParameterManifest::FromText(manifest),
                                      "checkpoint '" + archive.path() + "'");
  archive.Read("parameters", network_->parameters());
  network_->ParametersChanged();
  if (normaliser_) normaliser_->Load(archive.Scope("observation_statistics"));
}

void ActorCritic::LoadParameters(ArchiveReader archive) {
  LoadModel(archive);
  if (reward_normaliser_ && archive.Contains("reward_statistics/moments/count")) {
    reward_normaliser_->LoadScale(archive.Scope("reward_statistics"));
  }
  Publish();
}

void ActorCritic::Load(ArchiveReader archive) {
  LoadModel(archive);
  if (reward_normaliser_) reward_normaliser_->Load(archive.Scope("reward_statistics"));
  ParameterVersion version;
  archive.Read("incarnation", version.incarnation);
  archive.Read("version", version.number);
  archive.Read("published", std::span<float>(blob_));
  publication_->Restore(version, blob_);
}

}  // namespace menger
