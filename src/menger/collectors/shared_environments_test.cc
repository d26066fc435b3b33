// Several collectors with a share of a run's environments each, against one that has them all.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "menger/collectors/collector.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"

namespace menger {
namespace {

constexpr int kShare = 36;

std::unique_ptr<Policy> MakeRandomPolicy() {
  const EnvironmentSpec spec = FakeGroup::MakeSpec();
  return std::make_unique<RandomPolicy>(spec.observation, spec.action, /*seed=*/5);
}

std::vector<CollectorPlan> PlansOfAll() {
  const CollectorPlan base{
      .environments = 2 * kShare, .horizon = 17, .decorrelation_steps = 9, .seed = 11};
  std::vector<CollectorPlan> plans = {base};
  for (const int workers : {1, 2, 3}) {
    for (const CollectorKind kind : {CollectorKind::kLocal, CollectorKind::kSynchronous}) {
      plans.push_back(base);
      plans.back().kind = kind;
      plans.back().workers = workers;
    }
    plans.push_back(base);
    plans.back().kind = CollectorKind::kAlternating;
    plans.back().workers = workers;
    plans.back().groups = 3;
  }
  return plans;
}

void ExpectSameColumns(const Slab& some, const Slab& all, int first) {
  for (int row = 0; row < some.horizon(); ++row) {
    for (int column = 0; column < kShare; ++column) {
      const int of_some = some.columns().PositionOf(column);
      const int of_all = all.columns().PositionOf(first + column);
      ASSERT_EQ(some.columns().EnvironmentAt(of_some), all.columns().EnvironmentAt(of_all));
      ASSERT_EQ(*some.observation<float>(0, row, of_some), *all.observation<float>(0, row, of_all))
          << "row " << row;
      ASSERT_EQ(*some.action<std::int64_t>(0, row, of_some),
                *all.action<std::int64_t>(0, row, of_all));
    }
  }
}

TEST(SharedEnvironmentsTest, CollectorsThatShareThemCollectWhatOneOfAllDoes) {
  for (const CollectorPlan& plan : PlansOfAll()) {
    SCOPED_TRACE(fmt::format("{}, {} workers", NameOf(plan.kind), plan.workers));
    const auto whole = MakeCollector(plan, FakeEnvironment(), MakeRandomPolicy);
    std::vector<std::unique_ptr<Collector>> shares;
    CollectorPlan part = plan;
    part.environments = kShare;
    for (; part.first_environment < plan.environments; part.first_environment += kShare) {
      shares.push_back(MakeCollector(part, FakeEnvironment(), MakeRandomPolicy));
    }
    for (int slab = 0; slab < 4; ++slab) {
      const Slab& all = whole->Collect();
      std::int64_t episodes = 0;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        ExpectSameColumns(shares[i]->Collect(), all, static_cast<int>(i) * kShare);
        const auto has = [&](const EpisodeResult& episode) {
          return std::ranges::any_of(whole->episodes(), [&](const EpisodeResult& other) {
            return other.environment == episode.environment && other.length == episode.length &&
                   other.episode_return == episode.episode_return;
          });
        };
        EXPECT_TRUE(std::ranges::all_of(shares[i]->episodes(), has));
        episodes += std::ssize(shares[i]->episodes());
      }
      EXPECT_EQ(episodes, std::ssize(whole->episodes()));
    }
  }
}

}  // namespace
}  // namespace menger
