#include "menger/runtime/cluster/ended_lives.h"

#include <gtest/gtest.h>

namespace menger {
namespace {

NodeRecord Member(std::uint64_t number) { return {.id = NodeId{Id{.low = number}}, .epoch = 1}; }

NodeLife LifeNumbered(std::uint64_t number) { return {Member(number).id, 1}; }

// As where this process's own life ends, and so all others end for it.
TEST(EndedLivesTest, AllThatEndStayEndedWhileTheyAreNamed) {
  EndedLives ended;
  const std::vector<NodeRecord> members = {Member(1), Member(2), Member(3)};
  for (const std::uint64_t number : {1, 2, 3}) ended.Note(LifeNumbered(number), "cut off", members);
  for (const std::uint64_t number : {1, 2, 3}) EXPECT_TRUE(ended.Has(LifeNumbered(number)));
  EXPECT_EQ(ended.counts().at("cut off"), 3u);
}

TEST(EndedLivesTest, WhomTheStoreNamesNoLongerIsForgotten) {
  EndedLives ended;
  ended.Note(LifeNumbered(1), "left", {Member(1), Member(2)});
  ended.Note(LifeNumbered(2), "left", {Member(2)});
  EXPECT_FALSE(ended.Has(LifeNumbered(1)));
  EXPECT_TRUE(ended.Has(LifeNumbered(2)));
}

TEST(EndedLivesTest, WhoIsThereAfterAllHasNotEnded) {
  EndedLives ended;
  ended.Note(LifeNumbered(1), "unreachable", {Member(1)});
  ended.Forget(LifeNumbered(1));
  EXPECT_FALSE(ended.Has(LifeNumbered(1)));
}

}  // namespace
}  // namespace menger
