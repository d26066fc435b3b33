// The part of the learning ladder that runs in seconds: real tasks learned to their known scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "menger/algorithms/training_fixture.h"
#include "menger/environments/catalog.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

// rl-baselines3-zoo's settings for CartPole-v1.
TrainingSetup ZooCartPole(std::uint64_t seed) {
  TrainingSetup setup{.environments = 8, .horizon = 32, .steps = 61'440, .seed = seed};
  setup.options = {{"discount", "0.98"},
                   {"gae_lambda", "0.8"},
                   {"epochs", "20"},
                   {"minibatch_size", "256"},
                   {"learning_rate", "0.001"},
                   {"learning_rate_schedule", "linear"},
                   {"clip_schedule", "linear"},
                   {"entropy_coefficient", "0"}};
  return setup;
}

double Metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(LearningSlowTest, PpoBalancesCartPoleFromTwoSeeds) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  for (const std::uint64_t seed : {2, 3}) {
    TrainingSetup untrained = ZooCartPole(seed);
    untrained.options.emplace_back("learning_rate", "0");
    untrained.steps = 1;
    EXPECT_LT(TrainedAlgorithm(untrained, catalog.Find("CartPole-v1")).Evaluate(20, 500), 200)
        << "seed " << seed << " shows no learning";
    TrainedAlgorithm trained(ZooCartPole(seed), catalog.Find("CartPole-v1"));
    EXPECT_GE(trained.Evaluate(/*episodes=*/20, /*horizon=*/500), 475) << "seed " << seed;
  }
}

TEST(LearningTest, TheFirstMinibatchOfPpoFindsThePolicyUnchanged) {
  TrainingSetup setup{.environments = 4, .horizon = 16, .steps = 64};
  setup.options = {{"epochs", "1"}, {"minibatch_size", "64"}};
  setup.transforms.apply = {"normalise_observation", "normalise_reward"};
  const EnvironmentCatalog catalog = NativeEnvironments();
  const TrainedAlgorithm trained(setup, catalog.Find("CartPole-v1"));
  EXPECT_LE(Metric(trained.first_metrics(), "approximate_kl"), 1e-6);
  EXPECT_EQ(Metric(trained.first_metrics(), "clip_fraction"), 0.0);
  // Nor later, when the statistics of normalisation are no longer empty and every slab moves them:
  // what nothing was learned from since is as it was when it acted.
  setup.steps = 5 * 64;
  setup.options.emplace_back("learning_rate", "0");
  const TrainedAlgorithm unchanged(setup, catalog.Find("CartPole-v1"));
  EXPECT_LE(Metric(unchanged.last_metrics(), "approximate_kl"), 1e-6);
  EXPECT_EQ(Metric(unchanged.last_metrics(), "clip_fraction"), 0.0);
}

TEST(LearningTest, TheSameSeedGivesTheSameBitsForAnyNumberOfLearnerThreads) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  TrainingSetup setup = ZooCartPole(5);
  setup.steps = 2'048;
  TrainedAlgorithm first(setup, catalog.Find("CartPole-v1"));
  setup.threads = 3;
  TrainedAlgorithm second(setup, catalog.Find("CartPole-v1"));
  const auto a = first.algorithm().publication().Latest();
  const auto b = second.algorithm().publication().Latest();
  ASSERT_EQ(a->values().size(), b->values().size());
  for (std::size_t i = 0; i < a->values().size(); ++i)
    ASSERT_EQ(a->values()[i], b->values()[i]) << i;
}

// Four actions of which only two are allowed, and they change: an allowed one pays 1. A policy that
// ever took a forbidden one would end the run with an error.
struct MaskedGroup final : EnvironmentGroup {
  explicit MaskedGroup(const GroupOptions& options)
      : options(options), random(Random::FromSeed(options.seed)) {}

