#include "menger/algorithms/defaults.h"

#include <algorithm>
#include <limits>

#include "menger/algorithms/action_space.h"

namespace menger {
namespace {

using Names = std::vector<std::string>;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kSlabsMin = 20;  // Of a run.
constexpr double kDiscountMax = 0.999;
constexpr std::int64_t kFrameSideMin = 36;  // Of what a convolutional network can read.

bool IsImage(const LeafSpec& leaf) {
  return leaf.space == Space::kBox && leaf.dtype == DataType::kUint8 && leaf.shape.size() >= 2;
}

// One image, of a size that convolutions can read, alone or beside numbers. Smaller ones are read
// as numbers themselves, and so are several.
bool ShowsFrames(const EnvironmentSpec& environment) {
  const LeafSpec* only = nullptr;
  for (const LeafSpec& leaf : environment.observation.leaves()) {
    if (!IsImage(leaf)) continue;
    if (only != nullptr) return false;
    only = &leaf;
  }
  return only != nullptr && std::min(only->shape[only->shape.size() - 1],
                                     only->shape[only->shape.size() - 2]) >= kFrameSideMin;
}

// Where frames are shown, whether numbers are that nobody has scaled.
bool ShowsNumbersBeside(const EnvironmentSpec& environment) {
  return std::ranges::any_of(environment.observation.leaves(), [](const LeafSpec& leaf) {
    return leaf.space == Space::kBox && !IsImage(leaf);
  });
}

bool ShowsAnyImage(const EnvironmentSpec& environment) {
  const auto& leaves = environment.observation.leaves();
  return std::any_of(leaves.begin(), leaves.end(), IsImage);
}

bool IsContinuous(const EnvironmentSpec& environment) {
  return OnlyAction(environment).space == Space::kBox;
}

// `horizon`, halved until a slab is a twentieth of the run.
std::int64_t HorizonFor(std::int64_t horizon, std::int64_t environments, std::int64_t steps) {
  while (horizon > 1 && horizon * environments * kSlabsMin > steps) horizon /= 2;
  return horizon;
}

void Append(std::vector<OptionDefault>& to, const std::vector<OptionDefault>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Huang et al. 2022, as everybody has trained Atari since Mnih et al. 2015.
std::vector<OptionDefault> ForFrames(const EnvironmentSpec& environment) {
  // Pixels count 0 to 1: numbers beside them should not be hundreds.
  const Names transforms = ShowsNumbersBeside(environment)
                               ? Names{"normalise_observation", "clip_reward"}
                               : Names{"clip_reward"};
  return {{"network", "kind", std::string("nature_cnn")},
          {"network", "activation", std::string("relu")},
          {"network", "shared_trunk", true},
          {"transforms", "apply", transforms},
          {"transforms", "reward_clip", 1.0},
          {"transforms", "frame_stack", std::int64_t{4}}};
}

std::vector<OptionDefault> Collection(std::int64_t environments, std::int64_t horizon,
                                      std::int64_t steps) {
  return {{"collector", "environments", environments},
          {"collector", "horizon", HorizonFor(horizon, environments, steps)}};
}

// Who may live for so long looks as far ahead: LunarLander, of 1,000 steps, ends at 233 with such a
// discount and at 265 with lambda .98, too, and at 153 without (1M steps, 3 seeds); Acrobot, of
// 500, at -83.5 with the discount, -82.8 with lambda .97, too (and -84.6 with .98), and at -86.1
// without (200k steps, 10 seeds); FrozenLake, of 100, would lose.
void LookAhead(const EnvironmentSpec& environment, std::vector<OptionDefault>& defaults) {
  constexpr int kLong = 500;
  constexpr int kVeryLong = 1000;
  const int limit = environment.max_episode_steps;
  if (limit < kLong) return;
  defaults.push_back({kOwnSection, "discount", std::min(1.0 - 1.0 / limit, kDiscountMax)});
  defaults.push_back({kOwnSection, "gae_lambda", limit < kVeryLong ? 0.97 : 0.98});
}

}  // namespace

std::vector<OptionDefault> DefaultsOf(const Options& own, std::vector<OptionDefault> defaults) {
  std::erase_if(defaults, [&](const OptionDefault& value) {
    return value.section == kOwnSection && !own.Contains(value.name);
  });
  for (OptionDefault& value : defaults) {
    if (value.section == kOwnSection) value.section = own.section();
  }
  return defaults;
}

std::vector<OptionDefault> PpoDefaults(const EnvironmentSpec& environment, std::int64_t steps) {
  if (ShowsFrames(environment)) {
    std::vector<OptionDefault> defaults = ForFrames(environment);
    Append(defaults, Collection(8, 128, steps));
    Append(defaults, {{kOwnSection, "epochs", std::int64_t{4}},
                      {kOwnSection, "minibatch_size", std::int64_t{256}},
                      {kOwnSection, "clip", 0.1},
                      {kOwnSection, "entropy_coefficient", 0.01}});
    return defaults;
  }
  std::vector<OptionDefault> defaults = Collection(8, 256, steps);
  Append(defaults, {{kOwnSection, "epochs", std::int64_t{10}},
                    {kOwnSection, "minibatch_size", std::int64_t{64}},
                    {kOwnSection, "learning_rate", 3e-4},
                    {kOwnSection, "value_coefficient", 1.0},
                    {kOwnSection, "entropy_coefficient", 0.0}});
  if (IsContinuous(environment)) {
    defaults.push_back({"transforms", "apply", Names{"normalise_observation", "normalise_reward"}});
    return defaults;
  }
  LookAhead(environment, defaults);
  if (ShowsAnyImage(environment)) {  // Which of the 256 values it uses nobody knows.
    defaults.push_back({"transforms", "apply", Names{"normalise_observation"}});
  }
  return defaults;
}

std::vector<OptionDefault> A2cDefaults(const EnvironmentSpec& environment, std::int64_t steps) {
  std::vector<OptionDefault> defaults = {{"optimiser", "kind", std::string("rmsprop")}};
  if (ShowsFrames(environment)) {
    Append(defaults, ForFrames(environment));
    Append(defaults, Collection(16, 5, steps));
    Append(defaults,
           {{kOwnSection, "value_coefficient", 0.5}, {kOwnSection, "entropy_coefficient", 0.01}});
    return defaults;
  }
  Append(defaults, Collection(8, 5, steps));
  // Of 7e-4 to 4e-3 the rates from 2e-3 on hold CartPole from 100k steps on; none is worse
  // elsewhere.
  defaults.push_back({kOwnSection, "learning_rate", 2e-3});
  return defaults;
}

std::vector<OptionDefault> ValueDefaults(const EnvironmentSpec& environment, std::int64_t steps) {
  std::vector<OptionDefault> defaults = {{"optimiser", "epsilon", 1e-8},
                                         {"optimiser", "max_gradient_norm", 10.0},
                                         {kOwnSection, "double", true}};
  if (ShowsFrames(environment)) {
    Append(defaults, ForFrames(environment));
    Append(defaults, Collection(1, 4, steps));
    Append(defaults, {{"replay", "capacity", std::clamp<std::int64_t>(steps, 10'000, 1'000'000)},
                      {"replay", "min_size", std::clamp<std::int64_t>(steps / 20, 100, 50'000)},
                      {kOwnSection, "learning_rate", 1e-4},
                      {kOwnSection, "target_every", std::int64_t{250}},
                      {kOwnSection, "epsilon_end", 0.01},
                      {kOwnSection, "epsilon_fraction", 0.1}});
    return defaults;
  }
  Append(defaults, Collection(1, 4, steps));
  Append(defaults, {{"network", "hidden", Sizes{128, 128}},
                    {"network", "activation", std::string("relu")},
                    {"replay", "capacity", std::clamp<std::int64_t>(steps, 1'000, 100'000)},
                    {"replay", "min_size", std::clamp<std::int64_t>(steps / 20, 100, 1'000)},
                    {"replay", "batch_size", std::int64_t{128}},
                    {"replay", "training_intensity", 32.0},
                    {kOwnSection, "learning_rate", 5e-4},
                    {kOwnSection, "target_every", std::int64_t{125}},
                    {kOwnSection, "epsilon_end", 0.05},
                    {kOwnSection, "epsilon_fraction", 0.2},
                    {kOwnSection, "evaluation_epsilon", 0.0}});
  return defaults;
}

// The paper's for frames, but for the size of the memory (nobody has trained with them here yet);
// for numbers those that cartpole_masked_r2d2 began with, at half the rate of learning.
std::vector<OptionDefault> SequenceDefaults(const EnvironmentSpec& environment,
                                            std::int64_t steps) {
  std::vector<OptionDefault> defaults = Collection(8, 16, steps);
  Append(defaults, {{"replay", "sampler", std::string("prioritised")},
                    {"replay", "batch_size", std::int64_t{64}}});
  if (ShowsFrames(environment)) {
    Append(defaults, ForFrames(environment));
    const Names transforms =
        ShowsNumbersBeside(environment) ? Names{"normalise_observation"} : Names{};
    Append(defaults, {{"network", "kind", std::string("nature_cnn_lstm")},
                      {"network", "lstm_size", std::int64_t{256}},
                      {"transforms", "frame_stack", std::int64_t{1}},
                      {"transforms", "apply", transforms},  // Returns are squashed already.
                      {"optimiser", "epsilon", 1e-3},
                      {"optimiser", "max_gradient_norm", 40.0},
                      {"replay", "priority_exponent", 0.9},
                      {"replay", "capacity", std::clamp<std::int64_t>(steps, 10'000, 1'000'000)},
                      {"replay", "min_size", std::clamp<std::int64_t>(steps / 20, 100, 50'000)}});
    return defaults;
  }
  Append(defaults, {{"network", "kind", std::string("lstm")},
                    {"network", "hidden", Sizes{64}},
                    {"network", "lstm_size", std::int64_t{64}},
                    {"optimiser", "epsilon", 1e-8},
                    {"optimiser", "max_gradient_norm", 10.0},
                    {"replay", "capacity", std::clamp<std::int64_t>(steps, 1'000, 50'000)},
                    {"replay", "min_size", std::clamp<std::int64_t>(steps / 20, 100, 2'000)},
                    {"replay", "training_intensity", 80.0},
                    {kOwnSection, "sequence_length", std::int64_t{10}},
                    {kOwnSection, "sequence_overlap", std::int64_t{5}},
                    {kOwnSection, "burn_in", std::int64_t{5}},
                    {kOwnSection, "discount", 0.99},
                    {kOwnSection, "learning_rate", 5e-4},
                    {kOwnSection, "target_every", std::int64_t{50}},
                    {kOwnSection, "evaluation_epsilon", 0.0}});
  return defaults;
}

// Clipped errors run away where values are near 100 (docs/algorithms.md); quantiles need the clip.
std::vector<OptionDefault> DqnDefaults(const EnvironmentSpec& environment, std::int64_t steps,
                                       const DqnConfig& config) {
  std::vector<OptionDefault> defaults = ValueDefaults(environment, steps);
  if (!ShowsFrames(environment) && config.distribution == "none") {
    defaults.push_back({kOwnSection, "huber_delta", std::numeric_limits<double>::infinity()});
  }
  return defaults;
}

// One update a step after the first hundred or so, as Haarnoja et al. and Fujimoto et al. do.
std::vector<OptionDefault> PathwiseDefaults(const EnvironmentSpec& /*environment*/,
                                            std::int64_t steps) {
  std::vector<OptionDefault> defaults = {
      {"optimiser", "epsilon", 1e-8},
      {"optimiser", "max_gradient_norm", 0.0},
      {"network", "hidden", Sizes{256, 256}},
      {"network", "activation", std::string("relu")},
      {"replay", "capacity", std::clamp<std::int64_t>(steps, 1'000, 1'000'000)},
      {"replay", "min_size", std::clamp<std::int64_t>(steps / 20, 100, 1'000)},
      {"replay", "batch_size", std::int64_t{256}},
      {"replay", "training_intensity", 256.0}};
  Append(defaults, Collection(1, 1, steps));
  return defaults;
}

}  // namespace menger
