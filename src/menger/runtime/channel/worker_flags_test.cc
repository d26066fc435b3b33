#include "menger/runtime/channel/worker_flags.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace menger {
namespace {

std::vector<std::size_t> Taken(WorkerFlags& flags, std::size_t places) {
  std::vector<std::size_t> taken;
  flags.TakeDown(places, [&](std::size_t place) { taken.push_back(place); });
  return taken;
}

TEST(WorkerFlagsTest, EachThatWasRaisedIsTakenDownOnce) {
  const auto flags = std::make_unique<WorkerFlags>();
  EXPECT_TRUE(Taken(*flags, WorkerFlags::kWorkersMax).empty());
  for (const std::size_t place : {63, 0, 64, 32'767, 64}) flags->Raise(place);
  EXPECT_EQ(Taken(*flags, WorkerFlags::kWorkersMax), (std::vector<std::size_t>{0, 63, 64, 32'767}));
  EXPECT_TRUE(Taken(*flags, WorkerFlags::kWorkersMax).empty());
}

TEST(WorkerFlagsTest, PlacesThatNobodyHasAreNotVisited) {
  const auto flags = std::make_unique<WorkerFlags>();
  flags->Raise(2);
  flags->Raise(3);
  EXPECT_EQ(Taken(*flags, 3), (std::vector<std::size_t>{2}));
}

// A number that is published before the flag is raised is seen by whoever takes it down, or its
// flag is up.
TEST(WorkerFlagsTest, NothingThatWasPublishedBeforeIsMissed) {
  constexpr std::size_t kWorkers = 3;
  constexpr std::uint64_t kLast = 100'000;
  const auto flags = std::make_unique<WorkerFlags>();
  std::vector<std::atomic<std::uint64_t>> published(kWorkers);
  std::vector<std::uint64_t> seen(kWorkers);
  std::vector<std::thread> workers;
  for (std::size_t place = 0; place < kWorkers; ++place) {
    workers.emplace_back([&flags, &published, place] {
      for (std::uint64_t number = 1; number <= kLast; ++number) {
        published[place].store(number, std::memory_order_seq_cst);
        flags->Raise(place);
      }
    });
  }
  const auto look = [&](std::size_t place) {
    seen[place] = published[place].load(std::memory_order_seq_cst);
  };
  for (int i = 0; i < 10'000; ++i) flags->TakeDown(kWorkers, look);
  for (std::thread& worker : workers) worker.join();
  flags->TakeDown(kWorkers, look);
  EXPECT_EQ(seen, std::vector<std::uint64_t>(kWorkers, kLast));
}

}  // namespace
}  // namespace menger
