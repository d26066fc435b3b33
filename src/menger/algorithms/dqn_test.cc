#include "menger/algorithms/dqn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/update_rule.h"

namespace menger {
namespace {

constexpr int kRows = 16;
constexpr int kInputs = 3;
constexpr int kActions = 4;

AlgorithmContext Context() {
  AlgorithmContext context{
      .environment = {.name = "Any",
                      .observation = Spec(
                          {LeafSpec::Box("observation", DataType::kFloat32, {kInputs}, {-1}, {1})}),
                      .action = Spec({LeafSpec::Discrete("action", kActions)})},
      .seed = 5};
  context.network.hidden = {8};
  return context;
}

// A batch as replay would hand it out, of random numbers.
struct RandomBatch {
  explicit RandomBatch(int n_step, std::uint64_t seed = 1)
      : rewards(static_cast<std::size_t>(kRows) * n_step),
        observations(kRows * kInputs),
        next_observations(kRows * kInputs),
        actions(kRows),
        terminated(kRows),
        ones(kRows, 1),
        counts(kRows),
        items(kRows) {
    Random random = Random::FromSeed(seed);
    for (auto* const column : {&rewards, &observations, &next_observations}) {
      for (float& value : *column) value = static_cast<float>(random.Normal());
    }
    for (int row = 0; row < kRows; ++row) {
      actions[row] = random.Integers(0, kActions);
      terminated[row] = row % 5 == 0;
      counts[row] = 1 + row % n_step;
      items[row].probability = 0.01 * (1 + row % 3);
    }
    const auto add = [&](auto& column, std::span<const std::int32_t> rows) {
      columns.push_back({.data = reinterpret_cast<std::byte*>(column.data()),
                         .item_bytes = column.size() / kRows * sizeof(column[0]),
                         .rows = rows});
    };
    add(observations, ones);
    add(actions, ones);
    add(rewards, counts);
    add(terminated, ones);
    add(next_observations, ones);
  }

  ReplayBatch view() const { return {.columns = columns, .items = items}; }
  NetworkInput input() const { return {.observations = observations.data(), .rows = kRows}; }
  NetworkInput next_input() const {
    return {.observations = next_observations.data(), .rows = kRows};
  }

  std::vector<float> rewards, observations, next_observations;
  std::vector<std::int64_t> actions;
  std::vector<std::uint8_t> terminated;
  std::vector<std::int32_t> ones, counts;
  std::vector<SampledItem> items;
  std::vector<BatchColumn> columns;
};

// Takes the gradient and leaves the parameters alone.
class GradientProbe final : public UpdateRule {
 public:
  using UpdateRule::Step;
  double Step(int, const GroupValues& values, double) override {
    gradient.assign(values.gradients.begin(), values.gradients.end());
    return 0;
  }
  void Sum(std::span<double>) override {}
  int learners() const override { return 1; }
  int learner() const override { return 0; }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

