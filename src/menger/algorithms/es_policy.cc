#include "menger/algorithms/es_policy.h"

#include <string>
#include <utility>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint32_t kActionStream = 6;  // Of CounterRandom.

const AlgorithmContext& Checked(const AlgorithmContext& context) {
  for (const char* const useless : {"normalise_reward", "clip_reward"}) {
    if (!context.transforms.Has(useless)) continue;
    throw InvalidArgument(
        "transforms.apply has {}, but es learns from the order of whole returns alone; leave it "
        "out",
        useless);
  }
  if (context.device != "cpu") {
    throw InvalidArgument("device = {}: es acts with a network an episode, on the CPU",
                          context.device);
  }
  return context;
}

}  // namespace

EsPolicies::EsPolicies(const AlgorithmContext& context, double action_noise)
    : action_noise_(action_noise),
      range_(RangeOf(context.environment, context.transforms)),
      distribution_(MakeDistribution(OnlyAction(context.environment), 0.0, range_)),
      model_(Checked(context),
             {.heads = {distribution_->heads().front()}, .noisy_sigma = {}, .extra = {}}),
      spec_(model_.Spec()) {
  if (model_.network().state_width() > 0) {
    throw InvalidArgument("network.kind = {}: es has no recurrent policies; take mlp",
                          context.network.kind);
  }
}

std::unique_ptr<Policy> EsPolicies::Make(const ParameterSource& source, PolicyMode mode,
                                         std::uint64_t seed) const {
  const double noise = mode == PolicyMode::kSample ? action_noise_ : 0.0;
  auto policy = std::make_unique<EsPolicy>(*this, &source, noise, seed);
  policy->Refresh();
  return policy;
}

std::unique_ptr<EsPolicy> EsPolicies::MakeForWorker() const {
  return std::make_unique<EsPolicy>(*this, /*source=*/nullptr, action_noise_, /*seed=*/0);
}

PolicyDescription EsPolicies::Describe(std::span<const float> version) const {
  const std::string head = distribution_->heads().front().name;
  PolicyDescription description = model_.Describe(version, {&head, 1});
  AddRange(range_, description.network);
  description.rule =
      description.action.space == Space::kBox ? ActionRule::kMean : ActionRule::kLargestLogit;
  return description;
}

EsPolicy::EsPolicy(const EsPolicies& maker, const ParameterSource* source, double action_noise,
                   std::uint64_t seed)
    : NetworkPolicy(maker.model(), maker.spec(), source),
      distribution_(maker.distribution()),
      range_(maker.range()),
      action_noise_(static_cast<float>(action_noise)),
      random_(seed, kActionStream) {}

void EsPolicy::Use(std::span<const float> version, std::uint64_t seed) {
  NetworkPolicy::Use(version);
  random_ = CounterRandom(seed, kActionStream);
}

void EsPolicy::Choose(const ActSlice& slice, std::span<const Matrix> outputs) {
  distribution_.Mode(outputs, MaskOf(slice),
                     slice.slab->action(0, slice.row, slice.positions.first));
  if (action_noise_ > 0) AddNoise(slice);
}

void EsPolicy::AddNoise(const ActSlice& slice) const {
  const auto& [slab, row, positions] = slice;
  const LeafSpec& action = slab->spec().action[0];
  if (action.space != Space::kBox) return;
  const std::span<const int> environments = slice.environments();
  const auto elements = static_cast<int>(action.elements());
  for (int i = 0; i < positions.count; ++i) {
    if (environments[i] < 0) continue;  // Padding.
    auto* const values = slab->action<float>(0, row, positions.first + i);
    for (int k = 0; k < elements; ++k) {
      const auto words = random_.Draw(static_cast<std::uint64_t>(environments[i]),
                                      static_cast<std::uint64_t>(slice.step()), k / 2);
      const auto normals = CounterRandom::Normals(words[0], words[1]);
      const float scale = range_.half.empty() ? action_noise_ : action_noise_ * range_.half[k];
      values[k] += scale * (k % 2 == 0 ? normals.first : normals.second);
    }
  }
}

}  // namespace menger
