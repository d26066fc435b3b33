#include "menger/algorithms/value_policy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/action_space.h"
#include "menger/algorithms/epsilon.h"
#include "menger/algorithms/network_policy.h"
#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/networks/noisy_network.h"

namespace menger {
namespace {

// Of CounterRandom.
constexpr std::uint32_t kChoiceStream = 2;
constexpr std::uint32_t kNoiseStream = 3;

class ValuePolicy final : public NetworkPolicy {
 public:
  ValuePolicy(const ValuePolicies& maker, const ParameterSource& source, PolicyMode mode,
              std::uint64_t seed)
      : NetworkPolicy(maker.model(), maker.spec(), &source),
        options_(maker.options()),
        environments_(maker.environments()),
        mode_(mode),
        choice_random_(seed, kChoiceStream),
        noise_random_(seed, kNoiseStream),
        noisy_(options_.noisy_sigma && mode == PolicyMode::kSample
                   ? static_cast<NoisyNetwork*>(&network())
                   : nullptr) {}

 private:
  Sharing sharing() const override {
    if (noisy_ == nullptr) return Sharing::kAll;
    return options_.noise_per_environment ? Sharing::kNothing : Sharing::kSlice;
  }
  void BeforeOutputs(const ActSlice& slice) override;
  void ValuesOf(std::span<const Matrix> outputs, const std::uint8_t* masks,
                std::span<float> values) override;
  void Choose(const ActSlice& slice, std::span<const Matrix> outputs) override;
  int ChooseOne(std::span<const float> values, const std::uint8_t* mask, int environment,
                std::int64_t step) const;
  double EpsilonOf(int environment) const {
    if (mode_ != PolicyMode::kSample) return options_.evaluation_epsilon;
    return Epsilon::Of(environment, environments_, extra(), options_.epsilon_spread);
  }

