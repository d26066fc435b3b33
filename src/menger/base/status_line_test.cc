#include "menger/base/status_line.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "menger/base/log.h"

namespace menger {
namespace {

// What a terminal shows of the bytes written to it: carriage returns, ends of lines and erasures.
std::string Shown(const std::string& written) {
  std::string shown;
  std::string line;
  std::size_t column = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] == '\r') {
      column = 0;
    } else if (written[i] == '\n') {
      shown += line + "\n";
      line.clear();
      column = 0;
    } else if (written.compare(i, 3, "\033[K") == 0) {
      line.resize(column);
      i += 2;
    } else {
      if (column == line.size()) line += ' ';
      line[column++] = written[i];
    }
  }
  return shown + line;
}

TEST(StatusLineTest, LinesComeAboveItAndItIsDrawnAgain) {
  testing::internal::CaptureStderr();
  DrawStatusLine("[##..] 50%");
  {
    const AboveStatusLine above;
    std::fputs("one\ntwo\n", stderr);
  }
  DrawStatusLine("[###.] 75%");
  EndStatusLine(/*keep=*/true);
  EXPECT_EQ(Shown(testing::internal::GetCapturedStderr()), "one\ntwo\n[###.] 75%\n");
}

TEST(StatusLineTest, WhatIsLoggedDoesNotShareIt) {
  testing::internal::CaptureStderr();
  DrawStatusLine("[##..] 50%");
  LogInfo("mine:Env prints: hello");
  const std::string shown = Shown(testing::internal::GetCapturedStderr());
  testing::internal::CaptureStderr();
  EndStatusLine(/*keep=*/false);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(shown.substr(shown.find(" I ")), " I mine:Env prints: hello\n[##..] 50%");
  EXPECT_EQ(shown.find('['), shown.size() - 10);
}

TEST(StatusLineTest, ErasedItLeavesNothingBehindAndLinesAreAsWithoutOne) {
  testing::internal::CaptureStderr();
  DrawStatusLine("[##..] 50%");
  EndStatusLine(/*keep=*/false);
  EXPECT_EQ(Shown(testing::internal::GetCapturedStderr()), "");
  testing::internal::CaptureStderr();
  {
    const AboveStatusLine above;
    std::fputs("plain\n", stderr);
  }
  EndStatusLine(/*keep=*/true);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "plain\n");
}

}  // namespace
}  // namespace menger
