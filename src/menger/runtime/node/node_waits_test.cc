#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "menger/runtime/testing/node_world.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Call = World::Call;
using Running = World::Running;

constexpr std::int64_t kMillisecond = 1'000'000;

// A world in which calls wait, and whose workers may take their time to start.
class WaitingWorld : public World {
 public:
  using World::World;

  void StartWorker() override {
    if (starts_wait) {
      ++starting;
    } else {
      World::StartWorker();
    }
  }
  void Warn(std::string_view text) override { warnings.emplace_back(text); }

  // Its call waits for the results of these.
  void Block(const Running& running, const std::vector<Call>& calls, bool timed = false) {
    std::vector<Object*> objects;
    for (const Call& call : calls) objects.push_back(machine.objects().Find(call.result()));
    machine.Block(*running.worker, objects, timed);
    machine.Run();
  }
  Call CallFrom(const Running& running, const std::vector<ObjectId>& arguments = {}) {
    return Submit({}, arguments,
                  {.parent = running.task, .process = running.worker->index, .run = running.run});
  }
  // All calls that have been handed out and not begun yet.
  std::vector<Running> BeginAll() {
    std::vector<Running> all;
    for (Running running = Begin(); running.lease != 0; running = Begin()) all.push_back(running);
    return all;
  }
  void PassTime(std::int64_t nanoseconds) {
    now += nanoseconds;
    machine.SetTime(now);
    machine.Run();
  }

  bool starts_wait = false;
  int starting = 0;
  std::vector<std::string> warnings;
  std::int64_t now = 0;
};

TEST(NodeWaitsTest, WhatAWaitingCallNeedsGoesFirst) {
  WaitingWorld world({.resources = Resources(1, 0), .workers = 1});
  const Call outer = world.Submit();
  const Running running = world.Begin();
  const Call before = world.Submit();
  const Call other = world.Submit();
  const Call argument = world.CallFrom(running);
  const Call nested = world.CallFrom(running, {argument.result()});
  world.Block(running, {nested});
  EXPECT_EQ(world.Begin().task, argument.task);
  world.Finish({world.workers.back(), world.workers.back()->outstanding.front()->lease});
  EXPECT_EQ(world.Begin().task, nested.task);
  world.Finish({world.workers.back(), world.workers.back()->outstanding.front()->lease});
  EXPECT_EQ(world.State(nested.result()), "value");
  EXPECT_EQ(world.State(before.result()) + world.State(other.result()), "");
  EXPECT_EQ(world.State(outer.result()), "");
}

TEST(NodeWaitsTest, TheLatestWaitersNeedsGoFirst) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  world.Submit();
  world.Submit();
  const std::vector<Running> outer = world.BeginAll();
  ASSERT_EQ(outer.size(), 2u);
  const Call of_first = world.CallFrom(outer[0]);
  const Call of_second = world.CallFrom(outer[1]);
  world.starts_wait = true;
  world.Block(outer[0], {of_first});
  world.Block(outer[1], {of_second});
  EXPECT_GT(world.starting, 0);
  world.starts_wait = false;
  world.World::StartWorker();
  world.machine.Run();
  EXPECT_EQ(world.Begin().task, of_second.task);
}

// 300 calls, each of which waits for one of its own: a few workers do them all.
TEST(NodeWaitsTest, AFlatFanOutNeedsFewWorkers) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  std::vector<Call> calls;
  for (int i = 0; i < 300; ++i) calls.push_back(world.Submit());
  std::map<TaskId, std::pair<Running, Call>> waiting;
  std::size_t done = 0;
  for (int round = 0; round < 10'000 && done < calls.size(); ++round) {
    const Running running = world.Begin();
    if (running.lease == 0) break;
    const auto nested = std::find_if(waiting.begin(), waiting.end(), [&](const auto& wait) {
      return wait.second.second.task == running.task;
    });
    if (nested == waiting.end()) {
      const Call call = world.CallFrom(running);
      waiting.emplace(call.task, std::pair(running, call));
      world.Block(running, {call});
      continue;
    }
    const Running parent = nested->second.first;
    waiting.erase(nested);
    world.Finish(running);
    world.machine.Unblock(*parent.worker);
    world.Finish(parent);
    ++done;
  }
  EXPECT_EQ(done, calls.size());
  EXPECT_LE(world.workers.size(), 8u);
  // Those that stood in for others end when there has been no need of them for a while.
  for (int i = 0; i < 40; ++i) world.PassTime(100 * kMillisecond);
  EXPECT_EQ(world.workers.size(), 2u);
}

