#include "menger/runtime/call_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace menger {
namespace {

TEST(CallThreadsTest, AsManyRunAtOnceAsThereAreThreads) {
  constexpr int kCount = 4;
  std::latch all(kCount);  // Nobody passes before all have come.
  CallThreads threads(kCount);
  for (int i = 0; i < kCount; ++i) {
    threads.Run([&] {
      threads.Begun();
      all.arrive_and_wait();
    });
  }
}

TEST(CallThreadsTest, NoMoreRunAtOnceThanThereAreThreads) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  {
    CallThreads threads(3);
    for (int i = 0; i < 300; ++i) {
      threads.Run([&] {
        threads.Begun();
        const int now = ++running;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        --running;
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 300);
  EXPECT_LE(most, 3);
}

TEST(CallThreadsTest, TheyBeginInOrder) {
  std::vector<int> order;
  {
    CallThreads threads(4);
    for (int i = 0; i < 100; ++i) {
      threads.Run([&, i] {
        order.push_back(i);  // Alone: the next one waits.
        threads.Begun();
        std::this_thread::yield();
      });
    }
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(CallThreadsTest, ThreadsAreStartedOnlyWhenTheyAreNeeded) {
  std::mutex mutex;
  std::set<std::thread::id> used;
  CallThreads threads(100);
  for (int i = 0; i < 10; ++i) {
    std::latch done(1);
    threads.Run([&] {
      const std::lock_guard lock(mutex);
      used.insert(std::this_thread::get_id());
      done.count_down();
    });
    done.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(used.size(), 3u);
}

}  // namespace
}  // namespace menger
