#include "menger/collectors/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

AutoInt Number(std::int64_t value) { return {.value = value, .is_auto = false}; }

CalibrationReport CalibrateFake(const CollectorOptions& options, int cpus = 2) {
  const EnvironmentEntry environment = FakeEnvironment();
  return Calibrate(options, CollectorPlan{.history = 3, .seed = 5}, environment,
                   RandomPolicies(environment.spec, /*seed=*/1),
                   {.cpus = cpus, .budget_seconds = 0.2, .trial_seconds = 0.002});
}

TEST(CalibrationTest, TheFastestTrialWins) {
  const std::vector<CalibrationTrial> trials = {
      {.kind = CollectorKind::kSerial, .steps_per_second = 90},
      {.kind = CollectorKind::kAlternating, .steps_per_second = 100},
      {.kind = CollectorKind::kLocal, .steps_per_second = 94}};
  EXPECT_EQ(ChooseTrial(trials).kind, CollectorKind::kAlternating);
}

TEST(CalibrationTest, AmongEqualsTheSimplestKindThenTheFewestWorkersWin) {
  std::vector<CalibrationTrial> trials = {
      {.kind = CollectorKind::kLocal, .workers = 3, .steps_per_second = 100},
      {.kind = CollectorKind::kLocal, .workers = 2, .steps_per_second = 96}};
  EXPECT_EQ(ChooseTrial(trials).workers, 2);
  trials.push_back({.kind = CollectorKind::kSerial, .steps_per_second = 95.5});
  EXPECT_EQ(ChooseTrial(trials).kind, CollectorKind::kSerial);
}

TEST(CalibrationTest, WhatTheOptionsSayIsKept) {
  CollectorOptions options;
  options.kind = "synchronous";
  options.environments = 10;
  options.horizon = 99;
  options.reset_between_slabs = true;
  options.on_environment_error = "restart";
  const CalibrationReport report = CalibrateFake(options);
  EXPECT_EQ(report.plan.kind, CollectorKind::kSynchronous);
  EXPECT_EQ(report.plan.environments, 10);
  EXPECT_EQ(report.plan.horizon, 99);
  EXPECT_EQ(report.plan.history, 3);
  EXPECT_EQ(report.plan.seed, 5u);
  EXPECT_EQ(report.plan.reset_mode, ResetMode::kBetweenSlabs);
  EXPECT_EQ(report.plan.restart_budget, 100);
}

TEST(CalibrationTest, NothingIsTriedWhereNothingIsLeftToChoose) {
  CollectorOptions options;
  options.kind = "alternating";
  options.workers = Number(2);
  options.groups = 3;
  options.environments = 12;
  const CalibrationReport report = CalibrateFake(options);
  EXPECT_TRUE(report.trials.empty());
  EXPECT_THAT(report.text, HasSubstr("alternating, 2 workers x 6 environments: as configured"));
  EXPECT_EQ(report.plan.groups, 3);
  EXPECT_NO_THROW(report.plan.Check());
}

CollectorOptions WithEnvironments(int environments) {
  CollectorOptions options;
  options.environments = environments;
  return options;
}

TEST(CalibrationTest, TheNumberOfEnvironmentsIsKeptHoweverManyCpusThereAre) {
  for (const int environments : {1, 6, 7, 8}) {
    for (const int cpus : {1, 2, 4, 64}) {
      const CalibrationReport report = CalibrateFake(WithEnvironments(environments), cpus);
      EXPECT_EQ(report.plan.environments, environments);
      for (const CalibrationTrial& trial : report.trials) {
        EXPECT_EQ(trial.environments, environments);
        EXPECT_LE(trial.workers, cpus);
      }
      EXPECT_NO_THROW(report.plan.Check());
    }
  }
}

// A row of its outputs depends on the others of its batch.
class DependentPolicy : public RandomPolicy {
 public:
  using RandomPolicy::RandomPolicy;
  const PolicySpec& spec() const override { return spec_; }

 private:
  const PolicySpec spec_{.batch_invariant = false};
};

TEST(CalibrationTest, WhereBatchesMatterAllThatIsTriedInfersForAllAtOnce) {
  const EnvironmentEntry environment = FakeEnvironment();
  const PolicyFactory policies = [&] {
    return std::make_unique<DependentPolicy>(environment.spec.observation, environment.spec.action,
                                             /*seed=*/1);
  };
  const CalibrationReport report =
      Calibrate({}, CollectorPlan{.seed = 5}, environment, policies,
                {.cpus = 2, .budget_seconds = 0.2, .trial_seconds = 0.002});
  for (const CalibrationTrial& trial : report.trials) {
    EXPECT_THAT(trial.kind, ::testing::AnyOf(CollectorKind::kSerial, CollectorKind::kSynchronous));
  }
  EXPECT_EQ(report.trials.size(), 2);
}

TEST(CalibrationTest, AllKindsAreTriedAndTheTextNamesTheChoice) {
  const CalibrationReport report = CalibrateFake(WithEnvironments(8));
  std::vector<CollectorKind> kinds;
  for (const CalibrationTrial& trial : report.trials) kinds.push_back(trial.kind);
  EXPECT_THAT(kinds,
              ::testing::IsSupersetOf({CollectorKind::kSerial, CollectorKind::kLocal,
                                       CollectorKind::kSynchronous, CollectorKind::kAlternating}));
  EXPECT_THAT(report.text, HasSubstr(fmt::format("collector: {}", NameOf(report.plan.kind))));
  EXPECT_THAT(report.text, HasSubstr("<- chosen"));
}

TEST(CalibrationTest, OneCpuIsOnlySharedByFewThreads) {
  const CalibrationReport report = CalibrateFake({}, /*cpus=*/1);
  for (const CalibrationTrial& trial : report.trials) EXPECT_EQ(trial.workers, 1);
}

TEST(CalibrationTest, OptionsThatDoNotFitAreRefused) {
  CollectorOptions options = WithEnvironments(9);
  options.workers = Number(4);
  try {
    CalibrateFake(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("environments = 9, kind = auto, workers = 4"));
  }
}

}  // namespace
}  // namespace menger