  const ValuePolicies::Options& options_;
  const int environments_;
  const PolicyMode mode_;
  const CounterRandom choice_random_;
  const CounterRandom noise_random_;
  NoisyNetwork* const noisy_;     // The network, where its noise is drawn.
  std::int64_t noise_step_ = -1;  // Of the noise that it has.
  std::vector<float> combined_;   // Scratch; these two grow to the largest slice once.
  std::vector<float> values_;
};

void ValuePolicy::BeforeOutputs(const ActSlice& slice) {
  if (noisy_ == nullptr) return;
  if (options_.noise_per_environment) {
    const int environment = slice.environments().front();
    if (environment >= 0) noisy_->DrawNoise(noise_random_, slice.step(), environment);
  } else if (slice.step() != noise_step_) {
    noisy_->DrawNoise(noise_random_, slice.step());
    noise_step_ = slice.step();
  }
}

void ValuePolicy::ValuesOf(std::span<const Matrix> outputs, const std::uint8_t* masks,
                           std::span<float> values) {
  const auto actions = static_cast<std::size_t>(options_.values.actions);
  combined_.resize(values.size() * options_.values.width());
  values_.resize(values.size() * actions);
  options_.values.Combine(outputs, combined_);
  options_.values.Means(combined_, values_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::span<const float> of_row(values_.data() + i * actions, actions);
    values[i] = of_row[GreedyAction(of_row, masks == nullptr ? nullptr : masks + i * actions)];
  }
}

int ValuePolicy::ChooseOne(std::span<const float> values, const std::uint8_t* mask, int environment,
                           std::int64_t step) const {
  const auto words = choice_random_.Draw(static_cast<std::uint64_t>(environment),
                                         static_cast<std::uint64_t>(step));
  if (CounterRandom::Uniform01(words[0]) >= static_cast<float>(EpsilonOf(environment))) {
    return GreedyAction(values, mask);
  }
  const auto actions = static_cast<int>(values.size());
  const auto allowed = [&](int action) { return mask == nullptr || mask[action] != 0; };
  int count = 0;
  for (int action = 0; action < actions; ++action) count += allowed(action) ? 1 : 0;
  auto chosen = static_cast<int>((static_cast<std::uint64_t>(words[1]) * count) >> 32);
  for (int action = 0; action < actions; ++action) {
    if (allowed(action) && chosen-- == 0) return action;
  }
  return GreedyAction(values, mask);  // Nothing is allowed: says so.
}

void ValuePolicy::Choose(const ActSlice& slice, std::span<const Matrix> outputs) {
  const auto& [slab, row, positions] = slice;
  const auto rows = static_cast<std::size_t>(positions.count);
  const auto actions = static_cast<std::size_t>(options_.values.actions);
  combined_.resize(rows * options_.values.width());
  values_.resize(rows * actions);
  options_.values.Combine(outputs, combined_);
  options_.values.Means(combined_, values_);

  const std::uint8_t* const mask = MaskOf(slice);
  const std::span<const int> environments = slice.environments();
  auto* const action = slab->action<std::int64_t>(0, row, positions.first);
  auto* const value = slab->policy<float>(ValuePolicies::kValue, row, positions.first);
  auto* const taken = slab->policy<float>(ValuePolicies::kActionValue, row, positions.first);
  for (std::size_t i = 0; i < rows; ++i) {
    if (environments[i] < 0) {  // Padding: its mask means nothing.
      action[i] = 0;
      value[i] = taken[i] = 0;
      continue;
    }
    const std::span<const float> of_row(values_.data() + i * actions, actions);
    const std::uint8_t* const mask_of_row = mask == nullptr ? nullptr : mask + i * actions;
    action[i] = ChooseOne(of_row, mask_of_row, environments[i], slice.step());
    value[i] = of_row[GreedyAction(of_row, mask_of_row)];
    taken[i] = of_row[action[i]];
  }
}

std::vector<std::string> HeadNames(const ActionValues& values) {
  std::vector<std::string> names;
  for (const HeadSpec& head : values.heads()) names.push_back(head.name);
  return names;
}

// The options, if they fit.
const ValuePolicies::Options& Checked(const ValuePolicies::Options& options,
                                      const EnvironmentSpec& environment) {
  ValuePolicies::Check(environment);
  const std::int64_t actions = OnlyAction(environment).counts[0];
  if (options.values.actions == actions) return options;
  throw InvalidArgument("values of {} actions are asked for; those of {} are {}",
                        options.values.actions, environment.name, actions);
}

}  // namespace

void ValuePolicies::Check(const EnvironmentSpec& environment) {
  if (OnlyAction(environment).space == Space::kDiscrete) return;
  throw InvalidArgument(
      "an algorithm that learns values of actions chooses one of several; those of {} are not "
      "Discrete: use ppo or a2c",
      environment.name);
}

ValuePolicies::ValuePolicies(const AlgorithmContext& context, const Options& options)
    : options_(Checked(options, context.environment)),
      environments_(context.environments),
      model_(context, {.heads = options.values.heads(),
                       .noisy_sigma = options.noisy_sigma,
                       .extra = "policy/epsilon"}),
      spec_(model_.Spec()) {
  if (model_.network().state_width() > 0 && !options.remembers) {
    throw InvalidArgument(
        "network.kind = \"{}\" remembers, and single transitions do not say what: use mlp, "
        "nature_cnn "
        "or a3c_cnn, or an algorithm that learns from sequences (r2d2)",
        context.network.kind);
  }
  spec_.columns = Spec({LeafSpec::Scalar("value", DataType::kFloat32),
                        LeafSpec::Scalar("action_value", DataType::kFloat32)});
}

std::unique_ptr<Policy> ValuePolicies::Make(const ParameterSource& source, PolicyMode mode,
                                            std::uint64_t seed) const {
  auto policy = std::make_unique<ValuePolicy>(*this, source, mode, seed);
  policy->Refresh();
  return policy;
}

PolicyDescription ValuePolicies::Describe(std::span<const float> version) const {
  PolicyDescription description = model_.Describe(version, HeadNames(options_.values));
  description.rule = ActionRule::kLargestValue;
  description.values = options_.values;
  return description;
}

}  // namespace menger
