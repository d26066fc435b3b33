#include "menger/runtime/cluster/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RefusalLogTest : public testing::Test {
 protected:
  void AddMany(std::int64_t now, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) log_.Add(now, "10.0.0.9:" + std::to_string(i), "why");
  }

  std::vector<std::string> lines_;
  RefusalLog log_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(RefusalLogTest, TheFirstOfAMinuteAreWrittenAndTheOthersCounted) {
  log_.Add(5, "10.0.0.9:80", "it has another token");
  EXPECT_THAT(lines_, ElementsAre("who connected from 10.0.0.9:80 was turned away: it has another "
                                  "token"));
  AddMany(6, RefusalLog::kWrittenMax + 100);
  EXPECT_EQ(lines_.size(), RefusalLog::kWrittenMax);
  log_.Tend(RefusalLog::kMinute);
  EXPECT_EQ(lines_.size(), RefusalLog::kWrittenMax);
  log_.Tend(5 + RefusalLog::kMinute);
  EXPECT_EQ(lines_.size(), RefusalLog::kWrittenMax + 1);
  EXPECT_EQ(lines_.back(),
            "101 more connections were turned away within a minute, the last from 10.0.0.9:109");
}

TEST_F(RefusalLogTest, TheNextMinuteBeginsWithTheNextThatIsWritten) {
  AddMany(0, RefusalLog::kWrittenMax + 1);
  log_.Add(3 * RefusalLog::kMinute, "10.0.0.9:80", "why");
  EXPECT_EQ(lines_.size(), RefusalLog::kWrittenMax + 2);
  EXPECT_THAT(lines_[RefusalLog::kWrittenMax], HasSubstr("1 more connection was turned away"));
  log_.Tend(4 * RefusalLog::kMinute);
  AddMany(4 * RefusalLog::kMinute, RefusalLog::kWrittenMax);
  EXPECT_EQ(lines_.size(), 2 * RefusalLog::kWrittenMax + 2);
}

}  // namespace
}  // namespace menger
