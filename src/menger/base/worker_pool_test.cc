#include "menger/base/worker_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/shared_worker_pool.h"

namespace menger {
namespace {

TEST(WorkerPoolTest, EveryTaskRunsOnceWhateverTheNumberOfThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int tasks : {0, 1, 2, 7, 64}) {
      std::vector<int> counts(tasks, 0);  // Plain: TSan would tell if two threads met.
      pool.Run(tasks, [&](int task) { ++counts[task]; });
      EXPECT_EQ(counts, std::vector<int>(tasks, 1));
    }
  }
}

TEST(WorkerPoolTest, ATaskBelongsToItsThread) {
  WorkerPool pool(3);
  std::vector<std::thread::id> first(9), second(9);
  pool.Run(9, [&](int task) { first[task] = std::this_thread::get_id(); });
  pool.Run(9, [&](int task) { second[task] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  for (int task = 3; task < 9; ++task) EXPECT_EQ(first[task], first[task - 3]);
  EXPECT_NE(first[1], first[2]);
}

TEST(WorkerPoolTest, HandlesOfOnePoolTakeTurnsOnItsThreads) {
  const SharedWorkerPool one = 2;
  const SharedWorkerPool other = one;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(other.threads(), 2);
  std::vector<std::thread::id> first(2), second(2);
  one.Run(2, [&](int task) { first[task] = std::this_thread::get_id(); });
  other.Run(2, [&](int task) { second[task] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
  EXPECT_THROW(one.Run(1, [&](int) { other.Run(1, [](int) {}); }), Error);
}

TEST(WorkerPoolTest, ThousandsOfRunsKeepTheirOrder) {
  WorkerPool pool(2);
  std::vector<int64_t> sums(2, 0);
  for (int run = 1; run <= 5000; ++run) {
    pool.Run(2, [&](int task) { sums[task] += run; });
    ASSERT_EQ(sums[0], sums[1]);
    // Now and then late enough that the worker sleeps in the kernel.
    if (run % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sums[0], 5000 * 5001 / 2);
}

TEST(WorkerPoolTest, AnExceptionReachesTheCallerAndThePoolStaysUsable) {
  for (const int threads : {1, 3}) {
    WorkerPool pool(threads);
    const auto fails = [](int task) {
      if (task >= 1) throw InvalidArgument("task {}", task);
    };
    try {
      pool.Run(3, fails);
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "task 1");
    }
    int ran = 0;
    pool.Run(1, [&](int) { ++ran; });
    EXPECT_EQ(ran, 1);
  }
}

TEST(WorkerPoolTest, ATaskMayNotRunItsOwnPool) {
  WorkerPool pool(2);
  try {
    pool.Run(2, [&](int) { pool.Run(1, [](int) {}); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  }
}

// Two learners of one process that were made alike hold handles of one pool.
TEST(WorkerPoolTest, OneThreadIsEveryCallersOwn) {
  const SharedWorkerPool one = 1;
  const SharedWorkerPool other = one;  // NOLINT(performance-unnecessary-copy-initialization)
  int inner = 0;
  one.Run(2, [&](int) { other.Run(3, [&](int) { ++inner; }); });
  EXPECT_EQ(inner, 6);

  int from_another = 0;
  one.Run(1, [&](int) {  // Another thread's Run, whole, while this one is under way.
    std::thread([&] { other.Run(2, [&](int) { ++from_another; }); }).join();
  });
  EXPECT_EQ(from_another, 2);
}

TEST(WorkerPoolTest, ImpossibleSizesAreRefused) {
  EXPECT_THROW(WorkerPool(0), Error);
  EXPECT_THROW(WorkerPool(1025), Error);
}

}  // namespace
}  // namespace menger
