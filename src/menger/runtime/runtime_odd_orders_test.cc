#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/testing/isolations.h"

// What programs do in an order that nobody had in mind: with references to nothing, with options at
// the ends of their ranges, again and again.
namespace menger {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int Same(int x) { return x; }
class Counter {
 public:
  int Add(int amount) { return value_ += amount; }

 private:
  int value_ = 0;
};
int CountValid(const std::vector<ActorRef<Counter>>& actors,
               const std::vector<ObjectRef<int>>& numbers, const PlacementGroup& group) {
  int valid = group.valid() ? 1 : 0;
  for (const auto& actor : actors) valid += actor.valid() ? 1 : 0;
  for (const auto& number : numbers) valid += number.valid() ? 1 : 0;
  return valid;
}

std::string Refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "it was not refused";
}

class OddOrdersTest : public IsolationTest {};
INSTANTIATE_TEST_SUITE_P(Isolations, OddOrdersTest, BothIsolations(), IsolationName);

TEST_P(OddOrdersTest, ReferencesToNothingTravelAndAreRefusedByNameWhereTheyAreUsed) {
  ObjectRef<int> number = runtime.Put(1);
  ActorRef<Counter> actor = runtime.CreateActor<Counter>({});
  const ObjectRef<int> kept_number = std::move(number);
  const ActorRef<Counter> kept_actor = std::move(actor);
  const std::vector<ActorRef<Counter>> actors = {{}, actor, kept_actor};
  const std::vector<ObjectRef<int>> numbers = {number, kept_number, {}};
  EXPECT_EQ(runtime.Get(runtime.Call<CountValid>(actors, numbers, PlacementGroup())), 2);
  EXPECT_EQ(runtime.Get(runtime.Put(actors)).size(), 3u);
  EXPECT_THAT(Refusal([&] { runtime.Get(number, 1s); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.Wait(numbers); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.Call<Same>(number); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.Cancel(number); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { actor.Call<&Counter::Add>(1); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.Kill(actor); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(Refusal([&] { runtime.RemovePlacementGroup({}); }), HasSubstr("refers to nothing"));
  EXPECT_EQ(runtime.Get(kept_actor.Call<&Counter::Add>(1)), 1);
}

TEST_P(OddOrdersTest, AnActorIsWhatItWasAfterItCouldNotBeEncoded) {
  const ActorRef<Counter> actor = runtime.CreateActor<Counter>({});
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 1}});
  // Where references are not counted they cannot be kept.
  EXPECT_THROW(EncodedSize(actor, nullptr), Error);
  EXPECT_THROW(EncodedSize(group, nullptr), Error);
  EXPECT_TRUE(group.valid());
  EXPECT_EQ(runtime.Get(actor.Call<&Counter::Add>(1)), 1);
}

TEST_P(OddOrdersTest, OneActorIsSentByManyThreadsAtOnce) {
  const std::vector<ActorRef<Counter>> actors = {runtime.CreateActor<Counter>({})};
  const PlacementGroup group = runtime.CreatePlacementGroup({{.cpus = 1}});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        const std::vector<ObjectRef<int>> none;
        if (runtime.Get(runtime.Call<CountValid>(actors, none, group)) != 2) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(OddOrdersTest, TimeoutsAtTheEndsOfTheirRange) {
  const ObjectRef<int> number = runtime.Call<Same>(1);
  EXPECT_EQ(runtime.Get(number, std::chrono::nanoseconds::max()), 1);
  EXPECT_EQ(runtime.Get(number, std::chrono::nanoseconds::min()), 1);
  EXPECT_EQ(runtime.Wait(std::vector{number}, {.count = 0}).pending.size(), 1u);
  EXPECT_EQ(runtime.Wait(std::vector{number}, {.timeout = -1s}).ready.size(), 1u);
  EXPECT_TRUE(runtime.Wait(std::vector<ObjectRef<int>>(), {.count = 0}).ready.empty());
  EXPECT_THAT(Refusal([&] { runtime.Wait(std::vector{number}, {.count = SIZE_MAX}); }),
              HasSubstr("of 1 references"));
}

TEST_P(OddOrdersTest, OptionsOfCallsBeyondTheirRangeAreRefusedByName) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr int kMax = std::numeric_limits<int>::max();
  constexpr int kMin = std::numeric_limits<int>::min();
  for (const double cpus : {-1.0, kNan, 1e300}) {
    EXPECT_THAT(Refusal([&] { runtime.CallWith<Same>({.cpus = cpus}, 1); }), HasSubstr("cpu"));
    EXPECT_THAT(Refusal([&] { runtime.CreateActor<Counter>({.gpus = cpus}); }), HasSubstr("gpu"));
    EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({{.cpus = cpus}}); }), HasSubstr("cpu"));
  }
  for (const int number : {kMax, kMin}) {
    EXPECT_THAT(Refusal([&] { runtime.CallWith<Same>({.retries = number}, 1); }),
                HasSubstr("retries"));
    EXPECT_THAT(Refusal([&] { runtime.CallWith<Same>({.priority = number}, 1); }),
                HasSubstr("priority"));
    EXPECT_THAT(Refusal([&] { runtime.CallWith<Same>({.bundle = number}, 1); }),
                HasSubstr("bundle"));
    EXPECT_THAT(Refusal([&] { runtime.CreateActor<Counter>({.restarts = number}); }),
                HasSubstr("restarts"));
    EXPECT_THAT(Refusal([&] { runtime.CreateActor<Counter>({.concurrency = number}); }),
                HasSubstr("concurrency"));
    EXPECT_THAT(Refusal([&] { runtime.CreateActor<Counter>({.checkpoint_every = number}); }),
                HasSubstr("checkpoint_every"));
  }
  EXPECT_THAT(Refusal([&] { runtime.CallWith<Same>({.time_limit = -1ns}, 1); }),
              HasSubstr("time limit"));
  EXPECT_THAT(Refusal([&] { runtime.Allocate<float>({-1}); }), HasSubstr("-1"));
  EXPECT_THAT(Refusal([&] { runtime.CreatePlacementGroup({}); }), HasSubstr("0 bundles"));
  EXPECT_EQ(runtime.Get(runtime.CallWith<Same>({.cpus = 0}, 7), 20s), 7);
}

