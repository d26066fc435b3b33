#include "menger/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(LogTest, LinesGoToStandardErrorWithTheTimeOfDay) {
  testing::internal::CaptureStderr();
  LogInfo("steps {}", 7);
  LogWarning("{}", "100% {}");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("[0-9]{2}:[0-9]{2}:[0-9]{2} I steps 7\n"
                                    "[0-9]{2}:[0-9]{2}:[0-9]{2} W 100% \\{\\}\n"));
}

TEST(LogTest, WhatIsBelowTheLevelIsNotWritten) {
  testing::internal::CaptureStderr();
  SetUpLogging(LogLevel::kError);
  LogWarning("hidden");
  LogError("shown");
  SetUpLogging(LogLevel::kOff);
  LogError("hidden");
  SetUpLogging(LogLevel::kInfo);
  LogDebug("hidden");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("shown"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("hidden")));
}

TEST(LogTest, LevelsHaveNames) {
  EXPECT_EQ(LogLevelFromName("warning"), LogLevel::kWarning);
  EXPECT_EQ(LogLevelFromName("off"), LogLevel::kOff);
  try {
    LogLevelFromName("warnin");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'warning'?"));
  }
}

}  // namespace
}  // namespace menger
