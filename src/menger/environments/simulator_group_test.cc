#include "menger/environments/simulator_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "menger/environments/environment_testing.h"

namespace menger {
namespace {

// Counts its steps; its start is drawn. The action decides what happens: 1 terminates, 2 throws.
struct Counter {
  static constexpr int kObservationSize = 2;
  static constexpr int kActions = 3;
  static constexpr int kLimit = 5;

  static EnvironmentSpec Spec() {
    return {.name = "Counter-v0",
            .observation =
                menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {2}, {0}, {1000})}),
            .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
            .max_episode_steps = kLimit,
            .description = "A simulator for tests."};
  }

  void Reset(Random& random, float* observation) {
    start = static_cast<float>(random.Integers(1, 1000));
    steps = 0;
    observation[0] = start;
    observation[1] = steps;
  }

  StepResult Step(int action, Random& /*random*/, float* observation) {
    observation[0] = -1;  // What a simulator leaves behind when it throws.
    if (action == 2) throw std::runtime_error("the spring broke");
    observation[0] = start;
    observation[1] = ++steps;
    return {.reward = steps, .terminated = action == 1};
  }

  float start = 0;
  float steps = 0;
};

// Shows the action that it was given.
struct Echo {
  static constexpr int kObservationSize = 2;
  static constexpr int kActionSize = 2;

  static EnvironmentSpec Spec() {
    return {.name = "Echo-v0",
            .observation =
                menger::Spec({LeafSpec::Box("observation", DataType::kFloat32, {2}, {-9}, {9})}),
            .action =
                menger::Spec({LeafSpec::Box("action", DataType::kFloat32, {2}, {-1, -2}, {1, 3})})};
  }
  void Reset(Random& /*random*/, float* observation) { observation[0] = observation[1] = 0; }
  StepResult Step(const float* action, Random& /*random*/, float* observation) {
    observation[0] = action[0];
    observation[1] = action[1];
    return {};
  }
};

GroupUnderTest Started(int columns, GroupOptions options = {}) {
  GroupUnderTest test(EntryOf<Counter>(), columns, /*horizon=*/8, options);
  test.group->Reset(test.slab, 0);
  return test;
}

void Step(GroupUnderTest& test, int row, std::vector<std::int64_t> actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    *test.slab.action<std::int64_t>(0, row, static_cast<int>(i)) = actions[i];
  }
  test.group->Step(test.slab, row);
}

template <typename Call>
std::string MessageOf(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(ErrorCodeName(error.code())) + ": " + error.what();
  }
  return "nothing was thrown";
}

float At(const Slab& slab, int row, int column, int k) {
  return slab.observation<float>(0, row, column)[k];
}

TEST(SimulatorGroupTest, EnvironmentISeedsItselfWithSeedPlusI) {
  GroupUnderTest test = Started(3, {.seed = 40});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(At(test.slab, 0, i, 0), Random::FromSeed(40 + i).Integers(1, 1000));
    EXPECT_EQ(test.slab.is_first(0)[i], 1);
  }
}

TEST(SimulatorGroupTest, TheLastStepAllowedIsTruncatedNotTerminated) {
  GroupUnderTest test = Started(1);
  for (int row = 0; row < Counter::kLimit; ++row) Step(test, row, {0});
  EXPECT_EQ(test.slab.truncated(3)[0], 0);
  EXPECT_EQ(test.slab.truncated(4)[0], 1);
  EXPECT_EQ(test.slab.terminated(4)[0], 0);
  EXPECT_EQ(test.slab.episode_end(4)[0], 1);
}

TEST(SimulatorGroupTest, TerminationAtTheTimeLimitSetsBothFlagsAsInGymnasium) {
  GroupUnderTest test = Started(1);
  for (int row = 0; row < Counter::kLimit; ++row) Step(test, row, {row == 4 ? 1 : 0});
  EXPECT_EQ(test.slab.truncated(4)[0], 1);
  EXPECT_EQ(test.slab.terminated(4)[0], 1);
}

TEST(SimulatorGroupTest, AnEndedEpisodeKeepsItsFinalObservationAndTheNextRowStartsAnew) {
  GroupUnderTest test = Started(2, {.seed = 7});
  const float start = At(test.slab, 0, 1, 0);
  Step(test, 0, {0, 0});
  Step(test, 1, {0, 1});
  EXPECT_EQ(test.slab.final_index(1)[0], -1);
  ASSERT_EQ(test.slab.final_index(1)[1], test.slab.FinalSlot(1, 1));
  const float* final = test.slab.final_observation<float>(0, test.slab.final_index(1)[1]);
  EXPECT_EQ(final[0], start);
  EXPECT_EQ(final[1], 2);
  EXPECT_EQ(test.slab.is_first(2)[0], 0);
  EXPECT_EQ(test.slab.is_first(2)[1], 1);
  Random random = Random::FromSeed(8);  // The next episode goes on with the stream.
  random.Integers(1, 1000);
  EXPECT_EQ(At(test.slab, 2, 1, 0), random.Integers(1, 1000));
  EXPECT_EQ(At(test.slab, 2, 1, 1), 0);
  Step(test, 2, {0, 0});
  EXPECT_EQ(test.slab.reward(2)[0], 3);
  EXPECT_EQ(test.slab.reward(2)[1], 1);
}

