#include "menger/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "menger/base/later_testing.h"

namespace menger {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(BoundedQueueTest, ItemsComeOutInOrderOfArrival) {
  BoundedQueue<std::unique_ptr<int>> queue(/*capacity=*/3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push(std::make_unique<int>(i), 1s));
  EXPECT_EQ(queue.size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(**queue.Pop(1s), i);
}

TEST(BoundedQueueTest, WaitsEndAtTheirDeadline) {
  BoundedQueue<int> queue(/*capacity=*/1);
  {
    MuchLater push([&queue] { queue.Push(3, 1s); });
    EXPECT_THROW(queue.Pop(1ms), Error);
    EXPECT_FALSE(push.came());
  }
  EXPECT_TRUE(queue.Push(1, 1ms));
  MuchLater pop([&queue] { queue.Pop(1s); });
  try {
    queue.Push(2, 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
  EXPECT_FALSE(pop.came());
  EXPECT_EQ(queue.size(), 1);
}

TEST(BoundedQueueTest, AClosedQueueRefusesNewItemsAndGivesOutTheRest) {
  BoundedQueue<int> queue(/*capacity=*/2);
  queue.Push(1, 1s);
  queue.Close();
  queue.Close();
  EXPECT_FALSE(queue.Push(2, 1s));
  EXPECT_EQ(queue.Pop(1s), 1);
  EXPECT_EQ(queue.Pop(1s), std::nullopt);
}

TEST(BoundedQueueTest, CloseWakesWhoeverWaits) {
  BoundedQueue<int> full(/*capacity=*/1), empty(/*capacity=*/1);
  full.Push(1, 1s);
  std::thread producer([&] { EXPECT_FALSE(full.Push(2, 60s)); });
  std::thread consumer([&] { EXPECT_EQ(empty.Pop(60s), std::nullopt); });
  std::this_thread::sleep_for(5ms);
  full.Close();
  empty.Close();
  producer.join();
  consumer.join();
}

TEST(BoundedQueueTest, ManyProducersAndConsumersLoseNothing) {
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(/*capacity=*/4);
  std::vector<int64_t> sums(3, 0);
  std::vector<std::thread> producers, consumers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&] {
      for (int i = 1; i <= kItems; ++i) queue.Push(i, 60s);
    });
    consumers.emplace_back([&, p] {
      while (const std::optional<int> item = queue.Pop(60s)) sums[p] += *item;
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}),
            int64_t{3} * kItems * (kItems + 1) / 2);
}

TEST(BoundedQueueTest, ACapacityBelowOneIsRefused) {
  EXPECT_THROW(BoundedQueue<int>(/*capacity=*/0), Error);
}

}  // namespace
}  // namespace menger
