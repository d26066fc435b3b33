#include "menger/algorithms/actor_critic_policy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/action_scaling.h"
#include "menger/algorithms/action_space.h"
#include "menger/algorithms/network_policy.h"
#include "menger/base/counter_random.h"

namespace menger {
namespace {

constexpr std::uint32_t kActionStream = 1;  // Of CounterRandom: what training policies draw from.

std::vector<HeadSpec> HeadsOf(const Distribution& distribution) {
  std::vector<HeadSpec> heads = distribution.heads();
  heads.push_back({.name = "value", .width = 1, .gain = 1.0});
  return heads;
}

class ActorCriticPolicy final : public NetworkPolicy {
 public:
  ActorCriticPolicy(const ActorCriticPolicies& maker, const ParameterSource& source,
                    PolicyMode mode, std::uint64_t seed)
      : NetworkPolicy(maker.model(), maker.spec(), &source),
        distribution_(maker.distribution()),
        mode_(mode),
        random_(seed, kActionStream) {}

 private:
  void Choose(const ActSlice& slice, std::span<const Matrix> outputs) override {
    const auto& [slab, row, positions] = slice;
    const std::span<const Matrix> of_distribution = outputs.first(outputs.size() - 1);
    void* const actions = slab->action(0, row, positions.first);
    auto* const log_probability =
        slab->policy<float>(ActorCriticPolicies::kLogProbability, row, positions.first);
    if (mode_ == PolicyMode::kSample) {
      distribution_.Sample(of_distribution, MaskOf(slice), random_, slice.environments(),
                           slice.step(), actions, log_probability);
    } else {
      distribution_.Mode(of_distribution, MaskOf(slice), actions);
      std::fill_n(log_probability, positions.count, 0.0F);
    }
    auto* const value = slab->policy<float>(ActorCriticPolicies::kValue, row, positions.first);
    for (int i = 0; i < positions.count; ++i) value[i] = *outputs.back().row(i);
  }

  void ValuesOf(std::span<const Matrix> outputs, const std::uint8_t* /*masks*/,
                std::span<float> values) override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = *outputs.back().row(static_cast<int>(i));
    }
  }

  const Distribution& distribution_;
  const PolicyMode mode_;
  const CounterRandom random_;
};

}  // namespace

ActorCriticPolicies::ActorCriticPolicies(const AlgorithmContext& context, double initial_log_std)
    : range_(RangeOf(context.environment, context.transforms)),
      distribution_(MakeDistribution(OnlyAction(context.environment), initial_log_std, range_)),
      model_(context, {.heads = HeadsOf(*distribution_), .noisy_sigma = {}, .extra = {}}),
      spec_(model_.Spec()) {
  spec_.columns = Spec({LeafSpec::Scalar("log_probability", DataType::kFloat32),
                        LeafSpec::Scalar("value", DataType::kFloat32)});
}

std::unique_ptr<Policy> ActorCriticPolicies::Make(const ParameterSource& source, PolicyMode mode,
                                                  std::uint64_t seed) const {
  auto policy = std::make_unique<ActorCriticPolicy>(*this, source, mode, seed);
  policy->Refresh();
  return policy;
}

PolicyDescription ActorCriticPolicies::Describe(std::span<const float> version) const {
  // The first head of every distribution decides what is most likely.
  const std::string head = distribution_->heads().front().name;
  PolicyDescription description = model_.Describe(version, {&head, 1});
  AddRange(range_, description.network);
  description.rule =
      description.action.space == Space::kBox ? ActionRule::kMean : ActionRule::kLargestLogit;
  return description;
}

}  // namespace menger