  static EnvironmentSpec Spec() {
    return {.name = "Masked",
            .observation =
                menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {1}, {0}, {1}),
                              LeafSpec::Mask(std::string(kActionMask), 4)}),
            .action = menger::Spec({LeafSpec::Discrete("action", 4)})};
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  void Show(Slab& slab, int row, int position) {
    const std::int64_t allowed = random.Integers(0, 4);
    *slab.observation<float>(0, row, position) = static_cast<float>(allowed) / 3;
    auto* const mask = slab.observation<std::uint8_t>(1, row, position);
    for (int action = 0; action < 4; ++action) {
      mask[action] = action == allowed || action == (allowed + 1) % 4 ? 1 : 0;
    }
    slab.is_first(row)[position] = 1;
  }
  void Reset(Slab& slab, int row) override {
    for (int i = 0; i < options.columns.count; ++i)
      Show(slab, row, options.columns.first_position + i);
  }
  void Step(Slab& slab, int row) override {
    for (int i = 0; i < options.columns.count; ++i) {
      const int position = options.columns.first_position + i;
      const auto* const mask = slab.observation<std::uint8_t>(1, row, position);
      const std::int64_t action = *slab.action<std::int64_t>(0, row, position);
      if (mask[action] == 0) throw InvalidArgument("forbidden action {}", action);
      slab.reward(row)[position] =
          mask[(action + 1) % 4] != 0 ? 1 : 0;  // The first of the two allowed.
      slab.terminated(row)[position] = slab.episode_end(row)[position] = slab.valid(row)[position] =
          1;
      slab.truncated(row)[position] = 0;
      slab.final_index(row)[position] = -1;
      Show(slab, row + 1, position);
    }
  }
  void ResetParked(Slab&, int) override {}
  void StepRandomly(Slab&, int, std::span<const int>, std::uint64_t) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

  const GroupOptions options;
  Random random;
  const EnvironmentSpec spec_ = Spec();
};

bool Fits(const AlgorithmEntry& entry, const EnvironmentSpec& environment) {
  try {
    entry.Check(environment);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(LearningTest, AMaskThatDoesNotFitTheActionsIsRefused) {
  for (const auto& entry : AllAlgorithms()) {
    Options options(entry->name());
    entry->Declare(options);
    AlgorithmContext context{.environment = MaskedGroup::Spec()};
    if (Fits(*entry, context.environment)) {
      EXPECT_NO_THROW(entry->Make(context)) << entry->name();
    }
    context.environment.action = Spec({LeafSpec::Discrete("action", 5)});
    EXPECT_THROW(entry->Make(context), Error) << entry->name();
    context.environment.action =
        Spec({LeafSpec::Box("action", DataType::kFloat32, {4}, {-1}, {1})});
    EXPECT_THROW(entry->Make(context), Error) << entry->name();
  }
}

TEST(LearningTest, ASlabWithoutAValidRowChangesNoParametersAndIsReportedUnderTheSameNames) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  const EnvironmentEntry& environment = catalog.Find("CartPole-v1");
  for (const auto& entry : AllAlgorithms()) {
    if (entry->data_rule() != DataRule::kSlabs) continue;
    const std::string name = entry->name();
    const TrainingSetup setup{.algorithm = name, .environments = 2, .horizon = 4, .steps = 8};
    TrainedAlgorithm trained(setup, environment);
    SlabAlgorithm& algorithm = trained.algorithm();
    Slab slab({.observation = environment.spec.observation,
               .state = algorithm.policies().spec().state,
               .action = environment.spec.action,
               .policy = algorithm.policies().spec().columns,
               .horizon = 4,
               .columns = ColumnLayout::Single(2)});
    Slab* const slabs[] = {&slab};
    const auto before = algorithm.publication().Latest();
    const auto update = MakeLocalUpdateRule({}, algorithm.parameter_count());
    const Metrics metrics = algorithm.Learn(slabs, *update, 0.5);
    ASSERT_EQ(metrics.size(), trained.last_metrics().size()) << name;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      EXPECT_EQ(metrics[i].first, trained.last_metrics()[i].first);
      EXPECT_TRUE(std::isfinite(metrics[i].second)) << name << " " << metrics[i].first;
    }
    algorithm.Publish();
    const auto after = algorithm.publication().Latest();
    EXPECT_TRUE(std::ranges::equal(before->values(), after->values())) << name;
  }
}

TEST(LearningTest, AMaskedPolicyNeverTakesAForbiddenActionAndLearnsTheBestAllowedOne) {
  const EnvironmentEntry environment{.spec = MaskedGroup::Spec(),
                                     .make_group = [](const GroupOptions& options) {
                                       return std::make_unique<MaskedGroup>(options);
                                     }};
  TrainingSetup setup{.environments = 8, .horizon = 16, .steps = 12'800};
  setup.options = {{"learning_rate", "0.003"}, {"minibatch_size", "64"}};
  TrainedAlgorithm trained(setup, environment);
  EXPECT_GE(trained.Evaluate(/*episodes=*/64, /*horizon=*/1), 0.95);
}

}  // namespace
}  // namespace menger
