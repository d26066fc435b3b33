#include "menger/runtime/worker/call_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace menger {
namespace {

using Call = std::function<void()>;

// Gives calls to as many threads, and ends when all were given.
void RunAll(int count, std::vector<Call> calls, CallThreads** threads = nullptr) {
  std::deque<Call> queue(calls.begin(), calls.end());
  CallThreads all(count, [&](Call& call) {  // One thread at a time, or this is a race.
    if (queue.empty()) return false;
    call = std::exchange(queue.front(), nullptr);
    queue.pop_front();
    return true;
  });
  if (threads != nullptr) *threads = &all;
  all.Watch();
}

TEST(CallThreadsTest, ACallThatTakesLongIsOvertaken) {
  std::latch all(4);  // Nobody passes before all have come.
  CallThreads* threads = nullptr;
  const Call call = [&] {
    threads->Begun();
    all.arrive_and_wait();
  };
  RunAll(4, std::vector<Call>(4, call), &threads);
  EXPECT_TRUE(all.try_wait());
}

TEST(CallThreadsTest, NoMoreRunAtOnceThanThereAreThreads) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  CallThreads* threads = nullptr;
  const Call call = [&] {
    threads->Begun();
    const int now = ++running;
    int before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --running;
    ++done;
  };
  RunAll(3, std::vector<Call>(100, call), &threads);
  EXPECT_EQ(done, 100);
  EXPECT_LE(most, 3);
}

TEST(CallThreadsTest, CallsBeginInOrder) {
  std::vector<int> order;
  CallThreads* threads = nullptr;
  std::vector<Call> calls;
  for (int i = 0; i < 500; ++i) {
    calls.emplace_back([&, i] {
      if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      threads->PassOn();   // Not before it has begun.
      order.push_back(i);  // Alone, or this is a race.
      threads->Begun();
      if (i % 3 == 0) threads->PassOn();
      if (i % 7 == 0) std::this_thread::yield();
    });
  }
  RunAll(8, calls, &threads);
  ASSERT_EQ(order.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(CallThreadsTest, WhoPassesItOnHasTheTurnNoLonger) {
  CallThreads* threads = nullptr;
  std::latch passed(1);
  RunAll(2,
         {[&] {
            EXPECT_TRUE(threads->HasTurn());
            threads->Begun();
            threads->PassOn();
            EXPECT_FALSE(threads->HasTurn());
            passed.wait();
            threads->PassOn();  // Of the other one: it is not this one's to pass on.
          },
          [&] {
            EXPECT_TRUE(threads->HasTurn());
            passed.count_down();
          }},
         &threads);
}

TEST(CallThreadsTest, NoneComeForAWhile) {
  int looks = 0;
  std::atomic<int> done = 0;
  CallThreads threads(2, [&](Call& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (++looks == 4) call = [&] { ++done; };
    return looks < 5;
  });
  threads.Watch();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace menger
