#include "menger/runtime/watching/loss_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace menger {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kSecond = 1'000'000'000;

class LossLogTest : public testing::Test {
 protected:
  std::vector<std::string> lines;
  LossLog log{[this](std::string_view line) { lines.emplace_back(line); }};
};

TEST_F(LossLogTest, TheFirstLossIsToldAtOnceAndMoreOfItTogether) {
  log.Add(0, "Crash", "worker 1 died");
  log.Add(1 * kSecond, "Crash", "worker 2 died");
  log.Add(2 * kSecond, "Crash", "worker 3 died");
  log.Add(2 * kSecond, "Other", "worker 4 died");
  log.Tend(9 * kSecond);
  EXPECT_THAT(lines, ElementsAre("worker 1 died", "worker 4 died"));
  log.Tend(10 * kSecond);
  EXPECT_EQ(lines.back(), "2 more of the same (Crash); the last: worker 3 died");
}

TEST_F(LossLogTest, AfterAQuietTimeALossIsToldAtOnceAgain) {
  log.Add(0, "Crash", "worker 1 died");
  log.Tend(10 * kSecond);
  log.Add(11 * kSecond, "Crash", "worker 2 died");
  EXPECT_THAT(lines, ElementsAre("worker 1 died", "worker 2 died"));
}

TEST_F(LossLogTest, TheLastOnesAreRememberedBySubject) {
  for (int i = 0; i < 100; ++i) log.Add(i, "subject " + std::to_string(i), "text");
  log.Add(200, "subject 98", "again");
  EXPECT_EQ(log.losses().size(), 32u);
  EXPECT_EQ(log.losses().front().subject, "subject 98");
  EXPECT_EQ(log.losses().front().times, 2u);
  EXPECT_EQ(log.losses().front().text, "again");
  EXPECT_EQ(log.losses()[1].subject, "subject 99");
}

TEST_F(LossLogTest, CausesAreCountedAndThereAreNotTooMany) {
  LossLog log([](std::string_view) {});
  for (int i = 0; i < 3; ++i) log.Count("ended");
  for (int i = 0; i < 200; ++i) log.Count("cause " + std::to_string(i));
  log.Count("ended");
  EXPECT_EQ(log.causes().size(), 64U);
  EXPECT_EQ(log.causes().at("ended"), 4U);
  EXPECT_EQ(log.causes().at("(other)"), 138U);
}

}  // namespace
}  // namespace menger
