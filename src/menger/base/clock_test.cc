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
  const int64_t before = MonotonicNanoseconds();
  const int64_t at = Deadline::After(1h).at();
  const int64_t after = MonotonicNanoseconds();
  const std::chrono::nanoseconds hour = 1h;
  EXPECT_GE(at, before + hour.count());
  EXPECT_LE(at, after + hour.count());
}

TEST(ClockTest, ExtremeDurationsNeitherOverflowNorWait) {
  EXPECT_TRUE(Deadline::After(-1h).expired());
  EXPECT_TRUE(Deadline::After(std::chrono::nanoseconds::min()).expired());
  EXPECT_GT(Deadline::After(std::chrono::nanoseconds::max()).remaining(), 24h * 365 * 100);
}

TEST(ClockTest, AStopwatchMeasuresFromItsLastRestart) {
  const int64_t begin = MonotonicNanoseconds();
  Stopwatch watch;
  std::this_thread::sleep_for(2ms);
  const int64_t measured = watch.nanoseconds();
  EXPECT_GE(measured, 2'000'000);
  EXPECT_LE(measured, MonotonicNanoseconds() - begin);
  const Stopwatch before = watch;
  watch.Restart();
  EXPECT_LT(watch.nanoseconds(), before.nanoseconds());
  EXPECT_GE(before.seconds(), 0.002);
}

}  // namespace
}  // namespace menger