TEST(SimulatorGroupTest, AParkedColumnIsInvalidUntilItIsReset) {
  GroupUnderTest test = Started(2, {.reset_mode = ResetMode::kBetweenSlabs});
  const float start = At(test.slab, 0, 0, 0);
  Step(test, 0, {1, 0});
  EXPECT_EQ(test.slab.valid(0)[0], 1);
  EXPECT_EQ(test.slab.episode_end(0)[0], 1);
  Step(test, 1, {77, 0});  // A parked column's action does not matter.
  Step(test, 2, {2, 0});
  for (const int row : {1, 2}) {
    EXPECT_EQ(test.slab.valid(row)[0], 0);
    EXPECT_EQ(test.slab.valid(row)[1], 1);
    EXPECT_EQ(test.slab.reward(row)[0], 0);
    EXPECT_EQ(test.slab.terminated(row)[0], 0);
    EXPECT_EQ(test.slab.episode_end(row)[0], 0);
    EXPECT_EQ(test.slab.final_index(row)[0], -1);
    EXPECT_EQ(test.slab.is_first(row)[0], 1);
    EXPECT_EQ(At(test.slab, row, 0, 0), start);
    EXPECT_EQ(At(test.slab, row, 0, 1), 1);
  }
  test.group->ResetParked(test.slab, 3);
  EXPECT_EQ(At(test.slab, 3, 0, 1), 0);
  EXPECT_EQ(At(test.slab, 3, 1, 1), 3);  // The other column was not touched.
  Step(test, 3, {0, 0});
  EXPECT_EQ(test.slab.valid(3)[0], 1);
  EXPECT_EQ(test.slab.reward(3)[0], 1);
}

TEST(SimulatorGroupTest, ABadActionIsNamedAndNothingIsStepped) {
  GroupUnderTest test = Started(4);
  test.slab.set_first_step(17);
  EXPECT_EQ(MessageOf([&] {
              Step(test, 0, {0, 0, 0, 5});
            }),
            "InvalidArgument: Counter-v0 environment 3, step 17: action 5 is not one of 0..2");
  EXPECT_EQ(MessageOf([&] {
              Step(test, 0, {0, -1, 0, 0});
            }),
            "InvalidArgument: Counter-v0 environment 1, step 17: action -1 is not one of 0..2");
  Step(test, 0, {0, 0, 0, 0});
  EXPECT_EQ(test.slab.reward(0)[0], 1);
}

TEST(SimulatorGroupTest, AContinuousActionMustBeFinite) {
  GroupUnderTest test(EntryOf<Echo>(), 1, 2);
  test.group->Reset(test.slab, 0);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    test.slab.action<float>(0, 0)[1] = bad;
    EXPECT_EQ(MessageOf([&] { test.group->Step(test.slab, 0); }),
              fmt::format("InvalidArgument: Echo-v0 environment 0, step 0: action 1 is {}; it must "
                          "be a finite number",
                          bad));
  }
}

TEST(SimulatorGroupTest, ContinuousActionsAreClippedOnlyOnDemandAndNeverInTheSlab) {
  for (const bool clip : {false, true}) {
    GroupUnderTest test(EntryOf<Echo>(), 1, 2, {.clip_actions = clip});
    test.group->Reset(test.slab, 0);
    test.slab.action<float>(0, 0)[0] = -5;
    test.slab.action<float>(0, 0)[1] = 5;
    test.group->Step(test.slab, 0);
    EXPECT_EQ(At(test.slab, 1, 0, 0), clip ? -1 : -5);
    EXPECT_EQ(At(test.slab, 1, 0, 1), clip ? 3 : 5);
    EXPECT_EQ(test.slab.action<float>(0, 0)[0], -5);
  }
}

TEST(SimulatorGroupTest, WithoutABudgetAnErrorNamesEnvironmentSeedAndStep) {
  GroupUnderTest test = Started(2, {.seed = 40});
  Step(test, 0, {0, 0});
  EXPECT_EQ(MessageOf([&] {
              Step(test, 1, {0, 2});
            }),
            "Internal: Counter-v0 environment 1 (seed 41), step 1: the spring broke");
}

