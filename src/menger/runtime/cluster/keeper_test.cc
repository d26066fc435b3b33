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
  for (const char* const other : {"", "starts", "node", "node 1 2 3", "node x y z", "keep 1"}) {
    EXPECT_FALSE(DecodeKeeper(other).has_value()) << other;
  }
}

TEST(KeeperTest, AQuestionNamesTheProgram) {
  const NodeLife driver{NodeId{Id{1, 2}}, 3};
  EXPECT_EQ(DriverOfKeepQuestion(KeepQuestion(driver)), driver);
  for (const char* const other : {"", "status", "keep", "keep 1 2", "keep 127.0.0.1:4711"}) {
    EXPECT_FALSE(DriverOfKeepQuestion(other).has_value()) << other;
  }
  EXPECT_FALSE(DriverOfKeepQuestion(KeepQuestion(driver) + " x").has_value());
}

}  // namespace
}  // namespace menger
