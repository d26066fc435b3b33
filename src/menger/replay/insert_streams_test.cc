#include "menger/replay/insert_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

std::vector<InsertStreamEnd> All(const InsertStreams& streams) {
  std::vector<InsertStreamEnd> ends;
  streams.CopyTo(ends);
  return ends;
}

std::vector<InsertStreamEnd> Changes(InsertStreams& streams) {
  std::vector<InsertStreamEnd> ends;
  streams.TakeChanges(ends);
  return ends;
}

TEST(InsertStreamsTest, TheOnesThatInsertedLongestAgoAreForgotten) {
  InsertStreams streams(/*streams_max=*/3);
  for (std::uint64_t stream = 1; stream <= 3; ++stream) streams.Advance(stream, 10 * stream);
  streams.Advance(1, 11);
  streams.Advance(4, 1);
  EXPECT_EQ(All(streams), (std::vector<InsertStreamEnd>{{3, 30}, {1, 11}, {4, 1}}));
  EXPECT_EQ(streams.LastOf(2), 0U);
  EXPECT_EQ(streams.LastOf(1), 11U);
  EXPECT_EQ(streams.bytes(), 3 * InsertStreams::kStreamBytes);
  streams.Forget(3);
  streams.Forget(3);
  EXPECT_EQ(All(streams), (std::vector<InsertStreamEnd>{{1, 11}, {4, 1}}));
}

TEST(InsertStreamsTest, OnlyWhatHasChangedIsTold) {
  InsertStreams streams;
  for (std::uint64_t stream = 1; stream <= 4; ++stream) streams.Advance(stream, 1);
  streams.Watch(true);
  EXPECT_EQ(Changes(streams), std::vector<InsertStreamEnd>());
  streams.Advance(2, 5);
  streams.Advance(1, 6);
  streams.Advance(2, 7);
  streams.Forget(3);
  streams.Forget(9);
  EXPECT_EQ(Changes(streams), (std::vector<InsertStreamEnd>{{3, 0}, {1, 6}, {2, 7}}));
  EXPECT_EQ(Changes(streams), std::vector<InsertStreamEnd>());
  streams.Watch(false);
  streams.Forget(4);
  streams.Watch(true);
  EXPECT_EQ(Changes(streams), std::vector<InsertStreamEnd>());
}

// A few lines that search from the beginning.
struct Model {
  std::vector<InsertStreamEnd> ends;

  void Forget(std::uint64_t stream) {
    std::erase_if(ends, [stream](const InsertStreamEnd& end) { return end.stream == stream; });
  }
  void Advance(std::uint64_t stream, std::uint64_t last, std::size_t streams_max) {
    Forget(stream);
    ends.push_back({.stream = stream, .last = last});
    if (ends.size() > streams_max) ends.erase(ends.begin());
  }
};

// A journal's groups are applied one after the other, and to what a checkpoint copied before some
// of them or in the middle of one.
TEST(InsertStreamsTest, DoWhatTheModelDoesAndSoDoTheirCopies) {
  constexpr std::size_t kStreamsMax = 6;
  Random random = Random::FromSeed(8);
  InsertStreams streams(kStreamsMax);
  InsertStreams followed(kStreamsMax);
  InsertStreams cut(kStreamsMax);  // Of some moment.
  streams.Watch(true);
  Model model;
  int told = 0;
  int forgotten_at_the_bound = 0;
  for (std::uint64_t step = 1; step <= 20'000; ++step) {
    const auto stream = static_cast<std::uint64_t>(random.Integers(1, 11));
    const std::int64_t kind = random.Integers(0, 100);
    if (kind < 60) {
      forgotten_at_the_bound +=
          model.ends.size() == kStreamsMax && streams.LastOf(stream) == 0 ? 1 : 0;
      streams.Advance(stream, step);
      model.Advance(stream, step, kStreamsMax);
    } else if (kind < 80) {
      streams.Forget(stream);
      model.Forget(stream);
    } else if (kind < 85) {
      cut = InsertStreams(kStreamsMax);
      cut.Restore(All(streams));
    } else {
      const std::vector<InsertStreamEnd> changes = Changes(streams);
      told += static_cast<int>(changes.size());
      followed.Apply(changes, streams.size());
      cut.Apply(changes, streams.size());
      ASSERT_EQ(All(followed), model.ends) << step;
      ASSERT_EQ(All(cut), model.ends) << step;
    }
    ASSERT_EQ(All(streams), model.ends) << step;
    for (const InsertStreamEnd& end : model.ends) ASSERT_EQ(streams.LastOf(end.stream), end.last);
  }
  EXPECT_GT(told, 1000);
  EXPECT_GT(forgotten_at_the_bound, 1000);
}

}  // namespace
}  // namespace menger
