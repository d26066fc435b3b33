#include "menger/algorithms/es_model.h"

#include <algorithm>
#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kInitialisationStream = 1;  // Spawned from the run's seed.
constexpr std::uint32_t kActionStream = 6;          // Of CounterRandom.

void CheckTransforms(const TransformOptions& transforms) {
  for (const char* const useless : {"normalise_reward", "clip_reward"}) {
    if (!transforms.Has(useless)) continue;
    throw InvalidArgument(
        "transforms.apply has {}, but es learns from the order of whole returns alone; leave it "
        "out",
        useless);
  }
}

}  // namespace

EsModel::EsModel(const AlgorithmContext& context)
    : encoder(std::make_shared<ObservationEncoder>(context.environment.observation,
                                                   static_cast<int>(context.transforms.frame_stack),
                                                   context.network.reads_frames())),
      distribution(MakeDistribution(OnlyAction(context.environment))),
      observation_clip(static_cast<float>(context.transforms.observation_clip)) {
  CheckTransforms(context.transforms);
  CheckMask(context.environment, encoder->mask_leaf());
  if (context.device != "cpu") {
    throw InvalidArgument("device = {}: es acts with a network an episode, on the CPU",
                          context.device);
  }
  Random random(SeedSequence(context.seed).Spawn(kInitialisationStream));
  network = MakeNetwork(NetworkSpecFor(context, *encoder, *distribution), random, /*threads=*/1);
  if (network->state_width() > 0) {
    throw InvalidArgument("network.kind = {}: es has no recurrent policies; take mlp",
                          context.network.kind);
  }
  manifest = network->manifest();
  if (!context.transforms.Has("normalise_observation")) return;
  if (encoder->is_image()) {
    throw InvalidArgument(
        "transforms.apply has normalise_observation, but {} shows pixels; leave it out",
        context.environment.name);
  }
  manifest.Add("transforms/observation", {2, encoder->elements()});
}

NetworkSpec EsModel::NetworkSpecFor(const AlgorithmContext& context,
                                    const ObservationEncoder& encoder,
                                    const Distribution& distribution) {
  return {.options = context.network,
          .observation = encoder.encoded(),
          .heads = {distribution.heads().front()},
          .precision = context.precision};
}

EsPolicy::EsPolicy(EsModel model, double action_noise, std::shared_ptr<Publication> publication,
                   std::uint64_t seed)
    : model_(std::move(model)),
      spec_{.state = {}, .columns = {}, .batch_invariant = model_.network->batch_invariant()},
      action_noise_(static_cast<float>(action_noise)),
      publication_(std::move(publication)),
      seed_(seed),
      random_(seed, kActionStream) {
  Refresh();
}

void EsPolicy::Use(std::span<const float> parameters, std::span<const float> statistics,
                   std::uint64_t seed) {
  std::ranges::copy(parameters, model_.network->parameters().begin());
  model_.network->ParametersChanged();
  statistics_.assign(statistics.begin(), statistics.end());
  random_ = CounterRandom(seed, kActionStream);
}

void EsPolicy::Refresh() {
  if (publication_ == nullptr) return;
  auto latest = publication_->Latest();
  if (latest == blob_) return;
  blob_ = std::move(latest);
  const std::size_t parameters = model_.network->parameters().size();
  Use(blob_->values().first(parameters), blob_->values().subspan(parameters), seed_);
}

const void* EsPolicy::Observations(const Slab& slab, int row, PositionRange positions) {
  const ObservationEncoder& encoder = *model_.encoder;
  if (encoder.identity() && statistics_.empty()) {
    return slab.observation(encoder.identity_leaf(), row, positions.first);
  }
  const std::size_t bytes = encoder.bytes() * positions.count;
  if (encoded_.size() < bytes) encoded_.resize(bytes);
  encoder.Encode(slab, row, positions.first, positions.count, encoded_.data());
  if (!statistics_.empty()) {
    const auto elements = static_cast<std::size_t>(encoder.elements());
    const std::span<const float> statistics = statistics_;
    Normalise({reinterpret_cast<float*>(encoded_.data()), elements * positions.count},
              statistics.first(elements), statistics.last(elements), model_.observation_clip);
  }
  return encoded_.data();
}

void EsPolicy::Act(Slab& slab, int row, PositionRange positions) {
  const auto outputs = model_.network->Infer(
      {.observations = Observations(slab, row, positions), .rows = positions.count});
  const int mask_leaf = model_.encoder->mask_leaf();
  const std::uint8_t* const mask =
      mask_leaf < 0 ? nullptr : slab.observation<std::uint8_t>(mask_leaf, row, positions.first);
  model_.distribution->Mode(outputs, mask, slab.action(0, row, positions.first));
  if (action_noise_ > 0) AddNoise(slab, row, positions);
  std::fill_n(slab.version(row) + positions.first, positions.count,
              blob_ == nullptr ? 0 : blob_->version().packed());
}

void EsPolicy::AddNoise(Slab& slab, int row, PositionRange positions) {
  const LeafSpec& action = slab.spec().action[0];
  if (action.space != Space::kBox) return;
  const std::span<const int> environments = slab.columns().EnvironmentsAt(positions);
  const auto elements = static_cast<int>(action.elements());
  for (int i = 0; i < positions.count; ++i) {
    if (environments[i] < 0) continue;  // Padding.
    auto* const values = slab.action<float>(0, row, positions.first + i);
    for (int k = 0; k < elements; ++k) {
      const auto words = random_.Draw(static_cast<std::uint64_t>(environments[i]),
                                      static_cast<std::uint64_t>(slab.first_step() + row), k / 2);
      const auto normals = CounterRandom::Normals(words[0], words[1]);
      values[k] += action_noise_ * (k % 2 == 0 ? normals.first : normals.second);
    }
  }
}

}  // namespace menger
