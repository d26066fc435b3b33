#include "menger/runtime/node/node_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "menger/runtime/testing/node_world.h"

namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;

TEST(NodeMachineTest, FreesWhatNobodyNeeds) {
  World world;
  const Call first = world.Submit();
  const Call second = world.Submit({first.result(), first.result()});
  world.Forget(first.result());
  world.FinishAll();
  EXPECT_EQ(world.State(second.result()), "value");
  EXPECT_EQ(world.State(first.result()), "forgotten");
  world.Forget(second.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AnActorThatOnlyItsLastCallHoldsMayDieWithIt) {
  World world;
  const Call actor = world.Construct({});
  world.FinishAll();
  const Call call = world.Method(actor, {});
  world.Forget(actor.result());
  const Running running = world.Begin();
  world.Die(*running.worker);
  EXPECT_EQ(world.State(call.result()), "actor died");
  EXPECT_EQ(world.released_actors, 1);
  EXPECT_TRUE(world.ended.empty());
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AConstructionThatIsLostIsARestart) {
  World world;
  const Call actor = world.Construct({.restarts = 1});
  world.Die(*world.Begin().worker);
  EXPECT_EQ(world.State(actor.result()), "");
  world.FinishAll();
  EXPECT_EQ(world.State(actor.result()), "value");
  const Call call = world.Method(actor, {});
  world.Die(*world.machine.FindActor(actor.actor)->worker);
  EXPECT_EQ(world.State(call.result()), "actor died");
  world.Forget(actor.result());
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AKillBeforeThereIsAWorkerCostsARestart) {
  World world({.resources = Resources(1, 0), .workers = 1});
  const Call blocker = world.Submit();
  const Call waits = world.Construct({.scheduling = "cpu=1", .restarts = 1});
  Actor& pending = *world.machine.FindActor(waits.actor);
  world.machine.KillActor(pending, /*may_restart=*/true);
  EXPECT_EQ(world.State(waits.result()), "");
  world.machine.KillActor(pending, /*may_restart=*/true);
  EXPECT_EQ(world.State(waits.result()), "actor died");
  world.FinishAll();
  for (const Call& call : {blocker, waits}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AConstructionThatNoWorkerHadYetIsOfferedOnceWhereItsWorkerDies) {
  World world;
  world.machine.StartWorkers();
  world.room = 0;
  const Call actor = world.Construct({.restarts = 1});
  world.Die(*world.machine.FindActor(actor.actor)->worker);
  world.room = 1000;
  world.machine.Run();
  world.Finish(world.Begin());
  EXPECT_EQ(world.State(actor.result()), "value");
  EXPECT_EQ(world.Begin().lease, 0);
  world.Forget(actor.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, ADetachedActorLivesUntilItIsKilled) {
  World world;
  world.machine.StartWorkers();
  const Call actor = world.Submit({.kind = CallKind::kConstruct, .retries = 0, .detached = true},
                                  {}, {.scheduling = "cpu=0"});
  world.Finish(world.Begin());
  world.Forget(actor.result());
  EXPECT_EQ(world.machine.FindActor(actor.actor)->state, Actor::State::kAlive);
  world.machine.KillActor(*world.machine.FindActor(actor.actor), /*may_restart=*/false);
  world.machine.Run();
  EXPECT_EQ(world.machine.FindActor(actor.actor), nullptr);
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AConstructionThatIsNotBegunIsGivenToAnotherWorker) {
  World world;
  world.machine.StartWorkers();
  const Call actor = world.Construct({});
  const Call killed = world.Construct({});
  world.machine.WorkerLeaves(*world.machine.FindActor(actor.actor)->worker);
  world.machine.KillActor(*world.machine.FindActor(killed.actor), /*may_restart=*/false);
  for (int i = 0; i < 2; ++i) world.machine.Run();  // The first asks for a worker.
  EXPECT_EQ(world.State(actor.result()), "");
  EXPECT_EQ(world.State(killed.result()), "actor died");
  world.FinishAll();
  EXPECT_EQ(world.State(actor.result()), "value");
  EXPECT_EQ(world.machine.counts().actors_restarted, 0);
  for (const Call& call : {actor, killed}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, AnActorThatNobodyWantsIsNotMadeAgainForItsConstruction) {
  World world;
  const Call unwanted = world.Construct({.restarts = 65535});
  world.Forget(unwanted.result());
  world.Die(*world.Begin().worker);
  EXPECT_EQ(world.released_actors, 1);
  world.ExpectNothingLeft();
  const Call called = world.Construct({.restarts = 65535});
  const Call call = world.Method(called, {});
  world.Forget(called.result());
  world.Die(*world.Begin().worker);
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, ACallWithAFailedAndALostArgumentFails) {
  World world;
  const Call bad = world.Submit();
  const Running running = world.Begin();
  world.machine.Failed(*running.worker, running.lease, {.text = "no"}, 1000);
  // Kept so that its caller could be made again, and freed.
  const Call lost = world.Submit();
  world.Finish(world.Begin(), {World::Large(0)});
  const Call user = world.Submit({lost.result()});
  world.Finish(world.Begin(), {World::Large(100)});
  world.Forget(lost.result());
  EXPECT_EQ(world.State(lost.result()), "freed");
  const Call both = world.Submit({bad.result(), lost.result()});
  EXPECT_EQ(world.State(both.result()), "exception");
  world.FinishAll();
  for (const Call& call : {bad, user, both}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, ResultsThatAreMadeAgainKeepTheirPlaces) {
  World world;
  const Call call = world.Submit({}, {}, {.results = 2});
  world.Finish(world.Begin(), {World::Large(0), World::Large(100)});
  world.Forget(call.result(0));
  world.machine.Lose(*world.machine.objects().Find(call.result(1)));
  world.machine.Run();
  world.Finish(world.Begin(), {World::Large(200), World::Large(300)});
  EXPECT_EQ(world.machine.objects().Find(call.result(1))->value.extent.offset, 300);
  EXPECT_EQ(world.freed, (std::vector<std::uint64_t>{0, 100, 200}));
  world.Forget(call.result(1));
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, ARunThatMakesALostResultAgainMakesCallsOfItsOwn) {
  World world;
  const Call actor = world.Construct({});
  world.FinishAll();
  const Call parent = world.Submit();
  const Running running = world.Begin();
  const World::CallWishes wishes{
      .parent = parent.task, .process = running.worker->index, .run = running.run, .number = 1};
  const Call method = world.Method(actor, wishes);
  world.Finish(world.Begin(*world.machine.FindActor(actor.actor)->worker));
  world.machine.objects().DropReferrer(running.worker->index,
                                       *world.machine.objects().Find(method.result()));
  // Nobody keeps what the call has dropped.
  EXPECT_EQ(world.State(method.result()), "forgotten");
  world.Finish(running, {World::Large(0)});
  // Now its result is lost.
  world.machine.Lose(*world.machine.objects().Find(parent.result()));
  world.machine.Run();
  const Running again = world.Begin();
  EXPECT_EQ(again.task, parent.task);
  EXPECT_NE(again.run, running.run);
  const Call other = world.Method(
      actor,
      {.parent = parent.task, .process = again.worker->index, .run = again.run, .number = 1});
  EXPECT_NE(other.task, method.task);
  world.Finish(world.Begin(*world.machine.FindActor(actor.actor)->worker));
  EXPECT_EQ(world.State(other.result()), "value");
  world.Finish(again, {World::Large(100)});
  world.Die(*again.worker);
  world.Forget(actor.result());
  world.Forget(parent.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, LineageDoesNotKeepActorsAlive) {
  World world;
  const Call actor = world.Construct({});
  world.FinishAll();
  const Call user = world.Submit({}, {}, {.contained = {actor.result()}});
  world.Finish(world.Begin(), {World::Large(0)});
  world.Forget(actor.result());
  EXPECT_EQ(world.ended.size(), 1);
  EXPECT_EQ(world.released_actors, 1);
  EXPECT_EQ(world.State(actor.result()), "freed");
  world.machine.Lose(*world.machine.objects().Find(user.result()));
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(user.result()), "value");
  world.Forget(user.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, LineageIsBounded) {
  World world({.resources = Resources(2, 0), .workers = 2, .lineage_bytes_max = 10'000});
  ObjectId last;
  for (int i = 0; i < 1000; ++i) {
    const Call call = i > 0 ? world.Submit({last}) : world.Submit();
    world.Finish(world.Begin(), {World::Large(static_cast<std::uint64_t>(i))});
    if (i > 0) world.Forget(last);
    last = call.result();
    ASSERT_LE(world.machine.lineage_bytes(), 10'000);
    ASSERT_LT(world.machine.objects().size(), 30);
  }
  world.machine.Lose(*world.machine.objects().Find(last));
  world.machine.Run();
  EXPECT_EQ(world.State(last), "object lost");
  world.Forget(last);
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, TheLossOfAnActorsObjectIsNotTheLossOfTheActor) {
  World world;
  const Call actor = world.Construct({.restarts = 2});
  world.Finish(world.Begin(), {World::Large(0)});
  world.Die(*world.machine.FindActor(actor.actor)->worker);
  world.machine.Lose(*world.machine.objects().Find(actor.result()));
  world.FinishAll();
  const Call call = world.Method(actor, {});
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
  world.Forget(actor.result());
  EXPECT_EQ(world.released_actors, 1);
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, WatchesOfADeadProcessEnd) {
  World world;
  world.Submit();
  Worker& worker = *world.Begin().worker;
  Object& never = world.machine.objects().FindOrMake(ResultOf(ChildTask(RootTask(7), 1), 0));
  EXPECT_FALSE(world.machine.WatchObject({worker.index, 1}, never));
  EXPECT_EQ(world.machine.objects().size(), 2);
  world.Die(worker);
  EXPECT_EQ(world.machine.objects().size(), 1);
}

TEST(NodeMachineTest, WhatIsPutAgainIsThereAgain) {
  World world;
  const ObjectId id = ResultOf(ChildTask(RootTask(1), 1000), 0);
  world.machine.Put(kDriver, id, World::Large(1), {});
  const Call user = world.Submit({id});
  world.Finish(world.Begin(), {World::Large(0)});
  world.Forget(id);
  EXPECT_EQ(world.State(id), "freed");
  world.machine.Put(kDriver, id, World::Small(), {});
  EXPECT_EQ(world.State(id), "value");
  world.Forget(id);
  world.Forget(user.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, TheValuesOfACancelledCallAreFreed) {
  World world;
  const Call call = world.Submit();
  const Running running = world.Begin();
  world.machine.Cancel(*world.machine.objects().Find(call.result()), false);
  EXPECT_EQ(world.State(call.result()), "cancelled");
  world.Finish(running, {World::Large(5)});
  EXPECT_EQ(world.freed, std::vector<std::uint64_t>{5});
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodeMachineTest, CallsThatHadNoRoomGoOnWhenThoseBeforeAreCancelled) {
  World world;
  const Call actor = world.Construct({});
  world.FinishAll();
  world.room = 1;
  const Call first = world.Method(actor, {});
  const Call second = world.Method(actor, {});
  world.machine.Cancel(*world.machine.objects().Find(first.result()), false);
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(second.result()), "value");
}

TEST(NodeMachineTest, CallsThatAreTakenBackAreNotLostWhereThereIsNoRoom) {
  World world({.resources = Resources(1, 0), .workers = 1, .threads = true});
  const Call a = world.Construct({});
  const Call b = world.Construct({});
  world.FinishAll();
  const Running running = [&] {
    world.Method(a, {});
    return world.Begin();
  }();
  const Call waits = world.Method(b, {});
  world.StartWorker();  // It could do that; but for the moment no queue has room.
  world.room = 0;
  world.machine.SetTime(10'000'000);
  world.machine.Run();
  world.room = 10;
  world.machine.Run();
  world.Finish(world.Begin());
  EXPECT_EQ(world.State(waits.result()), "value");
  world.Finish(running);
}

TEST(NodeMachineTest, AnActorThatWaitsLendsItsResources) {
  World world({.resources = Resources(1, 0), .workers = 1});
  const Call actor = world.Construct({.scheduling = "cpu=1 gpu=0"});
  world.FinishAll();
  world.Method(actor, {});
  Worker& home = *world.machine.FindActor(actor.actor)->worker;
  world.Begin(home);
  const Call call = world.Submit();
  EXPECT_EQ(world.Begin().lease, 0);
  world.machine.Block(home, {});
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
  world.machine.Unblock(home);
  world.Die(home);
  world.machine.Run();
  const Call after = world.Submit();
  world.FinishAll();
  EXPECT_EQ(world.State(after.result()), "value");
  // A worker that keeps its class keeps its CPU; all of it is there for others.
  world.Construct({.scheduling = "cpu=1"});
  EXPECT_NE(world.Begin().lease, 0);
}

TEST(NodeMachineTest, WhatAWorkerSaysThatIsGoneIsIgnored) {
  World world;
  const Call parent = world.Submit();
  const Running running = world.Begin();
  world.machine.WorkerDied(*running.worker, {.kind = FailureKind::kWorkerDied});
  const std::size_t objects = world.machine.objects().size();
  const World::CallWishes wishes{
      .parent = parent.task, .process = running.worker->index, .number = 1};
  std::erase(world.workers, running.worker);
  world.Submit({}, {}, wishes);
  EXPECT_EQ(world.machine.objects().size(), objects);
}

std::vector<NodeEvent> TaskEvents(const World& world) {
  std::vector<NodeEvent> events;
  world.machine.events().tasks().Copy(0, 1000, events);
  return events;
}

TEST(NodeMachineTest, NotesRunsAsTheirWorkersSayAsFarAsThatCanBe) {
  World world;
  world.machine.SetTime(1000);
  for (int i = 0; i < 4; ++i) world.Submit();
  const auto end = [&](double nanoseconds, std::int64_t at) {
    const Running running = world.Begin(*world.workers[0]);
    std::vector<TaskResult> results(1);
    results[0].value = World::Small();
    world.machine.Finished(*running.worker, running.lease, results, nanoseconds, at);
    world.machine.Run();
  };
  world.machine.SetTime(5000);
  end(500, 3000);
  end(1e30, 4000);  // Not before the last one had ended.
  world.machine.SetTime(9000);
  for (int i = 0; i < 8; ++i) world.Submit();
  end(std::numeric_limits<double>::quiet_NaN(), 1);  // Before the last one: now.
  const std::vector<NodeEvent> events = TaskEvents(world);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].time, 3000);
  EXPECT_EQ(events[0].duration, 500);
  EXPECT_EQ(events[1].time, 4000);
  EXPECT_EQ(events[1].duration, 1000);
  EXPECT_EQ(events[2].time, 9000);
  EXPECT_EQ(events[2].duration, 0);
  EXPECT_EQ(world.machine.events().names()[events[0].name], "call");
}

TEST(NodeMachineTest, NotesWhatIsLostAndWhy) {
  World world;
  world.Submit();
  const Running running = world.Begin();
  world.Die(*running.worker);
  const std::vector<NodeEvent> tasks = TaskEvents(world);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].kind, NodeEventKind::kTaskLost);
  std::vector<NodeEvent> others;
  world.machine.events().others().Copy(0, 1000, others);
  const auto died = std::find_if(others.begin(), others.end(), [](const NodeEvent& event) {
    return event.kind == NodeEventKind::kWorkerDied;
  });
  ASSERT_NE(died, others.end());
  EXPECT_EQ(world.machine.events().names()[died->name], "it died");
}

}  // namespace
}  // namespace menger
