#include "menger/training/replay_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "menger/algorithms/probe_environments.h"
#include "menger/base/error.h"
#include "menger/environments/catalog.h"
#include "menger/training/evaluation.h"
#include "menger/training/replay_fixture.h"
#include "menger/training/run.h"
#include "menger/training/training_parts.h"

namespace menger {
namespace {

EnvironmentEntry CartPole() { return NativeEnvironments().Find("CartPole-v1"); }

double MetricOf(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// The intensity as the ratio of two integers.
struct Intensity {
  std::int64_t numerator, denominator;
};

TEST(ReplayLearnerTest, TrainingIntensityIsHeldExactlyAfterEverySlabOfARun) {
  for (const auto [numerator, denominator] :
       {Intensity{8, 1}, Intensity{128, 10}, Intensity{1, 3'200}, Intensity{7, 1'000}}) {
    ReplaySetup setup = SmallSetup();
    setup.replay.training_intensity =
        static_cast<double>(numerator) / static_cast<double>(denominator);
    // What an option can say has six decimals.
    const std::int64_t millionths = numerator * 1'000'000 / denominator;
    ReplayRun run(setup, CartPole());
    const std::int64_t slab_steps = std::int64_t{setup.environments} * setup.horizon;
    std::int64_t samples = 0;
    std::int64_t updates = 0;
    for (std::int64_t steps = slab_steps; steps <= setup.steps; steps += slab_steps) {
      const Metrics metrics = run.Step();
      if (MetricOf(metrics, "replay_items") >= 100) samples += slab_steps;
      updates += static_cast<std::int64_t>(MetricOf(metrics, "updates"));
      EXPECT_EQ(updates, samples * millionths / (16 * 1'000'000)) << "after " << steps;
    }
    EXPECT_EQ(run.learner().counters().samples, samples);
    EXPECT_EQ(run.learner().counters().updates, updates);
    EXPECT_GT(samples, setup.steps * 9 / 10);
  }
}

TEST(ReplayLearnerTest, NothingIsLearnedBeforeThereAreEnoughItems) {
  ReplaySetup setup = SmallSetup();
  ReplayRun run(setup, CartPole());
  const std::vector<float> before(run.algorithm().publication().Latest()->values().begin(),
                                  run.algorithm().publication().Latest()->values().end() - 1);
  while (true) {
    const Metrics metrics = run.Step();
    if (MetricOf(metrics, "replay_items") >= 100) break;
    EXPECT_EQ(MetricOf(metrics, "updates"), 0);
    EXPECT_TRUE(std::isnan(MetricOf(metrics, "loss")));
    EXPECT_TRUE(std::equal(before.begin(), before.end(),
                           run.algorithm().publication().Latest()->values().begin()));
  }
  EXPECT_GT(run.learner().counters().updates, 0);
}

TEST(ReplayLearnerTest, TheCapacityIsThatOfAllEnvironmentsTogether) {
  for (const int environments : {1, 7, 50}) {
    ReplaySetup setup = SmallSetup();
    setup.environments = environments;
    setup.replay.training_intensity = 0.01;
    ReplayRun run(setup, CartPole());
    Metrics metrics;
    for (int i = 0; i < 3'000 / (5 * environments); ++i) metrics = run.Step();
    EXPECT_EQ(MetricOf(metrics, "replay_items"), 500) << environments;
  }
}

TEST(ReplayLearnerTest, TheSameSeedGivesTheSameBitsForAnyNumberOfThreads) {
  ReplaySetup setup = SmallSetup();
  setup.replay.sampler = "prioritised";
  setup.options.insert(setup.options.end(), {{"distribution", "c51"},
                                             {"noisy", "true"},
                                             {"double", "true"},
                                             {"duelling", "true"},
                                             {"n_step", "3"}});
  std::vector<std::vector<float>> results;
  for (const auto& [seed, threads] : {std::pair{4, 1}, std::pair{4, 3}, std::pair{5, 1}}) {
    setup.seed = seed;
    setup.threads = threads;
    ReplayRun run(setup, CartPole());
    run.Train();
    const auto blob = run.algorithm().publication().Latest();
    results.emplace_back(blob->values().begin(), blob->values().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

TEST(ReplayLearnerTest, GatheringAheadChangesNoBitOfUniformDraws) {
  std::vector<float> values[2];
  for (const bool ahead : {false, true}) {
    ReplaySetup setup = SmallSetup();
    setup.replay.prefetch = ahead ? "on" : "off";
    ReplayRun run(setup, CartPole());
    run.Train();
    const auto published = run.algorithm().publication().Latest()->values();
    values[ahead].assign(published.begin(), published.end());
  }
  EXPECT_EQ(values[0], values[1]);
}

// Agreement, with an observation that compresses.
struct Wide {
  static constexpr int kObservationSize = 64;
  static constexpr int kActions = 2;
  static EnvironmentSpec Spec() {
    EnvironmentSpec spec = probes::SpecNamed("ProbeWide", kActions);
    spec.observation =
        menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {64}, {-1.0}, {1.0})});
    return spec;
  }
  void Reset(Random& random, float* observation) {
    sign = random.Integers(0, 2) == 0 ? -1.0F : 1.0F;
    std::fill_n(observation, kObservationSize, sign);
  }
  StepResult Step(int action, Random&, float*) {
    return {.reward = (action == 1) == (sign > 0) ? 1.0 : -1.0, .terminated = true};
  }
  float sign = 0;
};

TEST(ReplayLearnerTest, CompressionChangesNoBitOfWhatIsLearned) {
  ReplaySetup setup = SmallSetup();
  std::vector<std::vector<float>> results;
  for (const char* const compression : {"none", "automatic"}) {
    setup.replay.compression = compression;
    ReplayRun run(setup, probes::Entry<Wide>());
    run.Train();
    const auto blob = run.algorithm().publication().Latest();
    results.emplace_back(blob->values().begin(), blob->values().end());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(ReplayLearnerTest, OptionsThatWouldNeverLearnAreRefused) {
  ReplaySetup setup = SmallSetup();
  setup.replay.min_size = 501;
  EXPECT_THROW(ReplayRun(setup, CartPole()), Error);

  setup = SmallSetup();
  setup.replay.bytes_max = 3'000;
  ReplayRun run(setup, CartPole());
  try {
    run.Train();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("replay.bytes_max = 3000"));
  }
}

TEST(ReplayLearnerTest, ARecipeWithReplayTrainsIsEvaluatedAndSaved) {
  const std::string folder = testing::TempDir() + "replay_learner_run";
  std::filesystem::remove_all(folder);
  const EnvironmentCatalog catalog = NativeEnvironments();
  Experiment experiment(R"(
environment = "CartPole-v1"
algorithm = "dqn"
steps = 2_000
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 4
[network]
hidden = [16]
[replay]
capacity = 1_000
min_size = 1_000
sampler = "prioritised"
[evaluation]
episodes = 2
)",
                        "test", {}, AllAlgorithms(), catalog);
  ProgressReporter progress(/*terminal=*/false);
  const RunOutcome outcome =
      StartRun(experiment, [&] { return RunFolder::Create(folder); }, "",
               {.progress = progress, .stop_requested = [] { return false; }});
  EXPECT_EQ(outcome.counters.steps, 2'000);
  const auto counters =
      RunFolder::Open(folder).NewestWholeCheckpoint().Read<ReplayCounters>("consumer/counters");
  EXPECT_GT(counters.samples, 900);
  EXPECT_EQ(counters.updates, counters.samples * 8 / 32);

  // What was saved plays as what was evaluated did.
  const TrainedRun saved = LoadRun(folder, "newest", catalog);
  const auto greedy = GreedyPolicies(*saved.algorithm, /*seed=*/2, /*count=*/1);
  const EvaluationResult played =
      Evaluate(EvaluationPlanOf(*saved.experiment, *saved.algorithm, /*index=*/0),
               saved.environment, greedy);
  EXPECT_EQ(outcome.counters.evaluated_at, 2'000);
  EXPECT_EQ(outcome.counters.evaluation_episodes, 2);
  EXPECT_EQ(outcome.counters.evaluation_mean, played.mean());
  const auto parameters = [](Algorithm& algorithm) {
    const std::span<const float> values = algorithm.publication().Latest()->values();
    return std::vector<float>(values.begin(), values.end() - 1);  // The last one is epsilon.
  };
  EXPECT_NE(parameters(*saved.algorithm),
            parameters(*MakeAlgorithm(*saved.experiment, saved.environment)));
  std::filesystem::remove_all(folder);
}

// Every variant on the five probe environments, whose values are known exactly.
class ReplayProbeTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<ReplayRun> Trained(EnvironmentEntry environment) const {
    ReplaySetup setup{.environments = 4, .horizon = 4, .steps = 8'000, .seed = 3};
    setup.options = {
        {"discount", "0.9"},       {"learning_rate", "0.003"}, {"epsilon_end", "0.3"},
        {"epsilon_fraction", "1"}, {"target_every", "20"},     {"value_minimum", "-2"},
        {"value_maximum", "2"},    {"quantiles", "16"},        {"evaluation_epsilon", "0"}};
    setup.replay = {.capacity = 1'000, .min_size = 100, .batch_size = 32, .training_intensity = 8};
    setup.network.hidden = {32};
    const auto has = [&](const char* word) { return GetParam().find(word) != std::string::npos; };
    for (const char* const option : {"double", "duelling", "noisy"}) {
      if (has(option)) setup.options.emplace_back(option, "true");
    }
    for (const char* const model : {"c51", "qr"}) {
      if (has(model)) setup.options.emplace_back("distribution", model);
    }
    if (has("steps")) setup.options.emplace_back("n_step", "3");
    if (has("prioritised")) setup.replay.sampler = "prioritised";
    auto run = std::make_unique<ReplayRun>(setup, std::move(environment));
    run->Train();
    return run;
  }

  // The largest value at an observation, and the greedy action.
  static std::pair<float, std::int64_t> At(ReplayRun& run, float observation) {
    const auto values = run.algorithm().Values({.observations = &observation, .rows = 1});
    const auto best = std::max_element(values.begin(), values.end());
    return {*best, best - values.begin()};
  }
};

TEST_P(ReplayProbeTest, TheValueOfAConstantRewardIsLearned) {
  const auto run = Trained(probes::Entry<probes::Constant>());
  EXPECT_NEAR(At(*run, 0).first, 1.0, 0.1);
}

TEST_P(ReplayProbeTest, ValuesDependOnTheObservation) {
  const auto run = Trained(probes::Entry<probes::Observed>());
  EXPECT_NEAR(At(*run, 1).first, 1.0, 0.1);
  EXPECT_NEAR(At(*run, -1).first, -1.0, 0.1);
}

TEST_P(ReplayProbeTest, RewardsAreDiscountedBackwards) {
  const auto run = Trained(probes::Entry<probes::Discounted>());
  EXPECT_NEAR(At(*run, 0).first, 0.9, 0.1);
  EXPECT_NEAR(At(*run, 1).first, 1.0, 0.1);
}

TEST_P(ReplayProbeTest, TheBetterActionIsChosen) {
  const auto run = Trained(probes::Entry<probes::Choice>());
  EXPECT_EQ(At(*run, 0).second, 1);
  EXPECT_NEAR(At(*run, 0).first, 1.0, 0.1);
}

TEST_P(ReplayProbeTest, ThePolicyDependsOnTheObservation) {
  const auto run = Trained(probes::Entry<probes::Agreement>());
  EXPECT_EQ(At(*run, 1).second, 1);
  EXPECT_EQ(At(*run, -1).second, 0);
  EXPECT_NEAR(At(*run, 1).first, 1.0, 0.1);
  EXPECT_NEAR(At(*run, -1).first, 1.0, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Variants, ReplayProbeTest,
                         testing::Values("plain", "double", "duelling", "noisy", "steps",
                                         "prioritised", "c51", "qr", "double_duelling_c51_steps",
                                         "prioritised_double_duelling_noisy_c51_steps"),
                         [](const auto& info) { return info.param; });

// Five states in a row, shown as one-hot. Left pays .2 at the left end; right pays 1 at the right
// end and ends the episode. An episode starts anywhere, and a time limit cuts it: a learner that
// took that for an end would be far off.
struct Chain {
  static constexpr int kStates = 5;
  static constexpr int kObservationSize = kStates;
  static constexpr int kActions = 2;
  static EnvironmentSpec Spec() {
    EnvironmentSpec spec = probes::SpecNamed("Chain", kActions);
    spec.observation =
        menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {kStates}, {0.0}, {1.0})});
    spec.max_episode_steps = 6;
    return spec;
  }
  void Show(float* observation) const {
    for (int i = 0; i < kStates; ++i) observation[i] = i == state ? 1.0F : 0.0F;
  }
  void Reset(Random& random, float* observation) {
    state = static_cast<int>(random.Integers(0, kStates));
    Show(observation);
  }
  StepResult Step(int action, Random&, float* observation) {
    StepResult result;
    if (action == 1) {
      result.terminated = state == kStates - 1;
      result.reward = result.terminated ? 1.0 : 0.0;
      if (!result.terminated) ++state;
    } else {
      result.reward = state == 0 ? 0.2 : 0.0;
      if (state > 0) --state;
    }
    Show(observation);
    return result;
  }
  int state = 0;
};

// Q* by value iteration, in float64.
std::vector<double> ChainValues(double discount) {
  std::vector<double> q(2L * Chain::kStates, 0.0);
  const auto best = [&](int state) { return std::max(q[2 * state], q[2 * state + 1]); };
  for (int sweep = 0; sweep < 1'000; ++sweep) {
    for (int state = 0; state < Chain::kStates; ++state) {
      q[2 * state] = (state == 0 ? 0.2 : 0.0) + discount * best(std::max(0, state - 1));
      q[2 * state + 1] = state + 1 == Chain::kStates ? 1.0 : discount * best(state + 1);
    }
  }
  return q;
}

class ChainTest : public testing::TestWithParam<std::string> {};

TEST_P(ChainTest, LearnedValuesAreTheOptimalOnes) {
  constexpr double kDiscount = 0.8;
  ReplaySetup setup{.environments = 4, .horizon = 4, .steps = 30'000, .seed = 2};
  setup.options = {{"discount", std::to_string(kDiscount)},
                   {"distribution", GetParam()},
                   {"learning_rate", "0.002"},
                   {"target_every", "50"},
                   {"epsilon_end", "1"},  // Acts at random: the values do not depend on it.
                   {"value_minimum", "0"},
                   {"value_maximum", "1.25"},
                   {"quantiles", "16"}};
  setup.replay = {.capacity = 5'000, .min_size = 500, .batch_size = 32, .training_intensity = 8};
  setup.network.hidden = {32};
  ReplayRun run(setup, probes::Entry<Chain>());
  run.Train();
  std::vector<float> observations(Chain::kStates * Chain::kStates, 0.0F);
  for (int i = 0; i < Chain::kStates; ++i) observations[i * Chain::kStates + i] = 1;
  const auto values =
      run.algorithm().Values({.observations = observations.data(), .rows = Chain::kStates});
  const auto optimal = ChainValues(kDiscount);
  for (std::size_t i = 0; i < optimal.size(); ++i) EXPECT_NEAR(values[i], optimal[i], 0.05) << i;
}

INSTANTIATE_TEST_SUITE_P(ReturnModels, ChainTest, testing::Values("none", "c51", "qr"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace menger
