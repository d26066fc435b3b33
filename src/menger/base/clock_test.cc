#include "menger/base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace menger {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;

TEST(ClockTest, TimeNeverGoesBack) {
  int64_t last = MonotonicNanoseconds();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = MonotonicNanoseconds();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, ADeadlineExpiresAfterItsDurationAndNotBefore) {
  const Deadline soon = Deadline::After(2ms);
  std::this_thread::sleep_for(3ms);
  EXPECT_TRUE(soon.expired());
  EXPECT_EQ(soon.remaining().count(), 0);
  EXPECT_FALSE(Deadline::After(1h).expired());
  EXPECT_LE(Deadline::After(1h).remaining(), 1h);
}

TEST(ClockTest, ExtremeDurationsNeitherOverflowNorWait) {
  EXPECT_TRUE(Deadline::After(-1h).expired());
  EXPECT_TRUE(Deadline::After(std::chrono::nanoseconds::min()).expired());
  EXPECT_GT(Deadline::After(std::chrono::nanoseconds::max()).remaining(), 24h * 365 * 100);
}

TEST(ClockTest, AStopwatchMeasuresFromItsLastRestart) {
  Stopwatch watch;
  std::this_thread::sleep_for(2ms);
  EXPECT_GE(watch.nanoseconds(), 2'000'000);
  const Stopwatch before = watch;
  watch.Restart();
  EXPECT_LT(watch.nanoseconds(), before.nanoseconds());
  EXPECT_GE(before.seconds(), 0.002);
}

}  // namespace
}  // namespace menger
