#include "menger/collectors/episode_tracker.h"

#include <gtest/gtest.h>

namespace menger {
namespace {

// Two blocks of ten environments with padding between them, all rows valid, reward 1.
Slab MakeSlab(int horizon) {
  SlabSpec spec{.observation = Spec({LeafSpec::Scalar("observation", DataType::kFloat32)}),
                .action = Spec({LeafSpec::Discrete("action", 2)}),
                .horizon = horizon,
                .columns = ColumnLayout(20, 1, 2, 16)};
  Slab slab(std::move(spec));
  for (int row = 0; row < horizon; ++row) {
    for (int i = 0; i < 20; ++i) {
      slab.valid(row)[slab.columns().PositionOf(i)] = 1;
      slab.reward(row)[slab.columns().PositionOf(i)] = 1;
    }
  }
  return slab;
}

TEST(EpisodeTrackerTest, EpisodesAreReportedByRowThenEnvironmentAcrossSlabs) {
  EpisodeTracker tracker(20);
  Slab slab = MakeSlab(4);
  const auto position = [&](int environment) { return slab.columns().PositionOf(environment); };
  slab.episode_end(2)[position(15)] = 1;
  slab.episode_end(2)[position(3)] = 1;
  slab.episode_end(1)[position(19)] = 1;
  tracker.Scan(slab);
  ASSERT_EQ(tracker.episodes().size(), 3u);
  EXPECT_EQ(tracker.episodes()[0].environment, 19);
  EXPECT_EQ(tracker.episodes()[0].length, 2);
  EXPECT_EQ(tracker.episodes()[1].environment, 3);
  EXPECT_EQ(tracker.episodes()[2].environment, 15);
  EXPECT_EQ(tracker.episodes()[2].episode_return, 3);

  slab.set_first_step(4);
  tracker.Scan(slab);  // The same ends again: environment 19 had 2 steps left over, now 2 more.
  ASSERT_EQ(tracker.episodes().size(), 3u);
  EXPECT_EQ(tracker.episodes()[0].length, 4);
  EXPECT_EQ(tracker.episodes()[0].episode_return, 4);
  EXPECT_EQ(tracker.episodes()[1].length, 4);
}

TEST(EpisodeTrackerTest, AnInvalidRowDropsWhatWasSummedUp) {
  EpisodeTracker tracker(20);
  Slab slab = MakeSlab(6);
  slab.valid(2)[0] = 0;
  slab.reward(2)[0] = 100;
  slab.episode_end(5)[0] = 1;
  tracker.Scan(slab);
  ASSERT_EQ(tracker.episodes().size(), 1u);
  EXPECT_EQ(tracker.episodes()[0].length, 3);
  EXPECT_EQ(tracker.episodes()[0].episode_return, 3);
}

TEST(EpisodeTrackerTest, AnEpisodeWhoseBeginningWasNotSeenIsNotReported) {
  EpisodeTracker tracker(20);
  tracker.MarkPartial(5);
  Slab slab = MakeSlab(6);
  slab.episode_end(1)[5] = 1;
  slab.episode_end(4)[5] = 1;
  tracker.Scan(slab);
  ASSERT_EQ(tracker.episodes().size(), 1u);
  EXPECT_EQ(tracker.episodes()[0].length, 3);
}

}  // namespace
}  // namespace menger
