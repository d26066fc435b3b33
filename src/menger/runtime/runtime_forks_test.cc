#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/testing/isolations.h"

namespace menger {
namespace {
bool in_fork = false;
}  // namespace
}  // namespace menger

// LeakSanitizer asks. What only the threads knew that a fork does not have looks leaked there.
extern "C" int __lsan_is_turned_off() { return menger::in_fork ? 1 : 0; }  // NOLINT

// Forks of a process that has a runtime, and of calls: the fork can do nothing with it, ends as it
// likes, and the process that it is a fork of does not notice.
namespace menger {
namespace {

using namespace std::chrono_literals;

constexpr int kPatienceSeconds = 30;
constexpr int kThrew = 98;

int Same(int x) { return x; }
std::vector<int> Many(int count) { return std::vector<int>(static_cast<std::size_t>(count), 7); }
void Numbers(Emitter<int>& emit, int count) {
  for (int i = 0; i < count; ++i) emit(i);
}
class Counter {
 public:
  int Add(int amount) { return value_ += amount; }

 private:
  int value_ = 0;
};

// Sanitizers' allocators have locks, which another thread may hold at a fork: there a fork beside
// busy threads may wait for one for ever, and where it starts threads, too.
bool ForksOfThreadsMayHang() { return *MENGER_SANITIZER != '\0'; }

struct Forked {
  bool is_fork;
  int status;  // Elsewhere: what the fork ended with.
};

// Forks, and waits for the fork's end. One that hangs is killed; where that may be the sanitizer's
// doing, only one that hangs three times in turn is told of.
Forked ForkAndWait() {
  for (int attempts = ForksOfThreadsMayHang() ? 3 : 1;; --attempts) {
    const pid_t child = fork();
    if (child == 0) {
      in_fork = true;
      alarm(kPatienceSeconds);
      return {.is_fork = true, .status = 0};
    }
    int status = -1;
    waitpid(child, &status, 0);
    const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    if (!hung || attempts == 1) return {.is_fork = false, .status = status};
  }
}

// What a fork exits with, having done `work` and given it back, as if by main.
int StatusOfFork(const std::function<int()>& work) {
  const auto [is_fork, status] = ForkAndWait();
  if (is_fork) {
    int result = kThrew;
    try {
      result = work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "the fork threw: {}\n", error.what());
    }
    std::exit(result);
  }
  EXPECT_TRUE(WIFEXITED(status)) << "it was killed by signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

// Whether it is refused because this process is a fork.
bool IsRefused(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kFailedPrecondition &&
           std::string(error.what()).find("is a fork of one that has a Runtime") !=
               std::string::npos;
  }
  return false;
}
int CountAllowed(const std::vector<std::function<void()>>& all) {
  int allowed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (IsRefused(all[i])) continue;
    fmt::print(stderr, "number {} is not refused\n", i);
    ++allowed;
  }
  return allowed;
}

class ForksTest : public testing::TestWithParam<Isolation> {
 protected:
  // That a runtime works, and its actor has been asked so often.
  void ExpectWhole(int before) {
    EXPECT_EQ(runtime->Get(runtime->Call<Same>(number), 20s), 5);
    EXPECT_EQ(runtime->Get(actor->Call<&Counter::Add>(1), 20s), before + 1);
    EXPECT_EQ((*pinned)->back(), 7);
    EXPECT_EQ(runtime->Get(runtime->Put(std::string(1'000'000, 'x')), 20s).size(), 1'000'000u);
  }

