#include "menger/runtime/room_ahead.h"

#include <gtest/gtest.h>

namespace menger {
namespace {

TEST(RoomAheadTest, ValuesAreCutFromOnePieceAfterTheOther) {
  RoomAhead room;
  std::optional<SharedExtent> rest;
  EXPECT_EQ(room.Take(100, rest), std::nullopt);
  EXPECT_TRUE(room.AskForMore());
  EXPECT_FALSE(room.AskForMore());
  room.Give({.segment = 3, .offset = 4096, .bytes = 1024});
  EXPECT_TRUE(room.AskForMore());
  room.Give({.segment = 3, .offset = 8192, .bytes = 1024});
  EXPECT_FALSE(room.AskForMore());
  EXPECT_EQ(room.Take(100, rest), (SharedExtent{3, 4096, 100}));
  EXPECT_EQ(room.Take(800, rest), (SharedExtent{3, 4096 + 128, 800}));
  EXPECT_EQ(rest, std::nullopt);
  // What is left of the first is too short.
  EXPECT_EQ(room.Take(500, rest), (SharedExtent{3, 8192, 500}));
  EXPECT_EQ(rest, (SharedExtent{3, 4096 + 960, 64}));
  EXPECT_TRUE(room.AskForMore());
}

TEST(RoomAheadTest, AValueTakesTheLastBytesOfAPiece) {
  RoomAhead room;
  std::optional<SharedExtent> rest;
  EXPECT_TRUE(room.AskForMore());
  room.Give({.segment = 1, .offset = 0, .bytes = 128});
  EXPECT_EQ(room.Take(65, rest), (SharedExtent{1, 0, 65}));
  EXPECT_EQ(room.Take(1, rest), std::nullopt);
}

TEST(RoomAheadTest, AfterARefusalItAsksOnlyNowAndThen) {
  RoomAhead room;
  EXPECT_TRUE(room.AskForMore());
  room.Refuse();
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!room.AskForMore()) continue;
    ++asked;
    room.Refuse();
  }
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace menger
