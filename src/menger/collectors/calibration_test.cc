#include "menger/collectors/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/collectors/fake_environment.h"
#include "menger/collectors/random_policy.h"

namespace menger {
namespace {

using ::testing::HasSubstr;

constexpr AutoInt kAuto;
AutoInt Number(std::int64_t value) { return {.value = value, .is_auto = false}; }

CalibrationReport CalibrateFake(const CollectorOptions& options, AutoInt total, int cpus = 2) {
  const EnvironmentEntry environment = FakeEnvironment();
  return Calibrate(options, total, CollectorPlan{.history = 3, .seed = 5}, environment,
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

TEST(CalibrationTest, AmongEqualsTheSimplestKindThenTheFewestWorkersThenEnvironmentsWin) {
  std::vector<CalibrationTrial> trials = {
      {.kind = CollectorKind::kLocal, .workers = 2, .environments = 64, .steps_per_second = 100},
      {.kind = CollectorKind::kLocal, .workers = 2, .environments = 32, .steps_per_second = 96},
      {.kind = CollectorKind::kLocal, .workers = 1, .environments = 128, .steps_per_second = 97}};
  EXPECT_EQ(ChooseTrial(trials).environments, 128);
  trials.pop_back();
  EXPECT_EQ(ChooseTrial(trials).environments, 32);
  trials.push_back({.kind = CollectorKind::kSerial, .environments = 99, .steps_per_second = 95.5});
  EXPECT_EQ(ChooseTrial(trials).kind, CollectorKind::kSerial);
}

TEST(CalibrationTest, WhatTheOptionsSayIsKept) {
  CollectorOptions options;
  options.kind = "synchronous";
  options.environments_per_worker = Number(5);
  options.horizon = 99;
  options.reset_between_slabs = true;
  options.on_environment_error = "restart";
  const CalibrationReport report = CalibrateFake(options, kAuto);
  EXPECT_EQ(report.plan.kind, CollectorKind::kSynchronous);
  EXPECT_EQ(report.plan.environments, 5 * report.plan.workers);
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
  options.environments_per_worker = Number(6);
  const CalibrationReport report = CalibrateFake(options, kAuto);
  EXPECT_TRUE(report.trials.empty());
  EXPECT_THAT(report.text, HasSubstr("alternating, 2 workers x 6 environments: as configured"));
  EXPECT_EQ(report.plan.groups, 3);
  EXPECT_NO_THROW(report.plan.Check());
}

TEST(CalibrationTest, TheTotalNumberOfEnvironmentsIsKept) {
  for (const std::int64_t total : {1, 6, 8}) {
    const CalibrationReport report = CalibrateFake({}, Number(total));
    EXPECT_EQ(report.plan.environments, total);
    for (const CalibrationTrial& trial : report.trials) EXPECT_EQ(trial.environments, total);
    EXPECT_NO_THROW(report.plan.Check());
  }
}

TEST(CalibrationTest, AllKindsAreTriedAndTheTextNamesTheChoice) {
  const CalibrationReport report = CalibrateFake({}, Number(8));
  std::vector<CollectorKind> kinds;
  for (const CalibrationTrial& trial : report.trials) kinds.push_back(trial.kind);
  EXPECT_THAT(kinds,
              ::testing::IsSupersetOf({CollectorKind::kSerial, CollectorKind::kLocal,
                                       CollectorKind::kSynchronous, CollectorKind::kAlternating}));
  EXPECT_THAT(report.text, HasSubstr(fmt::format("collector: {}", NameOf(report.plan.kind))));
  EXPECT_THAT(report.text, HasSubstr("<- chosen"));
}

TEST(CalibrationTest, OneCpuIsOnlySharedByFewThreads) {
  const CalibrationReport report = CalibrateFake({}, kAuto, /*cpus=*/1);
  for (const CalibrationTrial& trial : report.trials) EXPECT_EQ(trial.workers, 1);
}

TEST(CalibrationTest, OptionsThatContradictTheTotalAreRefused) {
  CollectorOptions options;
  options.workers = Number(4);
  options.environments_per_worker = Number(2);
  try {
    CalibrateFake(options, Number(9));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(
        error.what(),
        HasSubstr("workers = 4, environments_per_worker = 2, groups = 2 and 9 environments"));
  }
}

}  // namespace
}  // namespace menger
