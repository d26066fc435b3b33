#include "menger/algorithms/policy_model.h"

#include <utility>

#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/networks/network_layers.h"
#include "menger/networks/noisy_network.h"

namespace menger {
namespace {

constexpr std::uint64_t kInitialisationStream = 1;  // Spawned from the run's seed.

std::unique_ptr<const Network> MakeFirst(const NetworkSpec& spec, const AlgorithmContext& context,
                                         const std::optional<double>& noisy_sigma) {
  Random random(SeedSequence(context.seed).Spawn(kInitialisationStream));
  std::unique_ptr<Network> network = MakeNetwork(spec, random, /*threads=*/1);
  if (!noisy_sigma) return network;
  return std::make_unique<NoisyNetwork>(std::move(network), *noisy_sigma);
}

}  // namespace

PolicyModel::PolicyModel(const AlgorithmContext& context, const PolicyModelOptions& options)
    : context_(context),
      encoder_(context.environment.observation, static_cast<int>(context.transforms.frame_stack),
               context.network.reads_frames()),
      spec_{.options = context.network,
            .observation = encoder_.encoded(),
            .vector_elements = encoder_.vector_elements(),
            .heads = options.heads,
            .device = context.device,
            .precision = context.precision},
      network_(MakeFirst(spec_, context, options.noisy_sigma)),
      parameters_(static_cast<std::size_t>(network_->manifest().size())),
      manifest_(network_->manifest()) {
  CheckMask(context.environment, encoder_.mask_leaf());
  if (context.transforms.Has("normalise_observation")) {
    if (encoder_.numbers() == 0) {
      throw InvalidArgument(
          "transforms.apply has normalise_observation, but {} shows pixels; leave it out",
          context.environment.name);
    }
    statistics_ = 2 * static_cast<std::size_t>(encoder_.numbers());
    manifest_.Add("transforms/observation", {2, encoder_.numbers()});
  }
  if (!options.extra.empty()) manifest_.Add(options.extra, {1});
}

PolicySpec PolicyModel::Spec() const {
  PolicySpec spec;
  spec.waits_for_device = context_.device != "cpu";
  spec.batch_invariant = network_->batch_invariant();
  if (network_->state_width() > 0) {
    LeafSpec state = LeafSpec::Scalar("recurrent_state", DataType::kFloat32);
    state.shape = {network_->state_width()};
    spec.state = menger::Spec({state});
  }
  return spec;
}

void PolicyModel::Normalise(std::span<float> rows, std::span<const float> version) const {
  if (!normalises()) return;
  const std::span<const float> statistics = StatisticsIn(version);
  menger::Normalise(rows, statistics.first(statistics_ / 2), statistics.last(statistics_ / 2),
                    static_cast<float>(context_.transforms.observation_clip));
}

PolicyDescription PolicyModel::Describe(std::span<const float> version,
                                        std::span<const std::string> heads) const {
  PolicyDescription description =
      DescribeObservation(context_.environment.observation, encoder_, context_.transforms,
                          StatisticsIn(version), OnlyAction(context_.environment));
  description.network = LayersOf(spec_, network_->manifest(), ParametersIn(version), heads);
  return description;
}

}  // namespace menger
