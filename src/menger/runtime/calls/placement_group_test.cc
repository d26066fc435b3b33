#include "menger/runtime/calls/placement_group.h"

#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(PlacementGroupTest, ReservationsAreReadAsTheyWereWritten) {
  const std::vector<Bundle> bundles = {{.cpus = 1, .gpus = 0.5}, {.resources = {{"rocket", 2}}}};
  const Reservation read =
      ReadReservation(WriteReservation(bundles, PlacementStrategy::kStrictPack));
  EXPECT_EQ(read.strategy, PlacementStrategy::kStrictPack);
  ASSERT_EQ(read.bundles.size(), 2U);
  EXPECT_EQ(read.bundles[0], Resources(1, 0.5));
  EXPECT_EQ(read.bundles[1].Get("rocket"), 2);
  EXPECT_EQ(read.bundles[1].Get("cpu"), 0);
}

TEST(PlacementGroupTest, RefusesReservationsThatAreNone) {
  for (const std::string text : {"", "PACK", "pack;cpu=1", ";cpu=1", "PACK;cpu", "PACK;cpu=x",
                                 "PACK;cpu=-1", "PACK;cpu=1e999", "PACK;cpu=1;=="}) {
    EXPECT_THROW(ReadReservation(text), Error) << text;
  }
  std::string many = "PACK";
  for (int i = 0; i < 1001; ++i) many += ";cpu=1";
  EXPECT_THROW(ReadReservation(many), Error);
  EXPECT_NO_THROW(ReadReservation(many.substr(0, many.size() - 6)));
}

TEST(PlacementGroupTest, NeedsAreOfABundleOrOfAny) {
  EXPECT_EQ(ReadBundleNeed("").need, Resources(1, 0));
  EXPECT_EQ(ReadBundleNeed("").bundle, -1);
  EXPECT_EQ(ReadBundleNeed("cpu=2 gpu=1").need, Resources(2, 1));
  EXPECT_EQ(ReadBundleNeed("cpu=2 gpu=1").bundle, -1);
  EXPECT_EQ(ReadBundleNeed("cpu=2 gpu=1 @12").need, Resources(2, 1));
  EXPECT_EQ(ReadBundleNeed("cpu=2 gpu=1 @12").bundle, 12);
  for (const std::string text :
       {"cpu=1 @", "cpu=1 @x", "cpu=1 @-1", "cpu=1 @1x", "cpu @1", "cpu=1 @99999999999999999999"}) {
    EXPECT_THROW(ReadBundleNeed(text), Error) << text;
  }
}

}  // namespace
}  // namespace menger
