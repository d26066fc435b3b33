#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "menger/environments/catalog.h"
#include "menger/replay/client/local_replay.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/replay_fixture.h"
#include "menger/training/roles/collector_role.h"
#include "menger/training/roles/learner_role.h"
#include "menger/training/roles/role_thread.h"

namespace menger {
namespace {

EnvironmentEntry CartPole() { return NativeEnvironments().Find("CartPole-v1"); }

// A learner and a collector that meet in a table of this process.
class Pipeline {
 public:
  Pipeline(const ReplaySetup& setup, const RateLimiterOptions& limiter)
      : setup_(setup), environment_(CartPole()) {
    DqnConfig config;
    Options options("algorithm");
    config.Declare(options);
    for (const auto& [name, text] : setup.options) options.SetFromText(name, text);
    algorithm_ = std::make_unique<Dqn>(config, AlgorithmContext{.environment = environment_.spec,
                                                                .network = setup.network,
                                                                .environments = setup.environments,
                                                                .seed = setup.seed});
    update_ = MakeLocalUpdateRule(setup.optimiser, algorithm_->parameter_groups());
    const ReplayLearnerContext context{.environments = setup.environments, .seed = setup.seed};
    ReplayStoreOptions store = ReplayStoreFor(setup.replay, context, *algorithm_);
    store.tables[0].rate_limiter = limiter;
    store_ = std::make_unique<ReplayStore>(store);
    client_ = std::make_unique<LocalReplay>(*store_);
    trainer_ =
        std::make_unique<ReplayTrainer>(setup.replay, context, *client_, /*table=*/0, *algorithm_);
    const CollectorPlan plan{.environments = setup.environments,
                             .horizon = setup.horizon,
                             .pin = false,
                             .seed = setup.seed};
    collector = std::make_unique<CollectorRole>(
        CollectorShare{.environments = setup.environments, .horizon = setup.horizon},
        MakeCollector(plan, environment_,
                      [&] { return algorithm_->MakePolicy(PolicyMode::kSample, setup.seed); }),
        algorithm_->MakeWriter({.replay = *client_,
                                .environments = setup.environments,
                                .chunk_steps = ReplayChunkSteps(setup.replay, setup.environments)}),
        counts_, setup.steps);
    learner = std::make_unique<LearnerRole>(
        *algorithm_, *update_, *trainer_, [this](std::int64_t updates) { return pace(updates); },
        setup.environments * setup.horizon);
  }

  TableInfo table() { return client_->info(0); }
  std::vector<float> values() {
    const auto blob = algorithm_->publication().Latest();
    return {blob->values().begin(), blob->values().end()};
  }

 private:
  const ReplaySetup setup_;
  const EnvironmentEntry environment_;
  std::unique_ptr<Dqn> algorithm_;
  std::unique_ptr<UpdateRule> update_;
  std::unique_ptr<ReplayStore> store_;
  std::unique_ptr<ReplayClient> client_;
  std::unique_ptr<ReplayTrainer> trainer_;
  RunCounts counts_;

 public:
  std::function<Pace(std::int64_t updates)> pace;
  std::unique_ptr<CollectorRole> collector;  // Last: they use all of the above.
  std::unique_ptr<LearnerRole> learner;
};

TEST(RolesTest, InLockStepAPipelineIsTheSynchronousLoopBitForBit) {
  for (const char* const sampler : {"uniform", "prioritised"}) {
    ReplaySetup setup = SmallSetup();
    setup.replay.sampler = sampler;
    ReplayRun run(setup, CartPole());
    run.Train();
    const auto expected = run.algorithm().publication().Latest();

    Pipeline pipeline(setup, RateLimiterOptions::MinSize(setup.replay.min_size));
    std::int64_t seen = 0;
    std::int64_t owed = 0;
    double progress = 0;
    pipeline.pace = [&](std::int64_t updates) {
      const std::int64_t steps = pipeline.collector->done();
      if (steps != seen) {
        progress = static_cast<double>(seen) / static_cast<double>(setup.steps);
        if (pipeline.table().items >= setup.replay.min_size) owed += 8 * (steps - seen);
        seen = steps;
      }
      return Pace{.steps = steps,
                  .progress = progress,
                  .updates_due = owed / setup.replay.batch_size - updates,
                  .over = steps >= setup.steps};
    };
    const Deadline now = Deadline::After({});
    while (pipeline.collector->Advance(now).state == Advanced::State::kWorked) {
      while (pipeline.learner->Advance(now).state == Advanced::State::kWorked) {
      }
    }
    EXPECT_EQ(pipeline.learner->done(), run.learner().counters().updates);
    EXPECT_TRUE(std::ranges::equal(pipeline.values(), expected->values())) << sampler;
  }
}

TEST(RolesTest, InThreadsTheLimiterHoldsTheIntensityWithinItsBuffer) {
  ReplaySetup setup = SmallSetup();
  setup.steps = 20'000;
  const double buffer = 8 * 15 + 2 * 16;
  const auto limiter = RateLimiterOptions::SampleToInsertRatio(8, setup.replay.min_size, buffer);
  Pipeline pipeline(setup, limiter);
  pipeline.pace = [&](std::int64_t updates) {
    const std::int64_t steps = pipeline.collector->done();
    Pace pace{.steps = steps,
              .progress = static_cast<double>(steps) / static_cast<double>(setup.steps),
              .updates_due = Pace::kAsReplayAllows,
              .over = steps >= setup.steps};
    if (pace.over) {
      const std::int64_t due = 8 * (pipeline.table().inserts - setup.replay.min_size) / 16;
      pace.updates_due = std::max<std::int64_t>(0, due - updates);
    }
    return pace;
  };
  RoleThread collecting(*pipeline.collector);
  RoleThread learning(*pipeline.learner);
  while (!learning.ended()) {
    const TableInfo table = pipeline.table();
    if (table.inserts < setup.replay.min_size) continue;
    const double ahead = 8.0 * static_cast<double>(table.inserts - setup.replay.min_size) -
                         static_cast<double>(table.samples);
    ASSERT_LE(std::abs(ahead), buffer + 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  collecting.Join();
  learning.Join();
  EXPECT_EQ(pipeline.collector->done(), setup.steps - setup.steps % 3 + 3);
  const TableInfo table = pipeline.table();
  EXPECT_NEAR(static_cast<double>(table.samples),
              8.0 * static_cast<double>(table.inserts - setup.replay.min_size), buffer);
}

}  // namespace
}  // namespace menger
