#include "menger/runtime/memory/room_ahead.h"

#include <gtest/gtest.h>

namespace menger {
namespace {

TEST(RoomAheadTest, ValuesAreCutFromOnePieceAfterTheOther) {
  RoomAhead room;
  std::optional<SharedExtent> rest;
  constexpr std::uint64_t kPage = 4096;
  EXPECT_EQ(room.Take(100, rest), std::nullopt);
  EXPECT_TRUE(room.AskForMore());
  EXPECT_FALSE(room.AskForMore());
  room.Give({.segment = 3, .offset = 1 * kPage, .bytes = 16 * kPage});
  EXPECT_TRUE(room.AskForMore());
  room.Give({.segment = 3, .offset = 32 * kPage, .bytes = 16 * kPage});
  EXPECT_FALSE(room.AskForMore());
  EXPECT_EQ(room.Take(kPage + 1, rest), (SharedExtent{3, 1 * kPage, kPage + 1}));
  EXPECT_EQ(room.Take(13 * kPage, rest), (SharedExtent{3, 3 * kPage, 13 * kPage}));
  EXPECT_EQ(rest, std::nullopt);
  // What is left of the first is too short.
  EXPECT_EQ(room.Take(8 * kPage, rest), (SharedExtent{3, 32 * kPage, 8 * kPage}));
  EXPECT_EQ(rest, (SharedExtent{3, 16 * kPage, kPage}));
  EXPECT_TRUE(room.AskForMore());
}

TEST(RoomAheadTest, AValueTakesTheLastBytesOfAPiece) {
  RoomAhead room;
  std::optional<SharedExtent> rest;
  EXPECT_TRUE(room.AskForMore());
  room.Give({.segment = 1, .offset = 0, .bytes = 8192});
  EXPECT_EQ(room.Take(4097, rest), (SharedExtent{1, 0, 4097}));
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
