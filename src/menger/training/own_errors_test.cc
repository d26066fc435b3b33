// Priorities with which collectors send items, against those that a learner of the same parameters
// finds: one goes by what the policy wrote into slabs, the other passes the items through networks.
#include "menger/algorithms/own_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>

#include "menger/algorithms/dqn.h"
#include "menger/algorithms/r2d2.h"
#include "menger/base/file_testing.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/networks/update_rule.h"
#include "menger/replay/client/batch_source.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/replay_store.h"
#include "menger/training/run.h"

namespace menger {
namespace {

constexpr int kEnvironments = 3;
constexpr int kItemsMax = 10'000;
const Deadline kEnd = Deadline::After(std::chrono::minutes(2));

// Collects slabs that end in the middle of episodes, and asks the learner what it thinks of all
// items.
void ExpectPrioritiesOfTheLearner(ReplayAlgorithm& algorithm, const EnvironmentEntry& environment,
                                  std::int64_t steps) {
  ReplayStore store({.tables = {{.name = "replay",
                                 .items = algorithm.items(),
                                 .sampler = {.kind = SelectorKind::kFifo},
                                 .rate_limiter = RateLimiterOptions::MinSize(1),
                                 .items_max = kItemsMax,
                                 .times_sampled_max = 1}}});
  LocalReplay replay(store);
  const auto writer = algorithm.MakeWriter(
      {.replay = replay, .environments = kEnvironments, .own_errors_by = &algorithm.publication()});
  const auto collector =
      MakeCollector({.environments = kEnvironments, .horizon = 7, .seed = 3}, environment,
                    [&] { return algorithm.MakePolicy(PolicyMode::kSample, /*seed=*/3); });
  std::int64_t ended = 0;
  for (std::int64_t step = 0; step < steps; step += 7 * kEnvironments) {
    writer->Write(collector->Collect(), kEnd);
    ended += std::ssize(collector->episodes());
  }
  EXPECT_GE(ended, 3);
  const int items = static_cast<int>(store.table(0).info().items);
  ASSERT_GT(items, 50);
  BatchSource source(replay.NewSampler(0), {.items_max = items, .in_turn = true});
  source.Draw({.count = items, .deadline = kEnd});
  const ReplayBatch batch = source.Take(kEnd);
  const auto update = MakeLocalUpdateRule({}, algorithm.parameter_groups());
  algorithm.Learn(batch, *update, /*progress=*/0);
  double largest = 0;
  for (int i = 0; i < batch.size(); ++i) {
    const double own = batch.items[i].priority - kPriorityMin;
    EXPECT_NEAR(own, algorithm.priorities()[i], 2e-5 * std::max(1.0, own)) << "item " << i;
    largest = std::max(largest, own);
  }
  EXPECT_GT(largest, 0.1);
}

AlgorithmContext ContextOf(const EnvironmentEntry& environment) {
  AlgorithmContext context{
      .environment = environment.spec, .environments = kEnvironments, .seed = 9};
  context.network.hidden = {16};
  return context;
}

// CartPole's episodes end, MountainCar's are cut by their time limit.
class OwnErrorsTest : public testing::TestWithParam<const char*> {
 protected:
  const EnvironmentEntry environment_ = NativeEnvironments().Find(GetParam());
};

TEST_P(OwnErrorsTest, AnItemOfDqnComesWithItsError) {
  for (const int n_step : {1, 3}) {
    for (const bool double_q : {false, true}) {
      DqnConfig config;
      config.n_step = n_step;
      config.double_q = double_q;
      config.discount = 0.9;
      Dqn dqn(config, ContextOf(environment_));
      ExpectPrioritiesOfTheLearner(dqn, environment_, 700);
    }
  }
}

TEST_P(OwnErrorsTest, ASequenceOfR2d2ComesWithTheMixOfItsErrors) {
  R2d2Config config;
  config.sequences = {.length = 6, .overlap = 3, .burn_in = 2, .n_step = 3};
  config.priority_mix = 0.7;
  R2d2 r2d2(config, ContextOf(environment_));
  ExpectPrioritiesOfTheLearner(r2d2, environment_, 700);
}

INSTANTIATE_TEST_SUITE_P(Environments, OwnErrorsTest,
                         testing::Values("CartPole-v1", "MountainCar-v0"), [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

TEST(OwnErrorsTest, WhereNobodyHasThemARecipeMayNotAskForThem) {
  const EnvironmentCatalog catalog = NativeEnvironments();
  ProgressReporter progress = ProgressReporter::Silent();
  const testing_files::Folder folder;
  const auto refused = [&](const char* recipe) {
    Experiment experiment(recipe, "test", {}, AllAlgorithms(), catalog);
    return testing_files::ErrorText(ErrorCode::kInvalidArgument, [&] {
      StartRun(experiment, [&] { return RunFolder::Create(folder / "run"); }, "",
               {.progress = progress, .stop_requested = [] { return false; }});
    });
  };
  EXPECT_THAT(refused("environment = 'CartPole-v1'\nalgorithm = 'dqn'\n"
                      "[replay]\ninitial_priority = 'error'\n"),
              testing::HasSubstr("sampler = uniform"));
  EXPECT_THAT(refused("environment = 'Pendulum-v1'\nalgorithm = 'sac'\n"
                      "[replay]\ninitial_priority = 'error'\nsampler = 'prioritised'\n"),
              testing::HasSubstr("set it to highest"));
}

}  // namespace
}  // namespace menger
