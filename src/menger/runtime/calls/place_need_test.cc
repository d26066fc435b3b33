#include "menger/runtime/calls/place_need.h"

#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(PlaceNeedTest, IsReadAsItWasWritten) {
  const std::string text = WritePlaceNeed("cpu=2 gpu=1", /*spread=*/true, "node:7=0.0001");
  EXPECT_EQ(text, "cpu=2 gpu=1;spread;node:7=0.0001");
  const PlaceNeed read = ReadPlaceNeed(text);
  EXPECT_EQ(read.need, Resources(2, 1));
  EXPECT_TRUE(read.spread);
  EXPECT_EQ(read.preferred, Resources::Parse("node:7=0.0001"));
  EXPECT_EQ(read.otherwise, "cpu=2 gpu=1;spread");
}

TEST(PlaceNeedTest, MostCallsNeedACpuAndNothingElse) {
  EXPECT_EQ(WritePlaceNeed("", /*spread=*/false, ""), "");
  const PlaceNeed read = ReadPlaceNeed("");
  EXPECT_EQ(read.need, Resources(1, 0));
  EXPECT_FALSE(read.spread);
  EXPECT_EQ(read.preferred, Resources());
  EXPECT_EQ(ReadPlaceNeed(";spread").need, Resources(1, 0));
  EXPECT_EQ(ReadPlaceNeed("cpu=0;gpu=1").need, Resources());
}

TEST(PlaceNeedTest, RefusesWhatIsNone) {
  for (const std::string text : {"cpu", "cpu=x", "cpu=1;spreads", "cpu=1;gpu=-1", "spread"}) {
    EXPECT_THROW(ReadPlaceNeed(text), Error) << text;
  }
}

}  // namespace
}  // namespace menger