TEST(NodeWaitsTest, WhenManyWaitOthersAreLetInAtGrowingIntervals) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  for (int i = 0; i < 20; ++i) world.Submit();
  // Nobody knows who will make it.
  Object& signal = world.machine.objects().FindOrMake(ResultOf(RootTask(9), 0));
  world.machine.objects().AddReferrer(kDriver, signal);
  std::size_t begun = 0;
  const auto block_all = [&] {
    for (std::vector<Running> all = world.BeginAll(); !all.empty(); all = world.BeginAll()) {
      for (const Running& running : all) {
        ++begun;
        Object* const objects[] = {&signal};
        world.machine.Block(*running.worker, objects);
        world.machine.Run();
      }
    }
  };
  block_all();
  EXPECT_GE(begun, 4u);
  EXPECT_LE(begun, 6u);
  // After 10 ms one, then 20 ms later, 40, ... 640, and one a second.
  std::vector<std::int64_t> at;
  for (int i = 0; i < 4000 && begun < 14; ++i) {
    world.PassTime(kMillisecond);
    const std::size_t before = begun;
    block_all();
    ASSERT_LE(begun, before + 1);
    if (begun > before) at.push_back(i + 1);
  }
  ASSERT_GE(at.size(), 4u);
  EXPECT_NEAR(static_cast<double>(at[0]), 10, 1);
  for (std::size_t i = 1; i < at.size() && i < 6; ++i) {
    EXPECT_NEAR(static_cast<double>(at[i] - at[i - 1]), 10.0 * (1 << i), 2);
  }
  EXPECT_TRUE(world.machine.next_deadline().has_value());
}

// The driver waits for the last of many calls that wait; before it began to, or after.
TEST(NodeWaitsTest, WhenManyWaitWhatTheDriverWaitsForIsLetIn) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  std::vector<Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(world.Submit());
  const Call argument = world.Submit();
  const Call dependent = world.Submit({argument.result()});
  const auto wait_for = [&](const Call& call) {
    Object* const objects[] = {world.machine.objects().Find(call.result())};
    return world.machine.BeginDriverWait(objects);
  };
  const std::uint64_t wait = wait_for(dependent);
  ASSERT_NE(wait, 0u);
  Object& signal = world.machine.objects().FindOrMake(ResultOf(RootTask(9), 0));
  world.machine.objects().AddReferrer(kDriver, signal);
  Object* const objects[] = {&signal};
  Running running = world.Begin();
  for (; running.lease != 0 && running.task != argument.task; running = world.Begin()) {
    world.machine.Block(*running.worker, objects);
    world.machine.Run();
  }
  ASSERT_EQ(running.task, argument.task);
  world.Finish(running);
  running = world.Begin();
  ASSERT_EQ(running.task, dependent.task);
  world.Finish(running);
  world.machine.EndDriverWait(wait);
  world.machine.Run();
  EXPECT_EQ(world.Begin().lease, 0u);

  const std::uint64_t later = wait_for(calls.back());
  world.machine.Run();
  running = world.Begin();
  EXPECT_EQ(running.task, calls.back().task);
  world.machine.EndDriverWait(later);
}

// One thread that waits for many lets in none, and so do those beyond the bound.
TEST(NodeWaitsTest, TheDriverLetsInFewAtATime) {
  WaitingWorld world;
  std::vector<Object*> objects;
  for (int i = 0; i < 10; ++i) {
    objects.push_back(world.machine.objects().Find(world.Submit().result()));
  }
  EXPECT_EQ(world.machine.BeginDriverWait(objects), 0u);
  std::vector<std::uint64_t> waits;
  for (Object*& object : objects) waits.push_back(world.machine.BeginDriverWait({&object, 1}));
  EXPECT_EQ(std::ranges::count(waits, 0u), 6);
  for (const std::uint64_t wait : waits) world.machine.EndDriverWait(wait);
  EXPECT_NE(world.machine.BeginDriverWait({&objects[9], 1}), 0u);
}

TEST(NodeWaitsTest, BeyondTheBoundOfWorkersACallFailsAndNamesTheWaits) {
  WaitingWorld world({.resources = Resources(1, 0), .workers = 1, .pool_max = 5});
  Call deepest = world.Submit();
  for (int depth = 0; depth < 5; ++depth) {
    const Running running = world.Begin();
    ASSERT_NE(running.lease, 0u) << depth;
    deepest = world.CallFrom(running);
    world.Block(running, {deepest});
  }
  EXPECT_EQ(world.workers.size(), 5u);
  ASSERT_EQ(world.State(deepest.result()), "exception");
  const Object& failed = *world.machine.objects().Find(deepest.result());
  const TaskFailure failure = DecodeFailure(failed.value.payload);
  EXPECT_THAT(failure.text, HasSubstr("all 5 workers wait, and there may be no more"));
  EXPECT_THAT(failure.text, HasSubstr("call waits for call waits for call"));
}

