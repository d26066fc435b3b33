#include "menger/base/epoch_counter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/later_testing.h"

namespace menger {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(EpochCounterTest, AnEpochAlreadyReachedIsNotWaitedFor) {
  EpochCounter counter;
  EXPECT_EQ(counter.Advance(), 1u);
  EXPECT_EQ(counter.Advance(), 2u);
  EXPECT_TRUE(counter.TryWaitFor(2, 0ms));
  EXPECT_FALSE(counter.TryWaitFor(3, 0ms));
  EXPECT_EQ(counter.WaitPast(1, 1s), 2u);
}

TEST(EpochCounterTest, AWaitEndsAtItsDeadlineWithAnErrorThatNamesTheEpoch) {
  EpochCounter counter;
  MuchLater advance([&counter] { counter.Advance(); });
  const Stopwatch watch;
  EXPECT_FALSE(counter.TryWaitFor(1, 5ms));
  EXPECT_GE(watch.nanoseconds(), 5'000'000);
  try {
    counter.WaitFor(7, 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_STREQ(error.what(), "epoch 7 was not reached within 1 ms; the counter is at 0");
  }
  EXPECT_FALSE(advance.came());
}

TEST(EpochCounterTest, EpochsAreComparedByDistanceAcrossTheWrap) {
  EXPECT_TRUE(EpochCounter::HasReached(3, 3));
  EXPECT_TRUE(EpochCounter::HasReached(2, 0xfffffff0));
  EXPECT_FALSE(EpochCounter::HasReached(0xfffffff0, 2));
}

TEST(EpochCounterTest, WhatWasWrittenBeforeAnAdvanceIsSeenAfterTheWait) {
  EpochCounter ping, pong;
  int64_t plain = 0;  // No atomic: the counters alone order the accesses; TSan would tell.
  constexpr uint32_t kRounds = 3000;
  std::thread other([&] {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      ping.WaitFor(round, 60s);
      plain += round;
      // Now and then late enough that the other side sleeps in the kernel.
      if (round % 100 == 0) std::this_thread::sleep_for(1ms);
      pong.Advance();
    }
  });
  int64_t expected = 0;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    ping.Advance();
    pong.WaitFor(round, 60s);
    expected += round;
    ASSERT_EQ(plain, expected);
  }
  other.join();
}

TEST(EpochCounterTest, OneAdvanceWakesAllWaiters) {
  EpochCounter start, done;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      start.WaitFor(1, 60s);
      done.Advance();
    });
  }
  std::this_thread::sleep_for(5ms);
  start.Advance();
  done.WaitFor(4, 60s);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(done.value(), 4u);
}

// As a host and its driver do, which may share a core: waits shorter than a spin, and longer.
TEST(EpochCounterTest, TwoThatYieldAnswerEachOther) {
  constexpr uint32_t kTurns = 1000;
  EpochCounter asked, answered;
  std::thread other([&] {
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      ASSERT_TRUE(asked.TryWaitFor(turn, 60s, SpinKind::kYielding));
      if (turn % 100 == 0) std::this_thread::sleep_for(1ms);
      answered.Advance();
    }
  });
  for (uint32_t turn = 1; turn <= kTurns; ++turn) {
    asked.Advance();
    ASSERT_TRUE(answered.TryWaitFor(turn, 60s, SpinKind::kYielding));
  }
  other.join();
  EXPECT_FALSE(answered.TryWaitFor(kTurns + 1, 1ms, SpinKind::kYielding));
}

// Zeroed memory that a child process shares; unmapped at the end.
class SharedCounters {
 public:
  SharedCounters()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedCounters() { munmap(memory_, kBytes); }
  EpochCounter& operator[](int i) { return static_cast<EpochCounter*>(memory_)[i]; }

 private:
  static constexpr size_t kBytes = 4096;
  void* memory_;
};

TEST(EpochCounterTest, ProcessesMeetThroughSharedMemory) {
  SharedCounters counters;
  constexpr uint32_t kRounds = 500;
  const pid_t child = fork();
  if (child == 0) {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      if (!counters[0].TryWaitFor(round, 60s)) _exit(1);
      if (round % 50 == 0) usleep(1000);
      counters[1].Advance();
    }
    _exit(0);
  }
  ASSERT_GT(child, 0);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    if (round % 70 == 0) usleep(1000);
    counters[0].Advance();
    counters[1].WaitFor(round, 60s);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(EpochCounterTest, AWaiterThatIsKilledLeavesTheCounterUsable) {
  SharedCounters counters;
  const pid_t child = fork();
  if (child == 0) {
    counters[1].Advance();
    counters[0].TryWaitFor(1, 60s);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  counters[1].WaitFor(1, 60s);
  usleep(5000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::thread waiter([&] { counters[0].WaitFor(2, 60s); });
  counters[0].Advance();
  EXPECT_EQ(counters[0].Advance(), 2u);
  waiter.join();
}

}  // namespace
}  // namespace menger
