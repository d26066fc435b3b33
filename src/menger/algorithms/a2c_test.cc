// A2C beside Stable-Baselines3's: the same slabs must make the same parameters, update by update.
#include "menger/algorithms/a2c.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/a2c_test_values.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

// As tools/record_a2c.py.
constexpr int kEnvironments = 3;
constexpr int kSteps = 5;
constexpr int kUpdates = 3;
constexpr int kObservation = 3;
constexpr int kRecordedTerminated = 1;
constexpr int kRecordedTruncated = 2;

// What Stable-Baselines3 did with one optimiser.
struct Recorded {
  std::string optimiser;
  std::span<const int> actions;
  std::span<const float> values;
  std::span<const double> rewards;
  std::span<const float> parameters;
  std::span<const double> losses;
  std::span<const double> norms;
};

Recorded RecordedWithTorchsRmsProp() {
  return {.optimiser = "torch_rmsprop",
          .actions = recorded::kTorchActions,
          .values = recorded::kTorchValues,
          .rewards = recorded::kTorchRewards,
          .parameters = recorded::kTorchParameters,
          .losses = recorded::kTorchLosses,
          .norms = recorded::kTorchNorms};
}

Recorded RecordedWithTensorFlowsRmsProp() {
  return {.optimiser = "rmsprop",
          .actions = recorded::kTensorFlowActions,
          .values = recorded::kTensorFlowValues,
          .rewards = recorded::kTensorFlowRewards,
          .parameters = recorded::kTensorFlowParameters,
          .losses = recorded::kTensorFlowLosses,
          .norms = recorded::kTensorFlowNorms};
}

EnvironmentSpec ScriptSpec() {
  LeafSpec observation = LeafSpec::Scalar("observation", DataType::kFloat32);
  observation.shape = {kObservation};
  return {.name = "Script",
          .observation = Spec({observation}),
          .action = Spec({LeafSpec::Discrete("action", 3)})};
}

