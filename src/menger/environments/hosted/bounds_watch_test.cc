#include "menger/environments/hosted/bounds_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace menger {
namespace {

using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kColumns = 3;

// Every kind of bounds.
EnvironmentSpec WatchedSpec() {
  return {
      .name = "mine:Walker",
      .observation = menger::Spec(
          {LeafSpec::Box("even", DataType::kFloat32, {20}, {-1.1F}, {1.1F}),
           LeafSpec::Box("each", DataType::kFloat64, {2}, {-1, 0}, {1, kInfinity}),
           LeafSpec::Box("free", DataType::kFloat32, {2}, {-kInfinity}, {kInfinity}),
           LeafSpec::Box("bytes", DataType::kUint8, {2}, {0}, {255}),
           LeafSpec::Box("few", DataType::kUint8, {2}, {0}, {10}),
           LeafSpec::Box("count", DataType::kInt32, {}, {0}, {7}), LeafSpec::Discrete("code", 3)}),
      .action = menger::Spec({LeafSpec::Discrete("action", 2)})};
}

class BoundsWatchTest : public testing::Test {
 protected:
  BoundsWatchTest()
      : slab_({.observation = WatchedSpec().observation,
               .action = WatchedSpec().action,
               .horizon = 4,
               .columns = ColumnLayout::Single(kColumns)}) {
    for (int row = 0; row < 4; ++row) {
      std::fill_n(slab_.final_index(row), kColumns, -1);
    }
  }

  template <typename Number>
  void Put(int leaf, int row, int column, int element, Number value) {
    reinterpret_cast<Number*>(slab_.observation(leaf, row, column))[element] = value;
  }

  std::string Step(BoundsWatch& watch, int row) {
    CaptureStderr();
    watch.LookAtStep(slab_, row, slab_.columns().block(0, 0));
    return GetCapturedStderr();
  }

  Slab slab_;
};

TEST_F(BoundsWatchTest, TheFirstValueOutsideOfALeafIsToldAndNoMore) {
  BoundsWatch watch(WatchedSpec());
  EXPECT_EQ(Step(watch, 0), "");
  Put(0, 3, 1, 17, -1.25F);
  const std::string said = Step(watch, 2);
  EXPECT_THAT(said, HasSubstr("W mine:Walker environment 1, step 2: element 17 of its 'even' is "
                              "-1.25, outside the bounds that its observation space declares, "
                              "-1.1 to 1.1; "));
  EXPECT_EQ(Step(watch, 2), "");
  Put(1, 2, 2, 1, -0.5);
  EXPECT_THAT(Step(watch, 1), HasSubstr("environment 2, step 1: element 1 of its 'each' is -0.5, "
                                        "outside the bounds that its observation space declares, "
                                        "0 to inf"));
}

TEST_F(BoundsWatchTest, TheBoundsThemselvesAreInside) {
  BoundsWatch watch(WatchedSpec());
  Put(0, 1, 0, 0, -1.1F);
  Put(0, 1, 0, 1, 1.1F);
  Put(1, 1, 0, 1, 1e300);
  Put(2, 1, 0, 0, 3e38F);
  Put<std::uint8_t>(3, 1, 0, 0, 255);
  Put<std::uint8_t>(4, 1, 0, 0, 10);
  Put<std::int32_t>(5, 1, 0, 0, 7);
  EXPECT_EQ(Step(watch, 0), "");
}

TEST_F(BoundsWatchTest, WholeNumbersAndFinalObservationsAndResetsAreLookedAt) {
  BoundsWatch watch(WatchedSpec());
  Put<std::uint8_t>(4, 1, 0, 1, 11);
  EXPECT_THAT(Step(watch, 0), HasSubstr("element 1 of its 'few' is 11, outside"));
  const int slot = slab_.final_index(0)[2] = slab_.FinalSlot(0, 2);
  *reinterpret_cast<std::int32_t*>(slab_.final_observation(5, slot)) = -4;
  EXPECT_THAT(Step(watch, 0), HasSubstr("environment 2, step 0: its 'count' is -4, outside"));
  Put(0, 0, 0, 3, 2.0F);
  CaptureStderr();
  watch.LookAtReset(slab_, 0, slab_.columns().block(0, 0));
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("environment 0, reset: element 3 of its 'even' is 2"));
}

}  // namespace
}  // namespace menger