  std::vector<float> gradient;
};

// Writes the parameters of an algorithm whose values are asked for.
class ParameterShift final : public UpdateRule {
 public:
  ParameterShift(std::size_t index, float by) : index_(index), by_(by) {}
  using UpdateRule::Step;
  double Step(int, const GroupValues& values, double) override {
    values.parameters[index_] += by_;
    return 0;
  }
  void Sum(std::span<double>) override {}
  int learners() const override { return 1; }
  int learner() const override { return 0; }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  std::size_t index_;
  float by_;
};

double MetricOf(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

DqnConfig ConfigOfVariant(const std::string& variant) {
  DqnConfig config{.n_step = 3, .target_every = 1'000'000, .importance_exponent = 0.5};
  config.double_q = variant.find("double") != std::string::npos;
  config.duelling = variant.find("duelling") != std::string::npos;
  for (const char* const name : {"c51", "qr"}) {
    if (variant.find(name) != std::string::npos) config.distribution = name;
  }
  config.atoms = 11;
  config.value_minimum = -4;
  config.value_maximum = 4;
  config.quantiles = 7;
  return config;
}

class DqnVariantTest : public testing::TestWithParam<std::string> {};

// With a target network that stays, the loss reported before and after a parameter was moved is the
// loss as a function of that parameter alone: a target that let a gradient through would show.
TEST_P(DqnVariantTest, TheGradientIsThatOfTheLossWithItsTargetsHeldFast) {
  DqnConfig config = ConfigOfVariant(GetParam());
  config.double_q = false;  // The choice of the next action would move with the parameter.
  Dqn dqn(config, Context());
  const RandomBatch batch(3);
  GradientProbe probe;
  dqn.Learn(batch.view(), probe, 0);
  const auto loss_after = [&](std::size_t index, float by) {
    ParameterShift there(index, by);
    ParameterShift back(index, -by);
    dqn.Learn(batch.view(), there, 0);
    return MetricOf(dqn.Learn(batch.view(), back, 0), "loss");
  };
  double largest = 0;
  for (std::size_t i = 0; i < probe.gradient.size(); ++i) {
    constexpr float kStep = 4e-3F;
    const double slope = (loss_after(i, kStep) - loss_after(i, -kStep)) / (2 * kStep);
    EXPECT_NEAR(probe.gradient[i], slope, 2e-3) << i;
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 0.01);
}

TEST_P(DqnVariantTest, TheTargetNetworkChangesOnScheduleOnly) {
  DqnConfig config = ConfigOfVariant(GetParam());
  config.target_every = 3;
  Dqn dqn(config, Context());
  const RandomBatch batch(3);
  const auto update = MakeLocalUpdateRule({}, dqn.parameter_count());
  auto before = dqn.TargetValues(batch.input());
  EXPECT_EQ(before, dqn.Values(batch.input()));
  for (int i = 1; i <= 9; ++i) {
    dqn.Learn(batch.view(), *update, 0);
    const auto after = dqn.TargetValues(batch.input());
    if (i % 3 == 0) {
      EXPECT_EQ(after, dqn.Values(batch.input()));
    } else {
      EXPECT_EQ(after, before);
      EXPECT_NE(after, dqn.Values(batch.input()));
    }
    before = after;
  }
}

TEST_P(DqnVariantTest, LearningFromOneBatchLowersItsLoss) {
  Dqn dqn(ConfigOfVariant(GetParam()), Context());
  const RandomBatch batch(3);
  const auto update = MakeLocalUpdateRule({}, dqn.parameter_count());
  const double first = MetricOf(dqn.Learn(batch.view(), *update, 0), "loss");
  for (int i = 0; i < 2'000; ++i) dqn.Learn(batch.view(), *update, 0);
  EXPECT_LT(MetricOf(dqn.Learn(batch.view(), *update, 0), "loss"), 0.9 * first);
}

INSTANTIATE_TEST_SUITE_P(Variants, DqnVariantTest,
                         testing::Values("plain", "double", "duelling", "c51", "qr", "double_c51",
                                         "double_duelling_qr", "double_duelling_c51"),
                         [](const auto& info) { return info.param; });

// Targets and errors written out from the values of the two networks, in float64.
TEST(DqnTest, PrioritiesAreTheAbsoluteErrorsOfDoubleNStepTargets) {
  for (const bool double_q : {false, true}) {
    DqnConfig config = ConfigOfVariant("");
    config.double_q = double_q;
    Dqn dqn(config, Context());
    const auto update = MakeLocalUpdateRule({}, dqn.parameter_count());
    const RandomBatch first(3, /*seed=*/2);
    for (int i = 0; i < 50; ++i) dqn.Learn(first.view(), *update, 0);  // The two differ now.

    const RandomBatch batch(3);
    const auto values = dqn.Values(batch.input());
    const auto chooser =
        double_q ? dqn.Values(batch.next_input()) : dqn.TargetValues(batch.next_input());
    const auto judge = dqn.TargetValues(batch.next_input());
    GradientProbe probe;
    dqn.Learn(batch.view(), probe, 0);
    for (int row = 0; row < kRows; ++row) {
      double target = 0;
      for (int k = 0; k < batch.counts[row]; ++k) {
        target += std::pow(0.99, k) * batch.rewards[row * 3 + k];
      }
      const auto begin = chooser.begin() + static_cast<std::ptrdiff_t>(row) * kActions;
      const auto best = std::max_element(begin, begin + kActions) - begin;
      if (batch.terminated[row] == 0) {
        target += std::pow(0.99, batch.counts[row]) * judge[row * kActions + best];
      }
      EXPECT_NEAR(dqn.priorities()[row],
                  std::abs(target - values[row * kActions + batch.actions[row]]), 1e-5);
    }
  }
}

TEST(DqnTest, NoisyUpdatesDrawNewNoise) {
  DqnConfig config = ConfigOfVariant("double_duelling_c51");
  config.noisy = true;
  Dqn dqn(config, Context());
  const RandomBatch batch(3);
  GradientProbe probe;
  const double first = MetricOf(dqn.Learn(batch.view(), probe, 0), "loss");
  EXPECT_NE(MetricOf(dqn.Learn(batch.view(), probe, 0), "loss"), first);
}

TEST(DqnTest, WhatWasSavedGoesOnBitForBit) {
  const std::string path = testing::TempDir() + "/dqn_test_archive";
  std::filesystem::remove_all(path);
  DqnConfig config = ConfigOfVariant("double_duelling_c51");
  config.noisy = true;
  config.target_every = 4;
  const RandomBatch batch(3);
  const auto rule =
      MakeLocalUpdateRule({.kind = "rmsprop"}, Dqn(config, Context()).parameter_count());
  Dqn dqn(config, Context());
  for (int i = 0; i < 6; ++i) dqn.Learn(batch.view(), *rule, 0.5);
  dqn.SetProgress(0.01);
  dqn.Publish();
  {
    ArchiveWriter archive(path);
    ArchiveWriter algorithm = archive.Scope("dqn");
    ArchiveWriter update = archive.Scope("rule");
    dqn.Save(algorithm);
    rule->Save(update);
    archive.Commit();
  }
  Dqn again(config, Context());
  const auto rule_again = MakeLocalUpdateRule({.kind = "rmsprop"}, again.parameter_count());
  const ArchiveReader archive(path);
  ArchiveReader algorithm = archive.Scope("dqn");
  ArchiveReader update = archive.Scope("rule");
  again.Load(algorithm);
  rule_again->Load(update);
  const auto published = again.publication().Latest();
  EXPECT_EQ(published->version().packed(), dqn.publication().Latest()->version().packed());
  EXPECT_TRUE(std::ranges::equal(published->values(), dqn.publication().Latest()->values()));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(dqn.Learn(batch.view(), *rule, 0.5), again.Learn(batch.view(), *rule_again, 0.5));
  }
  EXPECT_EQ(dqn.TargetValues(batch.input()), again.TargetValues(batch.input()));
  std::filesystem::remove_all(path);
}

TEST(DqnTest, WhatDoesNotFitIsRefused) {
  AlgorithmContext context = Context();
  context.environment.action = Spec({LeafSpec::Box("action", DataType::kFloat32, {1}, {-1}, {1})});
  EXPECT_THROW(Dqn({}, context), Error);
  context = Context();
  context.transforms.apply = {"normalise_reward"};
  EXPECT_THROW(Dqn({}, context), Error);
  EXPECT_THROW(Dqn({.distribution = "c51", .value_minimum = 1, .value_maximum = 1}, Context()),
               Error);
}

// Policies.

Slab OneRow(const Dqn& dqn, int columns, int padding = 1) {
  return Slab({.observation = Context().environment.observation,
               .action = Context().environment.action,
               .policy = dqn.policies().spec().columns,
               .columns = ColumnLayout(columns, 1, 1, padding)});
}

TEST(DqnTest, EpsilonFallsInALineAndIsTheShareOfRandomActions) {
  DqnConfig config = ConfigOfVariant("");
  config.epsilon.start = 0.8;
  config.epsilon.end = 0.2;
  config.epsilon.fraction = 0.5;
  Dqn dqn(config, Context());
  const auto policy = dqn.MakePolicy(PolicyMode::kSample, 3);
  const auto greedy = dqn.MakePolicy(PolicyMode::kGreedy, 3);
  constexpr int kColumns = 20'000;
  Slab slab = OneRow(dqn, kColumns);
  const auto values = dqn.Values({.observations = slab.observation(0, 0), .rows = 1});
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  const auto share = [&](Policy& of) {
    of.Refresh();
    of.Act(slab, 0, {.first = 0, .count = slab.positions()});
    const auto* const actions = slab.action<std::int64_t>(0, 0);
    return 1.0 - static_cast<double>(std::count(actions, actions + kColumns, best)) / kColumns;
  };
  for (const auto& [progress, epsilon] :
       {std::pair{0.0, 0.8}, std::pair{0.25, 0.5}, std::pair{0.5, 0.2}, std::pair{1.0, 0.2}}) {
    dqn.SetProgress(progress);
    dqn.Publish();
    // A random action is the best one by chance; four standard deviations.
    EXPECT_NEAR(share(*policy), epsilon * (kActions - 1) / kActions, 0.015);
    EXPECT_NEAR(share(*greedy), config.epsilon.evaluation * (kActions - 1) / kActions, 0.006);
  }
}

// Without noise the values are those of the means, which a fresh clone has; one draw lasts a step.
TEST(DqnTest, NoisyPoliciesDrawNoiseAStepAndEvaluationHasNone) {
  DqnConfig config = ConfigOfVariant("double_duelling_c51");
  config.noisy = true;
  Dqn dqn(config, Context());
  Slab slab = OneRow(dqn, 1);
  std::ranges::copy(std::vector<float>{0.5F, -1.0F, 2.0F}, slab.observation<float>(0, 0, 0));
  const auto means = dqn.Values({.observations = slab.observation(0, 0), .rows = 1});
  const float best = *std::max_element(means.begin(), means.end());
  const auto value_at = [&slab](Policy& policy, std::int64_t step) {
    slab.set_first_step(step);
    policy.Act(slab, 0, {.first = 0, .count = 1});
    return *slab.policy<float>(0, 0, 0);
  };
  const auto sampling = dqn.MakePolicy(PolicyMode::kSample, 3);
  const auto greedy = dqn.MakePolicy(PolicyMode::kGreedy, 3);
  const float noisy = value_at(*sampling, 0);
  EXPECT_NE(noisy, best);
  EXPECT_EQ(value_at(*sampling, 0), noisy);
  EXPECT_NE(value_at(*sampling, 1), noisy);
  for (const std::int64_t step : {0, 1, 2}) EXPECT_EQ(value_at(*greedy, step), best);
}

TEST(DqnTest, RandomActionsDoNotDependOnTheBatching) {
  DqnConfig config = ConfigOfVariant("");
  config.noisy = true;
  config.epsilon.start = 0.5;
  Dqn dqn(config, Context());
  Slab whole = OneRow(dqn, 64);
  Slab parts = OneRow(dqn, 64);
  const auto first = dqn.MakePolicy(PolicyMode::kSample, 3);
  const auto second = dqn.MakePolicy(PolicyMode::kSample, 3);
  first->Act(whole, 0, {.first = 0, .count = 64});
  second->Act(parts, 0, {.first = 40, .count = 24});
  second->Act(parts, 0, {.first = 0, .count = 40});
  const auto* const actions = whole.action<std::int64_t>(0, 0);
  EXPECT_TRUE(std::equal(actions, actions + 64, parts.action<std::int64_t>(0, 0)));
}

// All are shown the same: one draw of noise gives one value, their own draws give as many as there
// are environments, the same ones however the columns are batched.
TEST(DqnTest, NoiseMayBeOfEachEnvironmentItself) {
  constexpr int kColumns = 6;
  for (const bool own : {false, true}) {
    DqnConfig config = ConfigOfVariant("");
    config.noisy = true;
    config.noise_per_environment = own;
    Dqn dqn(config, Context());
    Slab whole = OneRow(dqn, kColumns);
    Slab parts = OneRow(dqn, kColumns);
    dqn.MakePolicy(PolicyMode::kSample, 3)->Act(whole, 0, {.first = 0, .count = kColumns});
    const auto other = dqn.MakePolicy(PolicyMode::kSample, 3);
    other->Act(parts, 0, {.first = 4, .count = 2});
    other->Act(parts, 0, {.first = 0, .count = 4});
    const auto* const values = whole.policy<float>(ValuePolicies::kValue, 0);
    EXPECT_TRUE(
        std::equal(values, values + kColumns, parts.policy<float>(ValuePolicies::kValue, 0)));
    const std::set<float> distinct(values, values + kColumns);
    EXPECT_EQ(distinct.size(), own ? kColumns : 1U);
  }
}

TEST(DqnTest, MaskedActionsAreNeverTakenNorBootstrappedFrom) {
  AlgorithmContext context = Context();
  context.environment.observation = Spec(
      {context.environment.observation[0], LeafSpec::Mask(std::string(kActionMask), kActions)});
  DqnConfig config = ConfigOfVariant("");
  config.epsilon.start = 0.5;
  Dqn dqn(config, context);
  constexpr int kColumns = 1'000;
  Slab slab({.observation = context.environment.observation,
             .action = context.environment.action,
             .policy = dqn.policies().spec().columns,
             .columns = ColumnLayout::Single(kColumns)});
  for (int i = 0; i < kColumns; ++i) {
    auto* const mask = slab.observation<std::uint8_t>(1, 0, i);
    mask[i % kActions] = mask[(i + 1) % kActions] = 1;
  }
  dqn.MakePolicy(PolicyMode::kSample, 3)->Act(slab, 0, {.first = 0, .count = kColumns});
  int first_of_two = 0;
  for (int i = 0; i < kColumns; ++i) {
    const std::int64_t action = *slab.action<std::int64_t>(0, 0, i);
    EXPECT_EQ(slab.observation<std::uint8_t>(1, 0, i)[action], 1);
    first_of_two += action == i % kActions ? 1 : 0;
  }
  for (int i = 0; i < kColumns; ++i) {  // The columns: the best that is allowed, and the one taken.
    const auto values = dqn.Values({.observations = slab.observation(0, 0, i), .rows = 1});
    const float first = values[i % kActions];
    const float second = values[(i + 1) % kActions];
    const std::int64_t action = *slab.action<std::int64_t>(0, 0, i);
    ASSERT_EQ(*slab.policy<float>(ValuePolicies::kValue, 0, i), std::max(first, second));
    ASSERT_EQ(*slab.policy<float>(ValuePolicies::kActionValue, 0, i), values[action]);
  }
  EXPECT_GT(first_of_two, kColumns / 8);
  EXPECT_LT(first_of_two, kColumns * 7 / 8);

  RandomBatch batch(3);
  std::vector<std::uint8_t> masks(kRows * kActions, 0);
  for (int row = 0; row < kRows; ++row) masks[row * kActions + row % kActions] = 1;
  std::fill_n(masks.begin(), kActions, 0);  // Row 0 is terminated: its mask is not asked.
  batch.columns.push_back({.data = reinterpret_cast<std::byte*>(masks.data()),
                           .item_bytes = kActions,
                           .rows = batch.ones});
  const auto values = dqn.Values(batch.input());
  const auto judge = dqn.TargetValues(batch.next_input());
  GradientProbe probe;
  dqn.Learn(batch.view(), probe, 0);
  for (int row = 0; row < kRows; ++row) {
    if (batch.terminated[row] != 0 || batch.counts[row] != 1) continue;
    const double target = batch.rewards[row * 3] + 0.99 * judge[row * kActions + row % kActions];
    EXPECT_NEAR(dqn.priorities()[row],
                std::abs(target - values[row * kActions + batch.actions[row]]), 1e-5);
  }
}

}  // namespace
}  // namespace menger
