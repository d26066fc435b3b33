#include "menger/training/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "menger/base/error.h"
#include "menger/collectors/random_policy.h"
#include "menger/environments/catalog.h"

namespace menger {
namespace {

// A policy that always pushes to the right, so that an episode is a function of its seed.
class PushRight : public Policy {
 public:
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}
  void Act(std::span<const ActSlice> slices) override {
    for (const auto& [slab, row, positions] : slices) {
      for (int i = 0; i < positions.count; ++i) {
        *slab->action<std::int64_t>(0, row, positions.first + i) = 1;
      }
    }
  }

 private:
  const PolicySpec spec_{};
};

template <typename Policy, typename... Arguments>
std::vector<std::unique_ptr<menger::Policy>> Policies(int count, const Arguments&... arguments) {
  std::vector<std::unique_ptr<menger::Policy>> policies;
  for (int i = 0; i < count; ++i) policies.push_back(std::make_unique<Policy>(arguments...));
  return policies;
}

EvaluationResult Play(int episodes, std::uint64_t seed) {
  const EnvironmentCatalog environments = NativeEnvironments();
  return Evaluate({.episodes = episodes, .seed = seed}, environments.Find("CartPole-v1"),
                  Policies<PushRight>(1));
}

TEST(EvaluationTest, EachSeedPlaysExactlyOneEpisode) {
  const EvaluationResult together = Play(12, /*seed=*/100);
  ASSERT_EQ(together.episodes(), 12);
  for (int i = 0; i < 12; ++i) {
    const EvaluationResult alone = Play(1, 100 + static_cast<std::uint64_t>(i));
    EXPECT_EQ(together.returns[i], alone.returns[0]);
    EXPECT_EQ(together.lengths[i], alone.lengths[0]);
    EXPECT_EQ(together.returns[i], static_cast<double>(together.lengths[i]));  // Reward 1 a step.
  }
}

TEST(EvaluationTest, MoreEpisodesThanFitSideBySideArePlayedInPasses) {
  const int episodes = kEvaluationEnvironmentsMax + 3;
  const EvaluationResult result = Play(episodes, /*seed=*/7);
  ASSERT_EQ(result.episodes(), episodes);
  EXPECT_EQ(result.returns.back(), Play(1, 7 + kEvaluationEnvironmentsMax + 2).returns[0]);
}

TEST(EvaluationTest, EpisodesAreNotCutByTheSlab) {
  const EnvironmentCatalog environments = NativeEnvironments();
  const EnvironmentEntry& entry = environments.Find("Pendulum-v1");  // 200 steps, always.
  const auto policies =
      Policies<RandomPolicy>(1, entry.spec.observation, entry.spec.action, /*seed=*/1);
  const EvaluationResult result = Evaluate({.episodes = 3, .seed = 1}, entry, policies);
  EXPECT_EQ(result.lengths, (std::vector<std::int64_t>{200, 200, 200}));
}

TEST(EvaluationTest, AnEpisodeWithoutATimeLimitIsCut) {
  EnvironmentEntry entry = NativeEnvironments().Find("Pendulum-v1");
  const auto policies =
      Policies<RandomPolicy>(2, entry.spec.observation, entry.spec.action, /*seed=*/1);
  EvaluationResult result = Evaluate({.episodes = 3, .steps_max = 50}, entry, policies);
  EXPECT_EQ(result.lengths, (std::vector<std::int64_t>{200, 200, 200}));
  EXPECT_EQ(result.cut, 0);
  entry.spec.max_episode_steps = 0;  // As far as anybody says.
  std::atomic<std::int64_t> steps = 0;
  result = Evaluate({.episodes = 3, .steps_max = 50, .steps = &steps}, entry, policies);
  EXPECT_EQ(result.lengths, (std::vector<std::int64_t>{50, 50, 50}));
  EXPECT_EQ(result.cut, 3);
  EXPECT_GE(steps, 150);
  EXPECT_NE(CutText(result, "Mine", 50).find("3 of 3 episodes had not ended after 50 steps"),
            std::string::npos);
}

// It asks once in 32 steps.
TEST(EvaluationTest, StoppedItGivesTheEpisodesThatHaveEnded) {
  const EnvironmentCatalog environments = NativeEnvironments();
  const EnvironmentEntry& entry = environments.Find("LunarLander-v3");
  const auto policies =
      Policies<RandomPolicy>(2, entry.spec.observation, entry.spec.action, /*seed=*/1);
  const EvaluationResult whole = Evaluate({.episodes = 20, .seed = 3}, entry, policies);
  for (const int slabs : {1, 3, 4, 40}) {
    int asked = 0;
    const EvaluationPlan plan = {
        .episodes = 20, .seed = 3, .stop_requested = [&] { return ++asked >= slabs; }};
    const EvaluationResult stopped = Evaluate(plan, entry, policies);
    EvaluationResult expected;
    for (int i = 0; i < whole.episodes(); ++i) {
      if (whole.lengths[i] > 32 * slabs) continue;
      expected.returns.push_back(whole.returns[i]);
      expected.lengths.push_back(whole.lengths[i]);
    }
    EXPECT_EQ(stopped.returns, expected.returns) << slabs << " slabs";
    EXPECT_EQ(stopped.lengths, expected.lengths) << slabs << " slabs";
  }
}

TEST(EvaluationTest, StoppedBetweenPassesItPlaysNoOther) {
  const EnvironmentCatalog environments = NativeEnvironments();
  const EvaluationPlan plan = {.episodes = kEvaluationEnvironmentsMax + 3,
                               .stop_requested = [] { return true; }};
  const EvaluationResult result =
      Evaluate(plan, environments.Find("CartPole-v1"), Policies<PushRight>(1));
  EXPECT_EQ(result.episodes(), kEvaluationEnvironmentsMax);  // Each of less than 32 steps.
}

// Draws are those of the environment and step, so random actions are the same, too.
TEST(EvaluationTest, TheResultIsTheSameForAnyNumberOfWorkers) {
  const EnvironmentCatalog environments = NativeEnvironments();
  for (const char* const name : {"CartPole-v1", "LunarLander-v3"}) {
    const EnvironmentEntry& entry = environments.Find(name);
    std::optional<EvaluationResult> alone;
    for (const int workers : {1, 2, 3, 7, 40}) {  // The last: more than there are episodes.
      const auto policies =
          Policies<RandomPolicy>(workers, entry.spec.observation, entry.spec.action, /*seed=*/1);
      const EvaluationResult result = Evaluate({.episodes = 11, .seed = 3}, entry, policies);
      if (!alone) alone = result;
      EXPECT_EQ(result.returns, alone->returns) << name << " with " << workers << " workers";
      EXPECT_EQ(result.lengths, alone->lengths) << name << " with " << workers << " workers";
    }
  }
}

// Says that its numbers depend on the batch, and notes how large each was.
class Dependent : public PushRight {
 public:
  explicit Dependent(std::vector<int>& positions) : positions_(positions) {}
  const PolicySpec& spec() const override { return spec_; }
  void Act(std::span<const ActSlice> slices) override {
    PushRight::Act(slices);
    for (const ActSlice& slice : slices) positions_.push_back(slice.positions.count);
  }

