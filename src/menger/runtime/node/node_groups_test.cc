#include <gtest/gtest.h>

#include "menger/runtime/testing/node_world.h"

// Placement groups in the node's logic, with two CPUs and two workers.
namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;

constexpr std::int64_t kSecond = 1'000'000'000;

class NodeGroupsTest : public ::testing::Test {
 protected:
  Call Reserve(const std::string& bundles) {
    return world.Submit({.kind = CallKind::kReserve}, {}, {.scheduling = "PACK;" + bundles});
  }
  Call CallIn(const Call& group, const std::string& scheduling) {
    return world.Submit({.home = group.result()}, {}, {.scheduling = scheduling});
  }
  Call ActorIn(const Call& group, const std::string& scheduling, std::uint16_t restarts = 0) {
    return world.Submit({.kind = CallKind::kConstruct, .home = group.result(), .retries = 0}, {},
                        {.scheduling = scheduling, .restarts = restarts});
  }
  double FreeCpus() const { return world.machine.scheduler().available().Get("cpu"); }
  // Nothing but what the node had before.
  void ExpectNothingLeft() {
    world.ExpectNothingLeft();
    EXPECT_EQ(world.machine.scheduler().total(), Resources(2, 0));
  }
  std::string Text(const Call& call) {
    return DecodeFailure(world.machine.objects().Find(call.result())->value.payload).text;
  }

  World world;
};