// One collection pass as it was recorded, log-probabilities apart: A2C does not read them.
void FillSlab(const Recorded& recorded, int pass, Slab& slab) {
  for (int row = 0; row <= kSteps; ++row) {
    for (int column = 0; column < kEnvironments; ++column) {
      const int shown = (pass * (kSteps + 1) + row) * kEnvironments + column;
      std::copy_n(recorded::kA2cObservations + shown * kObservation, kObservation,
                  slab.observation<float>(0, row, column));
      if (row == kSteps) continue;
      const int index = (pass * kSteps + row) * kEnvironments + column;
      *slab.action<std::int64_t>(0, row, column) = recorded.actions[index];
      *slab.policy<float>(ActorCriticPolicies::kValue, row, column) = recorded.values[index];
      slab.reward(row)[column] = recorded.rewards[index];
      const int end = recorded::kA2cEnds[index];
      slab.terminated(row)[column] = (end & kRecordedTerminated) != 0 ? 1 : 0;
      slab.truncated(row)[column] = (end & kRecordedTruncated) != 0 ? 1 : 0;
      slab.episode_end(row)[column] = slab.is_first(row + 1)[column] = end != 0 ? 1 : 0;
      slab.valid(row)[column] = 1;
      slab.final_index(row)[column] = end != 0 ? slab.FinalSlot(row, column) : -1;
      // Nothing may be read from the slot of a step that ends no episode.
      float* const final_observation =
          slab.final_observation<float>(0, slab.FinalSlot(row, column));
      for (int i = 0; i < kObservation; ++i) {
        final_observation[i] = end != 0 ? recorded::kA2cFinals[index * kObservation + i]
                                        : std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
}

std::vector<float> ParametersOf(A2c& a2c) {
  a2c.Publish();
  const auto latest = a2c.publication().Latest();
  const std::span<const float> parameters = latest->values();
  return {parameters.begin(), parameters.end()};
}

void SetParameters(std::span<const float> parameters, A2c& a2c) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("menger_a2c_test_" + std::to_string(getpid()));
  ArchiveWriter writer(path);
  writer.Scope("model").Write("manifest", a2c.publication().manifest().ToText());
  writer.Scope("model").Write("parameters", parameters);
  writer.Commit();
  ArchiveReader reader(path);
  a2c.LoadParameters(reader);
  std::filesystem::remove_all(path);
}

double MetricOf(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void ExpectTheSameUpdates(const Recorded& recorded) {
  const EnvironmentSpec script = ScriptSpec();
  AlgorithmContext context{.environment = script, .environments = kEnvironments};
  context.network.hidden = {6, 5};
  // The coefficient is twice the recorded 0.5: our value loss is half the squared error.
  A2c a2c({.common = {.discount = 0.9,
                      .gae_lambda = 0.95,
                      .learning_rate = 0.01,
                      .learning_rate_schedule = "linear",
                      .value_coefficient = 1.0,
                      .entropy_coefficient = 0.05,
                      .normalise_advantage = false}},
          context);
  SetParameters(recorded::kA2cParameters, a2c);
  const std::int64_t count = a2c.parameter_count();
  ASSERT_EQ(recorded.parameters.size(), static_cast<std::size_t>(count * kUpdates));
  const auto update = MakeLocalUpdateRule(
      {.kind = recorded.optimiser, .epsilon = 1e-5, .decay = 0.99, .max_gradient_norm = 1.0},
      count);
  Slab slab({.observation = script.observation,
             .action = script.action,
             .policy = a2c.policies().spec().columns,
             .horizon = kSteps,
             .columns = ColumnLayout::Single(kEnvironments)});
  Slab* const slabs[] = {&slab};
  for (int pass = 0; pass < kUpdates; ++pass) {
    FillSlab(recorded, pass, slab);
    // Theirs counts the steps of the pass that is learned from as done; the run had one pass more.
    const Metrics metrics = a2c.Learn(slabs, *update, (pass + 1.0) / (kUpdates + 1));
    EXPECT_NEAR(MetricOf(metrics, "policy_loss"), recorded.losses[pass * 3], 1e-5) << pass;
    EXPECT_NEAR(2 * MetricOf(metrics, "value_loss"), recorded.losses[pass * 3 + 1], 1e-4) << pass;
    EXPECT_NEAR(MetricOf(metrics, "entropy"), -recorded.losses[pass * 3 + 2], 1e-6) << pass;
    EXPECT_NEAR(MetricOf(metrics, "gradient_norm"), recorded.norms[pass], 1e-5) << pass;
    const std::vector<float> parameters = ParametersOf(a2c);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_NEAR(parameters[i], recorded.parameters[pass * count + i], 2e-6)
          << "update " << pass << ", parameter " << i;
    }
  }
}

// Of parameters that others have moved meanwhile.
class SharedParametersRule final : public UpdateRule {
 public:
  bool moved = false;

  double Step(int, const GroupValues&, double) override { return 0; }
  void Sum(std::span<double>) override {}
  int learners() const override { return 1; }
  int learner() const override { return 0; }
  bool Pull(int, std::span<float> parameters) override {
    if (moved) std::ranges::fill(parameters, 0.25F);
    return moved;
  }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

TEST(A2cTest, WhatOthersMadeOfSharedParametersIsActedWith) {
  const AlgorithmContext context{.environment = ScriptSpec(), .environments = kEnvironments};
  A2c a2c({}, context);
  SharedParametersRule update;
  const auto version = a2c.publication().Latest()->version().packed();
  a2c.BeforeCollection(update);
  EXPECT_EQ(a2c.publication().Latest()->version().packed(), version);
  update.moved = true;
  a2c.BeforeCollection(update);
  const auto latest = a2c.publication().Latest();
  EXPECT_GT(latest->version().packed(), version);
  EXPECT_EQ(latest->values()[0], 0.25F);
  EXPECT_EQ(a2c.network().parameters()[7], 0.25F);
}

TEST(A2cTest, UpdatesEqualThoseOfStableBaselines3) {
  ExpectTheSameUpdates(RecordedWithTorchsRmsProp());
}

TEST(A2cTest, UpdatesEqualThoseOfStableBaselines3WithTensorFlowsRmsProp) {
  ExpectTheSameUpdates(RecordedWithTensorFlowsRmsProp());
}

}  // namespace
}  // namespace menger
