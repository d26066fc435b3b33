#include "menger/training/evaluation.h"

#include <gtest/gtest.h>

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
  void Act(Slab& slab, int row, PositionRange positions) override {
    for (int i = 0; i < positions.count; ++i) {
      *slab.action<std::int64_t>(0, row, positions.first + i) = 1;
    }
  }

 private:
  const PolicySpec spec_;
};

EvaluationResult Play(int episodes, std::uint64_t seed) {
  const EnvironmentCatalog environments = NativeEnvironments();
  PushRight policy;
  return Evaluate({.episodes = episodes, .seed = seed}, environments.Find("CartPole-v1"), policy);
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
  RandomPolicy policy(entry.spec.observation, entry.spec.action, /*seed=*/1);
  const EvaluationResult result = Evaluate({.episodes = 3, .seed = 1}, entry, policy);
  EXPECT_EQ(result.lengths, (std::vector<std::int64_t>{200, 200, 200}));
}

TEST(EvaluationTest, AnEpisodeWithoutEndIsGivenUp) {
  const EnvironmentCatalog environments = NativeEnvironments();
  const EnvironmentEntry& entry = environments.Find("Pendulum-v1");
  RandomPolicy policy(entry.spec.observation, entry.spec.action, /*seed=*/1);
  EXPECT_THROW(Evaluate({.episodes = 1, .steps_max = 50}, entry, policy), Error);
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
