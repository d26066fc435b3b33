#include "menger/runtime/channel/doorbell.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "menger/base/later_testing.h"

namespace menger {
namespace {

using namespace std::chrono_literals;

constexpr auto kNode = DoorbellRole::kNode;
constexpr auto kGetter = DoorbellRole::kGetter;

TEST(DoorbellTest, ARingBeforeTheWaitIsNotWaitedFor) {
  Doorbell bell;
  const std::uint32_t seen = bell.value();
  bell.Ring();
  EXPECT_TRUE(bell.Wait(kNode, seen, Deadline::After(0s)));
  EXPECT_FALSE(bell.Wait(kNode, bell.value(), Deadline::After(0s)));
}

TEST(DoorbellTest, AWaitEndsAtItsDeadline) {
  Doorbell bell;
  for (const DoorbellRole role : {kNode, kGetter}) {
    MuchLater ring([&bell, role] {
      bell.Listen(role);
      bell.Ring();
    });
    const Stopwatch watch;
    EXPECT_FALSE(bell.Wait(role, bell.value(), Deadline::After(5ms)));
    EXPECT_GE(watch.nanoseconds(), 5'000'000);
    EXPECT_FALSE(ring.came());
  }
}

TEST(DoorbellTest, WhileAGetterListensTheNodesThreadSleepsOn) {
  Doorbell bell;
  std::uint32_t seen = bell.Listen(kGetter);
  std::atomic<bool> node_awake = false;
  std::thread node([&, seen] {
    EXPECT_TRUE(bell.Wait(kNode, seen, Deadline::After(60s)));
    node_awake = true;
  });
  std::this_thread::sleep_for(5ms);
  for (int round = 0; round < 300; ++round) {
    std::thread ringer;
    if (round % 30 == 0) {  // Now and then late enough that the getter sleeps in the kernel.
      ringer = std::thread([&] {
        std::this_thread::sleep_for(1ms);
        bell.Ring();
      });
    } else {
      bell.Ring();
    }
    ASSERT_TRUE(bell.Wait(kGetter, seen, Deadline::After(60s)));
    seen = bell.value();
    if (ringer.joinable()) ringer.join();
  }
  EXPECT_FALSE(node_awake);
  bell.Listen(kNode);
  bell.Ring();
  node.join();
  EXPECT_TRUE(node_awake);
}

// Two ringers, a node thread, and a getter that comes and goes. A lost bell would be a wait that
// ends at its deadline.
TEST(DoorbellTest, NoBellIsLostWhileTheListenerChanges) {
  constexpr int kRounds = 4000;
  Doorbell bell;
  std::atomic<int> published = 0;  // Stands for the rings.
  std::atomic<bool> failed = false;
  std::mutex mutex;
  int drained = 0;  // Guarded by mutex.
  const auto drain = [&] {
    const std::lock_guard lock(mutex);
    return drained = published.load(std::memory_order_acquire);
  };

  std::thread node([&] {
    for (;;) {
      const std::uint32_t seen = bell.value();
      if (drain() >= kRounds) return;
      if (!bell.Wait(kNode, seen, Deadline::After(30s))) failed = true;
      if (failed) return;
    }
  });
  std::thread getter([&] {
    int target = 0;
    while (target < kRounds && !failed) {
      std::uint32_t seen = bell.Listen(kGetter);
      while ((target = drain()) % 7 != 0 && target < kRounds) {
        if (!bell.Wait(kGetter, seen, Deadline::After(30s))) {
          failed = true;
          break;
        }
        seen = bell.value();
      }
      bell.Listen(kNode);
      drain();
      if (target % 5 == 0) std::this_thread::sleep_for(100us);
    }
  });
  for (int round = 1; round <= kRounds && !failed; ++round) {
    published.store(round, std::memory_order_release);
    bell.Ring();
    if (round % 16 != 0) continue;
    // Only goes on when this has been noticed, so a lost bell is not covered by the next one.
    const Deadline deadline = Deadline::After(60s);
    for (bool noticed = false; !noticed && !failed && !deadline.expired();) {
      std::this_thread::sleep_for(10us);
      const std::lock_guard lock(mutex);
      noticed = drained >= round;
    }
  }
  getter.join();
  bell.Ring();  // The getter has drained all, so the node's thread may still be asleep.
  node.join();
  EXPECT_FALSE(failed);
}

class SharedBells {
 public:
  SharedBells()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedBells() { munmap(memory_, kBytes); }
  Doorbell& operator[](int i) { return static_cast<Doorbell*>(memory_)[i]; }

 private:
  static constexpr size_t kBytes = 4096;
  void* memory_;
};

TEST(DoorbellTest, ProcessesRingThroughSharedMemory) {
  SharedBells bells;
  constexpr int kRounds = 500;
  const auto play = [&](Doorbell& mine, Doorbell& other, bool first) {
    for (int round = 0; round < kRounds; ++round) {
      const auto before = static_cast<std::uint32_t>(round);
      if (first) other.Ring();
      if (!mine.Wait(kNode, before, Deadline::After(60s))) return false;
      if (round % 50 == 0) usleep(1000);
      if (!first) other.Ring();
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(play(bells[0], bells[1], false) ? 0 : 1);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(play(bells[1], bells[0], true));
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(DoorbellTest, ScribblingOverItCostsAWaitUntilTheDeadlineAndIsRepairedByListening) {
  alignas(64) std::byte memory[sizeof(Doorbell)];
  for (const int value : {0x00, 0x5a, 0x7f, 0xff}) {
    auto* const bell = new (memory) Doorbell;
    std::memset(static_cast<void*>(bell), value, sizeof(Doorbell));
    bell->Wait(kNode, bell->value(), Deadline::After(1ms));
    bell->Wait(kGetter, bell->value(), Deadline::After(1ms));
    const std::uint32_t seen = bell->Listen(kGetter);
    std::thread ringer([&] { bell->Ring(); });
    EXPECT_TRUE(bell->Wait(kGetter, seen, Deadline::After(60s)));
    ringer.join();
  }
}

}  // namespace
}  // namespace menger
