#include "menger/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(ThreadTest, TheThreadCarriesTheFirstFifteenCharactersOfItsName) {
  std::string seen;
  Thread thread({.name = "collector-worker-12"}, [&] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    seen = name;
  });
  thread.Join();
  EXPECT_EQ(seen, "collector-worke");
  EXPECT_EQ(thread.name(), "collector-worker-12");
}

TEST(ThreadTest, APinnedThreadRunsOnItsCpuAndTheProcessKeepsItsOwn) {
  const std::vector<int> before = AvailableCpuList();
  int count = 0;
  bool has = false;
  Thread thread({.name = "pinned", .cpu = before.back()}, [&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    pthread_getaffinity_np(pthread_self(), sizeof(mask), &mask);
    count = CPU_COUNT(&mask);
    has = CPU_ISSET(before.back(), &mask);
    EXPECT_EQ(AvailableCpuList(), before);
  });
  thread.Join();
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(has);
}

TEST(ThreadTest, ARefusedPinIsNotedAndTheThreadRunsAnyway) {
  bool ran = false;
  testing::internal::CaptureStderr();
  Thread({.name = "stray", .cpu = 1'000'000}, [&] { ran = true; }).Join();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("thread 'stray' may not be pinned to cpu 1000000"));
  EXPECT_TRUE(ran);
}

TEST(ThreadTest, JoinThrowsWhatEndedTheThreadOnce) {
  Thread thread({.name = "w"}, [] { throw NotFound("x"); });
  try {
    thread.Join();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_STREQ(error.what(), "thread 'w': x");
  }
  thread.Join();
  EXPECT_FALSE(thread.joinable());
  EXPECT_TRUE(thread.finished());
}

TEST(ThreadTest, TheDestructorJoinsAndLogsAForgottenException) {
  std::atomic<bool> ran = false;
  testing::internal::CaptureStderr();
  {
    Thread thread({.name = "w"}, [&] {
      ran = true;
      throw std::runtime_error("lost");
    });
  }
  EXPECT_TRUE(ran);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("thread 'w': lost"));
}

TEST(ThreadTest, AMovedThreadIsJoinedByItsNewOwner) {
  std::atomic<int> runs = 0;
  Thread first({.name = "a"}, [&] { ++runs; });
  Thread second({.name = "b"}, [&] { ++runs; });
  second = std::move(first);
  EXPECT_GE(runs, 1);  // b was joined when it was replaced.
  EXPECT_EQ(second.name(), "a");
  second.Join();
  EXPECT_EQ(runs, 2);
  Thread none;
  none.Join();
  EXPECT_TRUE(none.finished());
}

TEST(ThreadTest, ThereIsAtLeastOneCpu) {
  EXPECT_GE(AvailableCpus(), 1);
  const std::vector<int> cpus = AvailableCpuList();
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
}

}  // namespace
}  // namespace menger
