#include "menger/training/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace menger {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ProgressTest, WhatIsNotKnownYetIsLeftOut) {
  EXPECT_EQ(ProgressText({.steps = 0, .steps_total = 100}), "steps 0/100 (0%)");
}

TEST(ProgressTest, EverythingKnownIsInOneLine) {
  EXPECT_EQ(ProgressText({.steps = 61'440,
                          .steps_total = 100'000,
                          .seconds_left = 12.9,
                          .steps_per_second = 182'345,
                          .return_mean = 312.44,
                          .evaluation_mean = 500}),
            "steps 61440/100000 (61%), 182k steps/s, return 312.4, evaluation 500.0, 0:12 left");
}

TEST(ProgressTest, RolesAreShownWhereThereIsRoom) {
  const ProgressState state = {.steps = 50, .steps_total = 100, .roles = "busy: learner 97%"};
  EXPECT_EQ(ProgressText(state), "steps 50/100 (50%), busy: learner 97%");
  EXPECT_THAT(ProgressBar(state, 60), HasSubstr("busy: learner 97%"));
  EXPECT_THAT(ProgressBar(state, 40), testing::Not(HasSubstr("busy")));
}

TEST(ProgressTest, TheBarFillsAndFitsTheTerminal) {
  EXPECT_EQ(ProgressBar({.steps = 50, .steps_total = 100}, 200),
            "[############............] steps 50/100 (50%)");
  EXPECT_EQ(ProgressBar({.steps = 50, .steps_total = 100}, 10), "[####....]");
  EXPECT_EQ(ProgressBar({.steps = 150, .steps_total = 100}, 26), "[###################] 100%");
}

// Of a long run, on narrow terminals.
TEST(ProgressTest, TheReturnAndTheTimeLeftStayWhateverTheWidth) {
  const ProgressState state = {.steps = 61'440'000,
                               .steps_total = 100'000'000,
                               .seconds_left = 5000,
                               .steps_per_second = 182'345,
                               .return_mean = -312.44,
                               .evaluation_mean = -500};
  for (const int width : {200, 119, 79, 59, 49}) {
    const std::string bar = ProgressBar(state, width);
    EXPECT_LE(static_cast<int>(bar.size()), width);
    EXPECT_THAT(bar, AllOf(HasSubstr("61%"), HasSubstr("return -312.4"), HasSubstr("1:23:20 left")))
        << width;
  }
  EXPECT_THAT(ProgressBar(state, 119), HasSubstr("evaluation -500.0"));
  EXPECT_THAT(ProgressBar(state, 99), HasSubstr("182k steps/s"));
}

TEST(ProgressTest, NumbersHaveDigitsEnoughForTheirSize) {
  EXPECT_EQ(NumberText(500), "500.0");
  EXPECT_EQ(NumberText(-20.75), "-20.75");
  EXPECT_EQ(NumberText(0.0123), "0.01230");
  EXPECT_EQ(NumberText(0.5, /*scale=*/430), "0.5");
  EXPECT_EQ(NumberText(0), "0.0");
}

TEST(ProgressTest, DurationsReadAsClocks) {
  EXPECT_EQ(DurationText(0.4), "0:00");
  EXPECT_EQ(DurationText(72), "1:12");
  EXPECT_EQ(DurationText(3723), "1:02:03");
}

TEST(ProgressTest, ATerminalGetsABarAndALogGetsLines) {
  testing::internal::CaptureStderr();
  {
    ProgressReporter terminal(/*terminal=*/true);
    terminal.Finish({.steps = 1, .steps_total = 2});
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("\r["), std::string::npos);
  testing::internal::CaptureStderr();
  {
    ProgressReporter log(/*terminal=*/false);
    log.Update({.steps = 1, .steps_total = 2});  // Too early.
    log.Finish({.steps = 2, .steps_total = 2});
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines.find('\r'), std::string::npos);
  EXPECT_EQ(lines.find("steps 1/2"), std::string::npos);
  EXPECT_NE(lines.find("steps 2/2 (100%)"), std::string::npos);
}

}  // namespace
}  // namespace menger