// While an actor's call still runs, what it gives may let the others go on.
TEST(NodeWaitsTest, BeyondTheBoundOfWorkersNoneFailsWhileSomeCallGoesOn) {
  WaitingWorld world({.resources = Resources(1, 0), .workers = 1, .pool_max = 1});
  const Call actor = world.Construct({});
  world.FinishAll();
  world.Submit();
  const Running outer = world.Begin();
  ASSERT_NE(outer.lease, 0u);
  const Call method = world.Submit(
      {.kind = CallKind::kMethod, .actor = actor.actor, .home = actor.result(), .retries = 0}, {},
      {});
  const Running busy = world.Begin();
  ASSERT_EQ(busy.task, method.task);
  const Call nested = world.CallFrom(outer);
  world.Block(outer, {nested});
  EXPECT_EQ(world.State(nested.result()), "");
  world.Finish(busy);
  world.machine.Run();
  EXPECT_EQ(world.State(nested.result()), "exception");
}

TEST(NodeWaitsTest, ACircleOfWaitsIsToldOnce) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  const Call first = world.Submit();
  const Call second = world.Submit();
  const std::vector<Running> running = world.BeginAll();
  ASSERT_EQ(running.size(), 2u);
  world.Block(running[0], {running[0].task == first.task ? second : first});
  EXPECT_THAT(world.warnings, ElementsAre());
  world.Block(running[1], {running[1].task == first.task ? second : first}, /*timed=*/true);
  world.PassTime(1000 * kMillisecond);
  EXPECT_THAT(world.warnings, ElementsAre());  // It will wait no longer some time.
  world.machine.Unblock(*running[1].worker);
  world.Block(running[1], {running[1].task == first.task ? second : first});
  for (int i = 0; i < 5; ++i) world.PassTime(1000 * kMillisecond);
  EXPECT_THAT(world.warnings, ElementsAre(HasSubstr("call waits for call waits for call")));
}

TEST(NodeWaitsTest, WhatActorsKeepFromOthersIsToldOnce) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  const Call first = world.Construct({.scheduling = "cpu=2"});
  world.FinishAll();
  world.Submit();
  const Call second = world.Construct({});
  for (int i = 0; i < 5; ++i) world.PassTime(1000 * kMillisecond);
  EXPECT_THAT(world.warnings, ElementsAre());
  for (int i = 0; i < 20; ++i) world.PassTime(1000 * kMillisecond);
  EXPECT_THAT(world.warnings, ElementsAre(AllOf(HasSubstr("for cpu=1"), HasSubstr("actors have"))));
  world.Forget(first.result());
  world.FinishAll();
  EXPECT_EQ(world.State(second.result()), "value");
}

// However long they take.
TEST(NodeWaitsTest, WhatCallsKeepFromOthersIsNotTold) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  world.Construct({.scheduling = "cpu=1"});
  world.FinishAll();
  world.Submit({}, {}, {.scheduling = "cpu=0.5"});
  ASSERT_NE(world.Begin().lease, 0u);
  world.Construct({.scheduling = "cpu=1"});
  for (int i = 0; i < 20; ++i) world.PassTime(1000 * kMillisecond);
  EXPECT_THAT(world.warnings, ElementsAre());
}

TEST(NodeWaitsTest, ActorsThatNeedWorkersGetThemSideBySide) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 0});
  world.starts_wait = true;
  for (int i = 0; i < 40; ++i) world.Construct({});
  EXPECT_EQ(world.starting, 40);
  world.PassTime(kMillisecond);
  EXPECT_EQ(world.starting, 40);
}

// However many actors there are to come, each of which takes a worker for itself.
TEST(NodeWaitsTest, ACallGetsAWorkerBeforeTheLastOfManyActors) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  world.starts_wait = true;
  for (int i = 0; i < 50; ++i) world.Construct({});
  const Call call = world.Submit();
  const auto had_turn = [&] {
    const auto begun = world.BeginAll();
    return std::ranges::any_of(begun, [&](const auto& one) { return one.task == call.task; });
  };
  int started = 0;
  for (; started < 40 && !had_turn(); ++started) {
    world.PassTime(2 * kMillisecond);
    world.World::StartWorker();
    world.machine.Run();
  }
  EXPECT_LT(started, 10);
}