TEST_F(NodeGroupsTest, FreesWithTheLastReference) {
  const Call group = Reserve("cpu=2");
  EXPECT_EQ(world.State(group.result()), "value");
  EXPECT_EQ(FreeCpus(), 0);
  const Call other = world.Submit();
  const Call inside = CallIn(group, "cpu=1");
  world.Forget(group.result());
  world.Finish(world.Begin());
  EXPECT_EQ(world.State(inside.result()), "value");
  world.FinishAll();
  EXPECT_EQ(world.State(other.result()), "value");
  for (const Call& call : {other, inside}) world.Forget(call.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, CallsStayWithinTheirBundle) {
  const Call group = Reserve("cpu=1;cpu=1");
  const Call first = CallIn(group, "cpu=1 @0");
  const Call second = CallIn(group, "cpu=1 @0");
  EXPECT_EQ(
      world.queues[world.workers[0]->index].size() + world.queues[world.workers[1]->index].size(),
      1);
  // The other bundle is free, for whoever may use any.
  const Call third = CallIn(group, "cpu=1");
  EXPECT_EQ(
      world.queues[world.workers[0]->index].size() + world.queues[world.workers[1]->index].size(),
      2);
  world.FinishAll();
  for (const Call& call : {first, second, third}) {
    EXPECT_EQ(world.State(call.result()), "value");
    world.Forget(call.result());
  }
  world.Forget(group.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, WaitsForWhatRunsAndHoldsOtherCallsBackMeanwhile) {
  const Call running = world.Submit();
  const Running begun = world.Begin();
  const Call group = Reserve("cpu=2");
  EXPECT_EQ(world.State(group.result()), "");
  const Call later = world.Submit();
  EXPECT_EQ(world.Begin().lease, 0);
  world.Finish(begun);
  EXPECT_EQ(world.State(group.result()), "value");
  EXPECT_EQ(world.State(later.result()), "");
  world.Forget(group.result());
  world.FinishAll();
  for (const Call& call : {running, later}) world.Forget(call.result());
  ExpectNothingLeft();
}

TEST(NodeGroupsOfGpusTest, OnlyCallsThatNeedWhatItWaitsForAreHeldBack) {
  World world({.resources = Resources(2, 1), .workers = 2});
  const Call first = world.Submit({}, {}, {.scheduling = "cpu=1 gpu=1"});
  const Running begun = world.Begin();
  const Call group = world.Submit({.kind = CallKind::kReserve}, {}, {.scheduling = "PACK;gpu=1"});
  const Call with = world.Submit({}, {}, {.scheduling = "cpu=1 gpu=0.5"});
  const Call without = world.Submit();
  world.FinishAll();
  EXPECT_EQ(world.State(without.result()), "value");
  EXPECT_EQ(world.State(with.result()), "");
  world.Finish(begun);
  EXPECT_EQ(world.State(group.result()), "value");
  world.Forget(group.result());
  world.FinishAll();
  EXPECT_EQ(world.State(with.result()), "value");
  for (const Call& call : {first, with, without}) world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, CallsAreNotHeldBackForLongNorForWhatCannotBe) {
  const Call actor = world.Construct({.scheduling = "cpu=1"});
  world.FinishAll();
  // The actor keeps its CPU: waiting is of no use.
  const Call group = Reserve("cpu=2");
  const Call call = world.Submit();
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
  EXPECT_EQ(world.State(group.result()), "");
  world.Forget(actor.result());
  EXPECT_EQ(world.State(group.result()), "value");
  world.Forget(group.result());
  // A call that runs for longer than a second.
  const Call slow = world.Submit();
  const Running begun = world.Begin();
  const Call late = Reserve("cpu=2");
  const Call next = world.Submit();
  EXPECT_EQ(world.State(next.result()), "");
  ASSERT_TRUE(world.machine.next_deadline().has_value());
  EXPECT_LE(*world.machine.next_deadline(), kSecond);
  world.machine.SetTime(kSecond);
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(next.result()), "value");
  world.Finish(begun);
  EXPECT_EQ(world.State(late.result()), "value");
  for (const Call& each : {call, slow, late, next}) world.Forget(each.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, RemovalEndsWhatRunsAndWhatWaits) {
  const Call group = Reserve("cpu=2");
  const Call actor = ActorIn(group, "cpu=1 @0", /*restarts=*/3);
  world.FinishAll();
  const Call begun = CallIn(group, "cpu=1 @0");
  const Running running = world.Begin();
  const Call ready = CallIn(group, "cpu=1 @0");
  const Call argument = world.Submit({}, {}, {.scheduling = "cpu=0"});
  const Call waiting =
      world.Submit({.home = group.result()}, {argument.result()}, {.scheduling = "cpu=1"});
  world.machine.Cancel(*world.machine.objects().Find(group.result()), /*force=*/false);
  world.machine.Run();
  EXPECT_EQ(FreeCpus(), 2);
  EXPECT_EQ(world.ended.size(), 2);  // The actor's process, and that of the call.
  EXPECT_EQ(world.State(begun.result()), "cancelled");
  EXPECT_EQ(world.State(ready.result()), "cancelled");
  EXPECT_EQ(world.machine.FindActor(actor.actor)->state, Actor::State::kDead);
  EXPECT_EQ(world.State(waiting.result()), "");
  world.FinishAll();
  EXPECT_EQ(world.State(waiting.result()), "cancelled");
  const Call late = CallIn(group, "cpu=1");
  const Call late_actor = ActorIn(group, "cpu=1");
  EXPECT_EQ(world.State(late.result()), "cancelled");
  EXPECT_EQ(world.State(late_actor.result()), "cancelled");
  EXPECT_EQ(Text(late), "the placement group was removed");
  world.machine.Cancel(*world.machine.objects().Find(group.result()), /*force=*/false);
  for (const Call& call : {begun, actor, ready, argument, waiting, late, late_actor, group}) {
    world.Forget(call.result());
  }
  ExpectNothingLeft();
  EXPECT_EQ(running.task, begun.task);
}

TEST_F(NodeGroupsTest, RemovalOfOneThatWaits) {
  const Call actor = world.Construct({.scheduling = "cpu=1"});
  world.FinishAll();
  const Call group = Reserve("cpu=2");
  const Call inside = CallIn(group, "cpu=2");
  world.machine.Cancel(*world.machine.objects().Find(group.result()), /*force=*/false);
  EXPECT_EQ(world.State(group.result()), "cancelled");
  EXPECT_EQ(world.State(inside.result()), "cancelled");
  for (const Call& call : {actor, group, inside}) world.Forget(call.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, SaysWhatCannotBe) {
  const Call large = Reserve("cpu=2;cpu=1");
  EXPECT_EQ(Text(large),
            "the node never has what the placement group needs: cpu: needs 3, there is 2");
  const Call apart =
      world.Submit({.kind = CallKind::kReserve}, {}, {.scheduling = "STRICT_SPREAD;cpu=1;cpu=1"});
  EXPECT_EQ(Text(apart), "a placement group of 2 bundles, each on a node of its own: there is 1");
  const Call group = Reserve("cpu=1;cpu=0.5 gpu=0");
  const Call more = CallIn(group, "cpu=1 @1");
  EXPECT_EQ(
      Text(more),
      "bundle 1 of its placement group has not what the call needs: cpu: needs 1, there is 0.5");
  const Call beyond = CallIn(group, "cpu=1 @2");
  EXPECT_EQ(Text(beyond), "bundle 2 of a placement group that has 2");
  const Call any = CallIn(group, "cpu=1.5");
  EXPECT_EQ(
      Text(any),
      "no bundle of its placement group has all that the call needs: cpu: needs 1.5, there is 1");
  const Call none = CallIn(more, "cpu=1");
  EXPECT_EQ(
      Text(none),
      "bundle 1 of its placement group has not what the call needs: cpu: needs 1, there is 0.5");
  const Call actor = ActorIn(group, "cpu=2");
  EXPECT_EQ(world.State(actor.result()), "exception");
  for (const Call& call : {large, apart, group, more, beyond, any, none, actor}) {
    world.Forget(call.result());
  }
  ExpectNothingLeft();
}

// Each group's calls are a class of their own for the scheduler, which remembers 4,096.
TEST_F(NodeGroupsTest, TenThousandGroupsOneAfterTheOther) {
  for (int i = 0; i < 10'000; ++i) {
    const Call group = Reserve("cpu=1");
    const Call call = CallIn(group, "cpu=1 @0");
    world.FinishAll();
    ASSERT_EQ(world.State(call.result()), "value") << Text(call);
    world.Forget(call.result());
    world.Forget(group.result());
  }
  EXPECT_LT(world.machine.scheduler().classes().size(), 10);
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, ACallThatIsMadeAgainMayOutliveItsGroup) {
  const Call group = Reserve("cpu=1");
  const Call call = CallIn(group, "cpu=1");
  world.Finish(world.Begin(), {World::Large(0)});
  world.machine.Lose(*world.machine.objects().Find(call.result()));
  world.machine.Run();
  world.Finish(world.Begin(), {World::Large(100)});
  EXPECT_EQ(world.State(call.result()), "value");
  // What was made is no reason to keep the resources.
  world.Forget(group.result());
  EXPECT_EQ(FreeCpus(), 2);
  world.machine.Lose(*world.machine.objects().Find(call.result()));
  world.machine.Run();
  EXPECT_EQ(FreeCpus(), 1);
  world.Finish(world.Begin(), {World::Large(200)});
  EXPECT_EQ(world.State(call.result()), "value");
  world.Forget(call.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, ACallThatIsMadeAgainNeedsAGroupThatWasRemoved) {
  const Call group = Reserve("cpu=1");
  const Call call = CallIn(group, "cpu=1");
  world.Finish(world.Begin(), {World::Large(0)});
  world.machine.Cancel(*world.machine.objects().Find(group.result()), /*force=*/false);
  world.machine.Lose(*world.machine.objects().Find(call.result()));
  EXPECT_EQ(world.State(call.result()), "cancelled");
  for (const Call& each : {group, call}) world.Forget(each.result());
  ExpectNothingLeft();
}

TEST_F(NodeGroupsTest, EndsWithTheProcessThatMadeIt) {
  const Call parent = world.Submit();
  const Running running = world.Begin();
  world.Submit(
      {.kind = CallKind::kReserve, .retries = 0}, {},
      {.parent = running.task, .process = running.worker->index, .scheduling = "PACK;cpu=1"});
  EXPECT_EQ(FreeCpus(), 0);
  world.Die(*running.worker);
  world.StartWorker();
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(parent.result()), "value");
  world.Forget(parent.result());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace menger
