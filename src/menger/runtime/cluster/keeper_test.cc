#include "menger/runtime/cluster/keeper.h"

#include <gtest/gtest.h>

#include <string>

namespace menger {
namespace {

TEST(KeeperTest, WhatStandsForItIsReadAsItWasWritten) {
  const ForeignName keeper{.object = ObjectId{Id{1, ~std::uint64_t{0}}},
                           .node = NodeId{Id{~std::uint64_t{0}, 2}},
                           .epoch = 3};
  const std::optional<ForeignName> read = DecodeKeeper(Describe(keeper));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->object, keeper.object);
  EXPECT_EQ(read->node, keeper.node);
  EXPECT_EQ(read->epoch, keeper.epoch);
  for (const char* const other : {"", "starts", "node", "node 1 2 3", "node x y z"}) {
    EXPECT_FALSE(DecodeKeeper(other).has_value()) << other;
  }
}

TEST(KeeperTest, AQuestionNamesTheProgram) {
  EXPECT_EQ(ProgramOfKeepQuestion("keep 127.0.0.1:4711"), "127.0.0.1:4711");
  EXPECT_FALSE(ProgramOfKeepQuestion("status").has_value());
}

}  // namespace
}  // namespace menger
