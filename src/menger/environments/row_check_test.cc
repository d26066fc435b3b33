#include "menger/environments/row_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/environments/environment_testing.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Gives what its action says: 1 a reward, 2 an observation, 3 a final observation that is no
// number.
struct Leaky {
  static constexpr int kObservationSize = 2;
  static constexpr int kActions = 4;

  static EnvironmentSpec Spec() {
    return {.name = "Leaky-v0",
            .observation =
                menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {2}, {0}, {1})}),
            .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
            .description = "A simulator for tests."};
  }
  void Reset(Random& /*random*/, float* observation) { observation[0] = observation[1] = 0; }
  StepResult Step(int action, Random& /*random*/, float* observation) {
    observation[0] = 0;
    observation[1] = action >= 2 ? kNan : 0.5F;
    return {.reward = action == 1 ? double{kNan} : 1.0, .terminated = action == 3};
  }
};

std::string StepWith(GroupUnderTest& test, std::int64_t action) {
  for (int i = 0; i < 9; ++i) {
    *test.slab.action<std::int64_t>(0, 0, i) = i == 7 ? action : 0;
  }
  try {
    test.group->Step(test.slab, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    return error.what();
  }
  return "";
}

TEST(RowCheckTest, ARewardOrObservationOfANativeEnvironmentThatIsNoNumberIsNamed) {
  const std::string says[] = {"", "environment 7 (seed 47), step 0: its reward is nan",
                              "step 0: element 1 of its 'observation' is nan; it must be",
                              "step 0: element 1 of its 'observation' is nan"};
  for (int action = 0; action < 4; ++action) {
    GroupUnderTest test(EntryOf<Leaky>(), 9, 2, {.seed = 40});
    test.group->Reset(test.slab, 0);
    EXPECT_THAT(StepWith(test, action), HasSubstr(says[action]));
  }
}

TEST(RowCheckTest, WithARestartLeftAFreshEpisodeTakesItsPlace) {
  for (int action = 1; action < 4; ++action) {
    ErrorBudget errors(1);
    GroupUnderTest test(EntryOf<Leaky>(), 9, 2, {.errors = &errors});
    test.group->Reset(test.slab, 0);
    EXPECT_EQ(StepWith(test, action), "");
    EXPECT_EQ(errors.left(), 0);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(test.slab.valid(0)[i], i == 7 ? 0 : 1);
      EXPECT_EQ(test.slab.truncated(0)[i], i == 7 ? 1 : 0);
      EXPECT_EQ(test.slab.observation<float>(0, 1, i)[1], i == 7 ? 0.0F : 0.5F);
    }
    EXPECT_EQ(test.slab.final_observation<float>(0, test.slab.final_index(0)[7])[1], 0.0F);
  }
}

TEST(RowCheckTest, EveryPlaceOfARowIsLookedAt) {
  for (std::size_t count = 1; count < 40; ++count) {
    std::vector<float> single(count, -3e38F);
    std::vector<double> wide(count, 1e308);
    EXPECT_TRUE(AllFinite(single.data(), count));
    EXPECT_TRUE(AllFinite(wide.data(), count));
    for (std::size_t bad = 0; bad < count; ++bad) {
      single[bad] = bad % 2 == 0 ? kNan : -std::numeric_limits<float>::infinity();
      wide[bad] = single[bad];
      EXPECT_FALSE(AllFinite(single.data(), count));
      EXPECT_FALSE(AllFinite(wide.data(), count));
      single[bad] = 0;
      wide[bad] = 0;
    }
  }
}

TEST(RowCheckTest, CodesAndFlagsOutsideTheirSpaceAreFound) {
  const LeafSpec codes = LeafSpec::MultiDiscrete("codes", {3, 5});
  std::vector<std::int64_t> values = {2, 4, 0, 0};
  const auto fault = [&] {
    return FaultOf(codes, reinterpret_cast<const std::byte*>(values.data()), 2);
  };
  EXPECT_FALSE(fault().has_value());
  values[3] = -1;
  ASSERT_TRUE(fault().has_value());
  EXPECT_EQ(fault()->column, 1);
  EXPECT_THAT(fault()->why, HasSubstr("element 1 of its 'codes' has the code -1"));
  values = {3, 0, 0, 0};
  EXPECT_EQ(fault()->column, 0);

  const std::uint8_t flags[] = {1, 0, 2};
  const auto* const bytes = reinterpret_cast<const std::byte*>(flags);
  EXPECT_FALSE(FaultOf(LeafSpec::Mask("flags", 1), bytes, 2).has_value());
  EXPECT_EQ(FaultOf(LeafSpec::Mask("flags", 1), bytes, 3)->column, 2);
}

}  // namespace
}  // namespace menger