TEST(NodeWaitsTest, AWorkerThatCannotStartIsTheErrorOfWhoNeedsIt) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 0});
  world.starts_wait = true;
  const Call actor = world.Construct({});
  const Call method = world.Method(actor, {});
  world.machine.StartFailed("there are no descriptors left");
  world.machine.Run();
  ASSERT_EQ(world.State(method.result()), "actor died");
  const Object& failed = *world.machine.objects().Find(method.result());
  EXPECT_THAT(DecodeFailure(failed.value.payload).text, HasSubstr("there are no descriptors left"));
  // With a worker others go on.
  world.starts_wait = false;
  const Call next = world.Construct({});
  EXPECT_EQ(world.workers.size(), 1u);
  world.FinishAll();
  EXPECT_EQ(world.State(next.result()), "value");
}

// Of two classes with long queues on one CPU each has its turn, and an actor too.
TEST(NodeWaitsTest, ClassesThatWaitForTheSameDoNotHoldBackEachOther) {
  World world({.resources = Resources(1, 0), .workers = 1});
  world.machine.StartWorkers();
  std::vector<Call> calls = {world.Submit(), world.Submit()};
  for (const char* const need : {"cpu=0.5", "cpu=0.25"}) {
    world.machine.SetTime(static_cast<std::int64_t>(world.calls) * 1'000'000);
    calls.push_back(world.Submit({}, {}, {.scheduling = need}));
  }
  const Running running = world.Begin();
  world.machine.SetTime(40'000'000);
  world.machine.Run();
  world.Finish(running);
  world.FinishAll();
  for (const Call& call : calls) EXPECT_EQ(world.State(call.result()), "value");
}

TEST(NodeWaitsTest, ClassesAndActorsTakeTurns) {
  WaitingWorld world({.resources = Resources(1, 1), .workers = 1});
  for (int i = 0; i < 200; ++i) world.Submit();
  std::set<TaskId> with_gpu;
  for (int i = 0; i < 3; ++i) {
    with_gpu.insert(world.Submit({}, {}, {.scheduling = "cpu=1 gpu=1"}).task);
  }
  const Call actor = world.Construct({.scheduling = "cpu=1"});
  std::size_t done = 0;
  bool lived = false;
  for (int i = 0; i < 100 && !(with_gpu.empty() && lived); ++i) {
    const Running running = world.Begin();
    ASSERT_NE(running.lease, 0u);
    world.PassTime(kMillisecond);
    with_gpu.erase(running.task);
    ++done;
    std::vector<TaskResult> results(1);
    results[0].value = World::Small();
    world.machine.Finished(*running.worker, running.lease, results, kMillisecond);
    world.machine.Run();
    // It keeps its CPU for as long as it lives.
    if (!lived && world.State(actor.result()) == "value") world.Forget(actor.result());
    lived = lived || world.State(actor.result()) != "";
  }
  EXPECT_TRUE(with_gpu.empty());
  EXPECT_LT(done, 50u);
}

TEST(NodeWaitsTest, WhatLiesBehindALongCallIsTakenBackForOthers) {
  WaitingWorld world({.resources = Resources(2, 0), .workers = 2});
  // Short calls, as far as anybody knows.
  for (int i = 0; i < 20; ++i) world.Submit();
  world.FinishAll();
  for (int i = 0; i < 100; ++i) world.Submit();
  const Running slow = world.Begin(*world.workers[0]);
  std::size_t others = 0;
  for (int i = 0; i < 200 && others < 99; ++i) {
    if (world.queues[world.workers[1]->index].empty()) world.PassTime(kMillisecond);
    if (world.queues[world.workers[1]->index].empty()) continue;
    world.Finish(world.Begin(*world.workers[1]));
    ++others;
  }
  EXPECT_EQ(others, 99u);
  world.Finish(slow);
}

TEST(NodeWaitsTest, CallsAreTimedByTheirNames) {
  WaitingWorld world;
  const FunctionId foreign{.module = 1, .offset = 2};
  Scheduler& scheduler = const_cast<Scheduler&>(world.machine.scheduler());
  FunctionTimes& slow = scheduler.TimesOf(foreign, 7, "slow");
  slow.mean_nanoseconds = 4e9;
  EXPECT_EQ(&scheduler.TimesOf(foreign, 7, "slow"), &slow);
  EXPECT_EQ(scheduler.TimesOf(foreign, 8, "slow").mean_nanoseconds, FunctionTimes::kUnknown);
  EXPECT_EQ(scheduler.TimesOf(foreign, 7, "fast").mean_nanoseconds, FunctionTimes::kUnknown);
  // Names that are made up call by call share a record in the end.
  for (int i = 0; i < 100'000; ++i) scheduler.TimesOf(foreign, 7, std::to_string(i));
  EXPECT_LT(scheduler.times().size(), 20'000u);
}

}  // namespace
}  // namespace menger