 private:
  const PolicySpec spec_{.batch_invariant = false};
  std::vector<int>& positions_;
};

TEST(EvaluationTest, APolicyThatIsNotBatchInvariantActsForAllAtOnce) {
  const EnvironmentCatalog environments = NativeEnvironments();
  std::vector<int> first, second;
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<Dependent>(first));
  policies.push_back(std::make_unique<Dependent>(second));
  Evaluate({.episodes = 6}, environments.Find("CartPole-v1"), policies);
  EXPECT_THAT(first, testing::Each(6));
  EXPECT_THAT(second, testing::IsEmpty());
}

TEST(EvaluationTest, WithoutAPolicyThereIsNothingToEvaluate) {
  const EnvironmentCatalog environments = NativeEnvironments();
  EXPECT_THROW(Evaluate({}, environments.Find("CartPole-v1"), {}), Error);
}

// numpy: mean, std, min, max of [1, 2, 4, 9].
TEST(EvaluationTest, StatisticsAreThoseOfThePopulation) {
  const EvaluationResult result{.returns = {1, 2, 4, 9}, .lengths = {1, 1, 1, 1}};
  EXPECT_EQ(result.mean(), 4.0);
  EXPECT_NEAR(result.standard_deviation(), 3.082207001484488, 1e-15);
  EXPECT_EQ(result.minimum(), 1.0);
  EXPECT_EQ(result.maximum(), 9.0);
}

TEST(EvaluationTest, NoEpisodesAreRefused) { EXPECT_THROW(Play(0, 1), Error); }

}  // namespace
}  // namespace menger