TEST(SimulatorGroupTest, WithABudgetAnErrorBecomesAFreshEpisodeOutsideTheStatistics) {
  ErrorBudget errors(1);
  GroupUnderTest test = Started(3, {.seed = 40, .errors = &errors});
  Step(test, 0, {0, 0, 0});
  const float start = At(test.slab, 1, 1, 0);
  Step(test, 1, {0, 2, 0});
  EXPECT_EQ(test.slab.valid(1)[1], 0);
  EXPECT_EQ(test.slab.reward(1)[1], 0);
  EXPECT_EQ(test.slab.terminated(1)[1], 0);
  EXPECT_EQ(test.slab.truncated(1)[1], 1);
  EXPECT_EQ(test.slab.episode_end(1)[1], 0);
  ASSERT_GE(test.slab.final_index(1)[1], 0);
  EXPECT_EQ(test.slab.final_observation<float>(0, test.slab.final_index(1)[1])[0], start);
  EXPECT_EQ(test.slab.is_first(2)[1], 1);
  EXPECT_EQ(At(test.slab, 2, 1, 1), 0);
  for (const int other : {0, 2}) {
    EXPECT_EQ(test.slab.valid(1)[other], 1);
    EXPECT_EQ(test.slab.reward(1)[other], 2);
  }
  EXPECT_EQ(MessageOf([&] {
              Step(test, 2, {2, 0, 0});
            }),
            "Internal: Counter-v0 environment 0 (seed 40), step 2: the spring broke");
}

TEST(SimulatorGroupTest, AnErrorInAParkingGroupParksTheColumn) {
  ErrorBudget errors(1);
  GroupUnderTest test = Started(1, {.reset_mode = ResetMode::kBetweenSlabs, .errors = &errors});
  const float start = At(test.slab, 0, 0, 0);
  Step(test, 0, {2});
  EXPECT_EQ(test.slab.valid(0)[0], 0);
  EXPECT_EQ(At(test.slab, 1, 0, 0), start);
  Step(test, 1, {0});
  EXPECT_EQ(test.slab.valid(1)[0], 0);
  test.group->ResetParked(test.slab, 2);
  Step(test, 2, {0});
  EXPECT_EQ(test.slab.valid(2)[0], 1);
}

TEST(SimulatorGroupTest, CallsOutOfOrderOrRangeAreRefused) {
  GroupUnderTest test(EntryOf<Counter>(), 1, 8);
  EXPECT_EQ(MessageOf([&] { test.group->Step(test.slab, 0); }),
            "FailedPrecondition: Step of Counter-v0 was called before Reset");
  test.group->Reset(test.slab, 0);
  EXPECT_EQ(MessageOf([&] { test.group->Step(test.slab, 8); }),
            "InvalidArgument: row 8 of Counter-v0 is not one of 0..7");
  EXPECT_EQ(MessageOf([&] { test.group->StepRandomly(test.slab, 0, {}, 1); }),
            "InvalidArgument: StepRandomly got 0 step counts for 1 environments of Counter-v0");
}

TEST(SimulatorGroupTest, RandomStepsCountTowardsTheTimeLimit) {
  GroupUnderTest strict = Started(1);
  ErrorBudget errors(100);
  GroupUnderTest tolerant = Started(1, {.errors = &errors});
  const std::vector<int> steps = {200};  // Of which a third throw and a third terminate.
  tolerant.group->StepRandomly(tolerant.slab, 0, steps, 5);
  EXPECT_EQ(tolerant.slab.is_first(0)[0], 1);
  EXPECT_GE(At(tolerant.slab, 0, 0, 0), 1);
  EXPECT_LT(At(tolerant.slab, 0, 0, 1), Counter::kLimit);
  const std::string message =
      MessageOf([&] { strict.group->StepRandomly(strict.slab, 0, steps, 5); });
  EXPECT_NE(message.find("(seed 0), random step"), std::string::npos) << message;
}

TEST(SimulatorGroupTest, AnArchiveOfAnotherEnvironmentOrSizeIsRefused) {
  const std::string path = testing::TempDir() + "/simulator_group_test_archive";
  {
    GroupUnderTest test = Started(2);
    ArchiveWriter archive(path);
    test.group->Save(archive);
    archive.Commit();
  }
  ArchiveReader archive(path);
  GroupUnderTest echo(EntryOf<Echo>(), 2, 2);
  EXPECT_EQ(MessageOf([&] { echo.group->Load(archive); }),
            "FailedPrecondition: the archive holds Counter-v0; it cannot be loaded into Echo-v0");
  GroupUnderTest wide = Started(3);
  EXPECT_THROW(wide.group->Load(archive), Error);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace menger
