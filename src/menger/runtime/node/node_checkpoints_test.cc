#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/testing/node_world.h"

namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;

// An actor with a checkpoint every third call, constructed.
class CheckpointTest : public testing::Test {
 protected:
  explicit CheckpointTest(NodeMachineOptions options = {.resources = Resources(2, 0), .workers = 2})
      : world(std::move(options)), actor(world.Construct({.restarts = 10, .checkpoint_every = 3})) {
    world.FinishAll();
  }

  Call DoCall(std::uint64_t offset = 0) {
    const Call call = world.Method(actor, {});
    const Running running = world.Begin();
    EXPECT_EQ(running.task, call.task);
    world.Finish(running, {offset > 0 ? World::Large(offset) : World::Small()});
    return call;
  }
  void Kill() { world.Die(*world.machine.FindActor(actor.actor)->worker); }
  // Finishes all that is to be done; what that was, "construct load method".
  std::string Kinds() {
    constexpr const char* kNames[] = {"function", "construct", "method", "reserve", "save", "load"};
    std::string kinds;
    for (Running running = world.Begin(); running.lease != 0; running = world.Begin()) {
      if (!kinds.empty()) kinds += ' ';
      kinds += kNames[static_cast<int>(running.kind)];
      world.Finish(running);
    }
    return kinds;
  }
  void ForgetAll(const std::vector<Call>& calls) {
    for (const Call& call : calls) world.Forget(call.result());
    world.Forget(actor.result());
    world.ExpectNothingLeft();
  }

  World world;
  Call actor;
};

TEST_F(CheckpointTest, CallsAreDoneOnceMoreInTheirOrder) {
  const Call first = DoCall();
  const Call second = DoCall(100);
  Kill();
  EXPECT_EQ(world.Begin().kind, CallKind::kConstruct);
  Kill();  // Once more, in the middle.
  const Call third = world.Method(actor, {});
  world.Finish(world.Begin());
  for (const Call& call : {first, second, third}) {
    const Running running = world.Begin();
    EXPECT_EQ(running.task, call.task);
    world.Finish(running, {World::Large(200 + running.lease)});
  }
  // What is known stays; what came again is freed, but for the result of the third.
  EXPECT_EQ(world.machine.objects().Find(second.result())->value.extent.offset, 100);
  EXPECT_EQ(world.freed.size(), 2);
  EXPECT_EQ(Kinds(), "save");
  ForgetAll({first, second, third});
}

TEST_F(CheckpointTest, ACheckpointReplacesTheCallsBeforeIt) {
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(DoCall());
  EXPECT_EQ(Kinds(), "save");
  calls.push_back(DoCall());
  Kill();
  EXPECT_EQ(Kinds(), "construct load method");
  for (int i = 0; i < 2; ++i) calls.push_back(DoCall());
  EXPECT_EQ(Kinds(), "save");
  Kill();
  EXPECT_EQ(Kinds(), "construct load");
  ForgetAll(calls);
}

TEST_F(CheckpointTest, ACheckpointThatIsLostIsAskedForAgain) {
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(DoCall());
  Kill();
  EXPECT_EQ(Kinds(), "construct method method method save");
  ForgetAll(calls);
}

TEST_F(CheckpointTest, TheCallUnderWayIsToldWhatItWasTold) {
  const Call call = world.Method(actor, {});
  const Running running = world.Begin();
  const std::vector<std::byte> told(12, std::byte{7});
  world.machine.Record(*running.worker, running.lease, told);
  Kill();
  world.Finish(world.Begin());
  const Running again = world.Begin();
  EXPECT_EQ(again.task, call.task);
  EXPECT_EQ(again.records, told);
  world.Finish(again);
  EXPECT_EQ(world.State(call.result()), "value");
  ForgetAll({call});
}

TEST_F(CheckpointTest, WhatWasToldMayBeTooMuchToKeep) {
  const Call call = world.Method(actor, {});
  const Running running = world.Begin();
  for (int i = 0; i < 100; ++i) {
    world.machine.Record(*running.worker, running.lease, std::vector<std::byte>(1000));
  }
  world.Finish(running);
  EXPECT_EQ(world.Begin().kind, CallKind::kSave);  // At once.
  Kill();
  const Call after = world.Method(actor, {});
  EXPECT_EQ(world.State(after.result()), "actor died");
  ForgetAll({call, after});
}

TEST_F(CheckpointTest, CallsOfCallsThatAreDoneOnceMoreAreKnown) {
  const Call method = world.Method(actor, {});
  const Running running = world.Begin();
  const World::CallWishes wishes{
      .parent = method.task, .process = running.worker->index, .number = 1};
  const Call child = world.Submit({}, {}, wishes);
  world.Finish(world.Begin());
  world.Finish(running);
  world.machine.objects().DropReferrer(running.worker->index,
                                       *world.machine.objects().Find(child.result()));
  Kill();
  world.Finish(world.Begin());
  const Running again = world.Begin();
  EXPECT_EQ(again.task, method.task);
  world.Submit({}, {}, {.parent = method.task, .process = again.worker->index, .number = 1});
  world.Finish(again);
  EXPECT_EQ(Kinds(), "");
  world.machine.objects().DropReferrer(again.worker->index,
                                       *world.machine.objects().Find(child.result()));
  ForgetAll({method});
}

TEST_F(CheckpointTest, AStateThatCannotBeSavedIsTheEnd) {
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(DoCall());
  const Running save = world.Begin();
  world.machine.Failed(*save.worker, save.lease, {.text = "no"}, 1000);
  calls.push_back(world.Method(actor, {}));
  EXPECT_EQ(world.State(calls.back().result()), "exception");
  ForgetAll(calls);
}

TEST_F(CheckpointTest, TheLogDoesNotHoldItsOwnActor) {
  const Call call = world.Method(actor, {.contained = {actor.result()}});
  EXPECT_EQ(Kinds(), "method");
  world.Forget(actor.result());
  EXPECT_EQ(world.released_actors, 1);
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

class BoundedLogTest : public CheckpointTest {
 protected:
  BoundedLogTest()
      : CheckpointTest({.resources = Resources(2, 0), .workers = 2, .log_bytes_max = 100}) {}
};

TEST_F(BoundedLogTest, ALargeLogIsReplacedEarly) {
  const Call call = DoCall();
  EXPECT_EQ(Kinds(), "save");
  ForgetAll({call});
}

}  // namespace
}  // namespace menger
