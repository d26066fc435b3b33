#include "menger/runtime/worker/lending.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "menger/base/clock.h"

namespace menger {
namespace {

using std::chrono::milliseconds;

// What the node is told.
class LendingTest : public testing::Test {
 protected:
  void BeginCall(std::uint64_t lease) {
    lending.SetCall(lease, [this] { --told; });
  }
  void EndCall() { BeginCall(0); }
  void Begin() {
    lending.Begin([this] { ++told; });
  }
  void End() {
    lending.End([this] { --told; });
  }
  void Look(Lending::ThreadWait& wait) {
    wait.Look([this] { ++told; });
  }
  // After a while in which the process computes nothing.
  void LookLater(Lending::ThreadWait& wait) {
    std::this_thread::sleep_for(milliseconds(50));
    Look(wait);
  }
  void End(Lending::ThreadWait& wait) {
    wait.End([this] { --told; });
  }
  // Until it has had a core for twice as much of the time as it takes not to count as idle. Others
  // may want that core; false if they want it too much.
  static bool Compute() {
    const std::int64_t begin = MonotonicNanoseconds();
    const std::clock_t computed = std::clock();
    for (std::int64_t time = 0; time < 60'000'000'000;) {
      time = MonotonicNanoseconds() - begin;
      const double part = 1e9 / CLOCKS_PER_SEC * static_cast<double>(std::clock() - computed);
      if (time > 20'000'000 && part > 0.2 * static_cast<double>(time)) return true;
    }
    return false;
  }

  Lending lending;
  int told = 0;  // Begins without ends.
};

TEST_F(LendingTest, AWaitOfTheCallLendsUntilItEnds) {
  BeginCall(1);
  Begin();
  EXPECT_EQ(told, 1);
  End();
  EXPECT_EQ(told, 0);
}

TEST_F(LendingTest, AWaitOfAThreadLendsOnceWhereNothingIsComputed) {
  BeginCall(1);
  Lending::ThreadWait wait(lending);
  if (Compute()) {
    Look(wait);
    EXPECT_EQ(told, 0);
  }
  LookLater(wait);
  EXPECT_EQ(told, 1);
  LookLater(wait);
  EXPECT_EQ(told, 1);
  End(wait);
  EXPECT_EQ(told, 0);
}

TEST_F(LendingTest, TheLastWaitToEndIsTold) {
  BeginCall(1);
  Lending::ThreadWait wait(lending);
  LookLater(wait);
  EXPECT_EQ(told, 1);
  Begin();
  End(wait);
  EXPECT_EQ(told, 2);  // Both say what they wait for.
  End();
  EXPECT_EQ(told, 1);  // And one that it is over.
}

TEST_F(LendingTest, WhatACallHasLentIsBackWhenItEnds) {
  BeginCall(1);
  Lending::ThreadWait wait(lending);
  LookLater(wait);
  EXPECT_EQ(told, 1);
  EndCall();
  EXPECT_EQ(told, 0);
  End(wait);
  EXPECT_EQ(told, 0);
}

TEST_F(LendingTest, AThreadOfAnEarlierCallLendsNothing) {
  BeginCall(1);
  Lending::ThreadWait wait(lending);
  EndCall();
  BeginCall(2);
  LookLater(wait);
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace menger
