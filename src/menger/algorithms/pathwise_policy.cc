#include "menger/algorithms/pathwise_policy.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/network_policy.h"
#include "menger/base/counter_random.h"
#include "menger/base/error.h"
#include "menger/networks/network_layers.h"

namespace menger {
namespace {

constexpr std::uint32_t kActionStream = 2;  // Of CounterRandom.

class PathwisePolicy final : public NetworkPolicy {
 public:
  PathwisePolicy(const PathwisePolicies& maker, const ParameterSource& source, PolicyMode mode,
                 std::uint64_t seed)
      : NetworkPolicy(maker.model(), maker.spec(), &source),
        maker_(maker),
        mode_(mode),
        random_(seed, kActionStream) {}

 private:
  bool NeedsOutputs() const override { return mode_ == PolicyMode::kGreedy || extra() == 0; }
  void Choose(const ActSlice& slice, std::span<const Matrix> outputs) override;
  void DrawNoise(const ActSlice& slice);
  void DrawUniform(const ActSlice& slice);

  const PathwisePolicies& maker_;
  const PolicyMode mode_;
  const CounterRandom random_;

  // Scratch; grows to the largest slice once.
  std::vector<float> noise_;    // [positions, elements]
  std::vector<float> actions_;  // [positions, elements]
};

void PathwisePolicy::Choose(const ActSlice& slice, std::span<const Matrix> outputs) {
  const auto& [slab, row, positions] = slice;
  const auto count = static_cast<std::size_t>(positions.count) * maker_.scaling().elements();
  noise_.resize(count);
  actions_.resize(count);
  if (outputs.empty()) {
    DrawUniform(slice);
  } else if (mode_ == PolicyMode::kGreedy) {
    maker_.distribution().Mode(outputs[0], actions_.data());
  } else {
    DrawNoise(slice);
    maker_.distribution().Sample(outputs[0], noise_.data(), actions_.data(),
                                 /*log_probability=*/nullptr);
  }
  maker_.scaling().ToEnvironment(actions_.data(), positions.count,
                                 slab->action<float>(0, row, positions.first));
}

// Padding (environments below 0) keeps what it has.
void PathwisePolicy::DrawNoise(const ActSlice& slice) {
  const auto step = static_cast<std::uint64_t>(slice.step());
  const int elements = maker_.scaling().elements();
  const float scale = maker_.exploration();
  float* noise = noise_.data();
  for (const int environment : slice.environments()) {
    for (int i = 0; environment >= 0 && i < elements; i += 2) {
      const auto words = random_.Draw(environment, step, i / 4);  // Two pairs a draw.
      const auto [first, second] = CounterRandom::Normals(words[i % 4], words[i % 4 + 1]);
      noise[i] = scale * first;
      if (i + 1 < elements) noise[i + 1] = scale * second;
    }
    noise += elements;
  }
}

void PathwisePolicy::DrawUniform(const ActSlice& slice) {
  const auto step = static_cast<std::uint64_t>(slice.step());
  const int elements = maker_.scaling().elements();
  float* action = actions_.data();
  for (const int environment : slice.environments()) {
    for (int i = 0; environment >= 0 && i < elements; ++i) {
      const auto words = random_.Draw(environment, step, i / 4);
      action[i] = 2.0F * CounterRandom::Uniform01(words[i % 4]) - 1.0F;
    }
    action += elements;
  }
}

const AlgorithmContext& Checked(const AlgorithmContext& context) {
  if (context.network.kind == "mlp") return context;
  throw InvalidArgument(
      "network.kind = \"{}\": critics of real actions read vectors so far; it takes mlp",
      context.network.kind);
}

HeadSpec ActorHead(const PathwiseDistribution& distribution) {
  HeadSpec head = distribution.head();
  head.gain = 0.01;  // First actions near the middle, as PPO's.
  return head;
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
  AddRange({.middle = scaling.middle(), .half = scaling.half()}, network);
}

}  // namespace

PathwisePolicies::PathwisePolicies(const AlgorithmContext& context,
                                   std::unique_ptr<const PathwiseDistribution> distribution,
                                   double exploration)
    : distribution_(std::move(distribution)),
      scaling_(context.environment),
      exploration_(static_cast<float>(exploration)),
      model_(Checked(context),
             {.heads = {ActorHead(*distribution_)}, .noisy_sigma = {}, .extra = "policy/uniform"}),
      spec_(model_.Spec()) {}

std::unique_ptr<Policy> PathwisePolicies::Make(const ParameterSource& source, PolicyMode mode,
                                               std::uint64_t seed) const {
  auto policy = std::make_unique<PathwisePolicy>(*this, source, mode, seed);
  policy->Refresh();
  return policy;
}

PolicyDescription PathwisePolicies::Describe(std::span<const float> version) const {
  const std::string head = distribution_->head().name;
  PolicyDescription description = model_.Describe(version, {&head, 1});
  AddSquashAndScale(scaling_, description.network);
  description.rule = ActionRule::kMean;
  description.clips_action = true;
  return description;
}

}  // namespace menger