// Of a runtime with these options a call must be done, or else they must be refused.
void ExpectDoneOrRefused(const std::string& what, RuntimeOptions options) {
  SCOPED_TRACE(what);
  try {
    Runtime runtime(options);
    std::vector<ObjectRef<int>> all;
    for (int i = 0; i < 100; ++i) all.push_back(runtime.Call<Same>(i));
    EXPECT_EQ(runtime.Get(all, 20s).back(), 99);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kDeadlineExceeded) << error.what();
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    fmt::print("{}: {}\n", what, error.what());
  }
}

class OptionsTest : public testing::TestWithParam<Isolation> {
 protected:
  RuntimeOptions Options() const { return {.workers = 1, .isolation = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Isolations, OptionsTest, BothIsolations(), IsolationName);

TEST_P(OptionsTest, AtTheEndsOfTheirRangesTheyWorkOrAreRefused) {
  const auto with = [&](const std::string& what, const std::function<void(RuntimeOptions&)>& set) {
    RuntimeOptions options = Options();
    set(options);
    ExpectDoneOrRefused(what, options);
  };
  with("no calls may wait", [](auto& options) { options.waiting_calls_max = 0; });
  with("one may", [](auto& options) { options.waiting_calls_max = 1; });
  with("no bytes may wait", [](auto& options) { options.waiting_bytes_max = 0; });
  with("one may", [](auto& options) { options.waiting_bytes_max = 1; });
  with("any may", [](auto& options) { options.waiting_bytes_max = SIZE_MAX; });
  with("any calls may wait", [](auto& options) { options.waiting_calls_max = SIZE_MAX; });
  with("a store of a byte", [](auto& options) { options.store_bytes_max = 1; });
  with("a store beyond all", [](auto& options) { options.store_bytes_max = UINT64_MAX; });
  with("half of that", [](auto& options) { options.store_bytes_max = UINT64_MAX / 2; });
  with("a disk of a byte", [](auto& options) { options.spill_bytes_max = 1; });
  with("a disk beyond all", [](auto& options) { options.spill_bytes_max = UINT64_MAX; });
  with("no folder for the disk", [](auto& options) { options.spill_folder = "/proc/none"; });
  with("no folder for control", [](auto& options) { options.control_folder = "/proc/none"; });
  with("the last job", [](auto& options) { options.job = UINT64_MAX; });
  with("fewer than no workers", [](auto& options) { options.workers = -1; });
  with("too many workers", [](auto& options) { options.workers = 4097; });
  with("fewer than none ahead", [](auto& options) { options.workers_ahead = -1; });
  with("too many ahead", [](auto& options) { options.workers_ahead = 1'000'000; });
  with("no such isolation", [](auto& options) { options.isolation = static_cast<Isolation>(7); });
  with("no such program", [](auto& options) { options.worker_program.arguments = {"/no/such"}; });
  with("no such folder", [](auto& options) { options.worker_program.folder = "/no/such"; });
  with("nameless variable", [](auto& options) { options.worker_program.variables = {{"", "x"}}; });
}

TEST_P(OptionsTest, ManyRuntimesOneAfterTheOther) {
  const int before = static_cast<int>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  std::optional<ObjectRef<int>> last;
  const int runtimes = *MENGER_SANITIZER == '\0' ? 200 : 40;  // Each takes so much longer there.
  for (int i = 0; i < runtimes; ++i) {
    Runtime runtime(Options());
    ObjectRef<int> number = runtime.Call<Same>(i);
    if (i % 10 == 0) {
      EXPECT_EQ(runtime.Get(number, 20s), i);
    }
    last = number;
  }
  last.reset();
  const int after = static_cast<int>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  EXPECT_EQ(after, before);
}

TEST(OddOrdersOfTwoTest, TwoRuntimesOfDifferentIsolationSideBySide) {
  std::optional<Runtime> threads(RuntimeOptions{.workers = 1, .isolation = Isolation::kThread});
  std::optional<Runtime> processes(RuntimeOptions{.workers = 1});
  const auto first = threads->CreateActor<Counter>({.name = "counter"});
  const auto second = processes->CreateActor<Counter>({.name = "counter"});
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(threads->Get(first.Call<&Counter::Add>(1)), i);
    const ObjectRef<int> sum = second.Call<&Counter::Add>(2);
    EXPECT_EQ(threads->Get(threads->Call<Same>(processes->Get(sum))), 2 * i);
  }
  threads.reset();
  EXPECT_EQ(processes->Get(second.Call<&Counter::Add>(2)), 202);
}

// Destroyed after main has returned, when all runtimes have ended.
ActorRef<Counter> kept_actor;
ObjectRef<int> kept_number;
std::optional<Pinned<std::vector<int>>> kept_pin;

int Keep(const ActorRef<Counter>& actor, const ObjectRef<int>& number) {
  kept_actor = actor;
  kept_number = number;
  return 1;
}

TEST_P(OddOrdersTest, WhatIsKeptUntilTheProgramHasEndedDoesNoHarm) {
  const auto actor = runtime.CreateActor<Counter>({});
  const ObjectRef<int> number = runtime.Put(1);
  Keep(actor, number);
  kept_pin.emplace(runtime.Pin(runtime.Put(std::vector<int>(100'000, 3))));
  EXPECT_EQ(runtime.Get(runtime.Call<Keep>(actor, number)), 1);
}

}  // namespace
}  // namespace menger