  std::optional<Runtime> runtime{std::in_place,
                                 RuntimeOptions{.workers = 2, .isolation = GetParam()}};
  ObjectRef<int> number = runtime->Put(5);
  std::optional<ActorRef<Counter>> actor = runtime->CreateActor<Counter>({});
  std::optional<Pinned<std::vector<int>>> pinned{runtime->Pin(runtime->Call<Many>(100'000))};
  ObjectStream<int> stream = runtime->Stream<Numbers>(1000);
  std::optional<Allocation<float>> room{runtime->Allocate<float>({100'000})};
  PlacementGroup group = runtime->CreatePlacementGroup({{.cpus = 1}});
};
INSTANTIATE_TEST_SUITE_P(Isolations, ForksTest, BothIsolations(), IsolationName);

TEST_P(ForksTest, AForkThatOnlyExitsHasItsOwnStatus) {
  EXPECT_EQ(StatusOfFork([] { return 7; }), 7);
  ExpectWhole(0);
}

TEST_P(ForksTest, AForkThatDropsAllThatItHasEndsAndTheProcessDoesNotNotice) {
  const auto drop = [&] {
    number = ObjectRef<int>();
    actor.reset();
    pinned.reset();
    stream = ObjectStream<int>();
    room.reset();
    group = PlacementGroup();
    runtime.reset();
    return 7;
  };
  EXPECT_EQ(StatusOfFork(drop), 7);
  EXPECT_EQ(StatusOfFork([&] {
              runtime.reset();  // In another order.
              return drop();
            }),
            7);
  ExpectWhole(0);
  int sum = 0;
  for (const ObjectRef<int>& item : stream) sum += runtime->Get(item);
  EXPECT_EQ(sum, 499'500);  // 999 * 1000 / 2
  std::ranges::fill(room->values(), 1.0F);
  EXPECT_EQ(runtime->Pin(room->Seal())->shape[0], 100'000);
}

TEST_P(ForksTest, WhateverAForkAsksForIsRefusedByName) {
  const std::vector<std::function<void()>> all = {
      [&] { runtime->Get(number, 1s); },
      [&] { runtime->Get(std::vector{number}, 1s); },
      [&] { runtime->Pin(number, 1s); },
      [&] { runtime->Wait(std::vector{number}, {.timeout = 1s}); },
      [&] { runtime->Put(1); },
      [&] { runtime->Put(std::string(1'000'000, 'x')); },
      [&] { runtime->Allocate<float>({3}).Seal(); },
      [&] { room->Seal(); },
      [&] { runtime->Call<Same>(1); },
      [&] { runtime->Call<Same>(number); },
      [&] { runtime->Stream<Numbers>(1); },
      [&] { stream.Next(1s); },
      [&] { actor->Call<&Counter::Add>(1); },
      [&] { runtime->CreateActor<Counter>({.name = "forked"}); },
      [&] { runtime->GetActor<Counter>("forked"); },
      [&] { runtime->Kill(*actor); },
      [&] { runtime->Cancel(number); },
      [&] { runtime->CreatePlacementGroup({{.cpus = 1}}); },
      [&] { runtime->RemovePlacementGroup(group); },
  };
  EXPECT_EQ(StatusOfFork([&] { return CountAllowed(all); }), 0);
  ExpectWhole(0);
}

TEST_P(ForksTest, ForksDoNotHangWhoseParentHeldLocks) {
  if (ForksOfThreadsMayHang()) GTEST_SKIP() << "in the allocator of this sanitizer";
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!stop) runtime->Get(runtime->Call<Same>(runtime->Put(1)));
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(StatusOfFork([&] {
                const bool refused = IsRefused([&] { runtime->Get(number, 1s); });
                number = ObjectRef<int>();
                pinned.reset();
                runtime.reset();
                return refused ? 7 : 8;
              }),
              7);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  ExpectWhole(0);
}

TEST_P(ForksTest, AForkMakesARuntimeOfItsOwn) {
  if (ForksOfThreadsMayHang()) GTEST_SKIP() << "in the allocator of this sanitizer";
  EXPECT_EQ(StatusOfFork([&] {
              Runtime own({.workers = 1, .isolation = GetParam()});
              const bool refused = IsRefused([&] { own.Call<Same>(number); });
              return refused ? own.Get(own.Call<Same>(own.Put(7)), 20s) : 8;
            }),
            7);
  ExpectWhole(0);
}

// ---- Calls that fork.

// What a worker keeps until it exits.
ObjectRef<int> kept_number;
ActorRef<Counter> kept_actor;

int ForkAndTryAll(Runtime& runtime, const ObjectRef<int>& number, const ActorRef<Counter>& actor) {
  kept_number = number;
  kept_actor = actor;
  return StatusOfFork([&] {
    const int allowed = CountAllowed({
        [&] { runtime.Get(number, 1s); },
        [&] { runtime.Put(std::string(1'000'000, 'x')); },
        [&] { runtime.Call<Same>(number); },
        [&] { actor.Call<&Counter::Add>(1); },
        [&] { runtime.GetActor<Counter>("nobody"); },
        [&] { Runtime own({.workers = 1}); },
    });
    // A call has a runtime already, and so has a fork of it: the last is refused for that.
    return allowed == 1 ? 7 : 8;
  });
}
int ForkAndReturn() {
  const auto [is_fork, status] = ForkAndWait();
  if (is_fork) return 1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int ForkAndThrow() {
  const auto [is_fork, status] = ForkAndWait();
  if (is_fork) throw std::runtime_error("the fork's own");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(ForksTest, AForkOfACallExitsAsItLikes) {
  EXPECT_EQ(runtime->Get(runtime->Call<ForkAndTryAll>(number, *actor), 60s), 7);
  kept_number = ObjectRef<int>();
  kept_actor = ActorRef<Counter>();
  ExpectWhole(0);
}

TEST_P(ForksTest, AForkThatReturnsFromACallEndsThere) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(runtime->Get(runtime->Call<ForkAndReturn>(), 60s), EXIT_FAILURE);
    EXPECT_EQ(runtime->Get(runtime->Call<ForkAndThrow>(), 60s), EXIT_FAILURE);
  }
  ExpectWhole(0);
}

}  // namespace
}  // namespace menger
