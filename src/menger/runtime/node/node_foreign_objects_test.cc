#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/three_owners.h"

// Nodes that refer to each other's objects: what they tell each other, and in which order it may
// come. What whole programs make of it is the simulation's affair.
namespace menger {
namespace {

using Call = World::Call;
using Kind = PeerMessage::Kind;
using ForeignObjectsTest = ThreeOwners;

TEST_F(ForeignObjectsTest, AnObjectLivesWhileAnotherNodeRefersToIt) {
  const ObjectId value = a().Put(World::Small());
  Refer(1, a().Name(value));
  EXPECT_FALSE(b().machine.IsRegistered(*b().machine.objects().Find(value)));
  DeliverAll();
  EXPECT_TRUE(b().machine.IsRegistered(*b().machine.objects().Find(value)));
  a().Forget(value);
  EXPECT_EQ(a().State(value), "value");
  b().Forget(value);
  DeliverAll();
  EXPECT_EQ(a().State(value), "forgotten");
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, WhatItIsIsAskedOnceSomebodyNeedsIt) {
  const Call call = a().CallOf({});
  Refer(1, a().Name(call.result()));
  a().FinishAll();
  DeliverAll();
  EXPECT_EQ(b().State(call.result()), "");
  b().Get(call.result());
  const Call user = b().CallOf({call.result()});
  DeliverAll();
  EXPECT_EQ(b().State(call.result()), "value");
  EXPECT_EQ(b().ready.size(), 1);
  b().FinishAll();
  EXPECT_EQ(b().State(user.result()), "value");
  b().Forget(user.result());
  b().Forget(call.result());
  a().Forget(call.result());
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, ALargerValueIsBroughtOnceAndServesOthers) {
  const ObjectId value = a().Put(World::Large(64));
  Refer(1, a().Name(value));
  Refer(2, a().Name(value));
  b().Get(value);
  b().CallOf({value});
  DeliverAll();
  ASSERT_EQ(b().pulls.size(), 1);
  EXPECT_EQ(b().pulls[0].source, nullptr);  // Its owner has it.
  EXPECT_TRUE(b().ready.empty());
  b().machine.Pulled(peers[1][0], b().pulls[0].pull, World::Large(7));
  b().machine.Run();
  EXPECT_EQ(b().ready.size(), 1);
  EXPECT_EQ(b().machine.objects().Find(value)->value.extent.offset, 7);
  b().FinishAll();
  DeliverAll();
  // Two more want it: the newest copy serves first.
  c().Get(value);
  DeliverAll();
  ASSERT_EQ(c().pulls.size(), 1);
  EXPECT_EQ(c().pulls[0].source, peers[2][1]);
  EXPECT_EQ(b().machine.FindKept(*peers[1][0], c().pulls[0].name),
            b().machine.objects().Find(value));
  c().machine.NotPulled(peers[2][0], c().pulls[0].pull);
  DeliverAll();
  ASSERT_EQ(c().pulls.size(), 2);  // From its owner, then.
  EXPECT_EQ(c().pulls[1].source, nullptr);
  c().machine.Pulled(peers[2][0], c().pulls[1].pull, World::Large(9));
  EXPECT_EQ(c().ready.size(), 1);
  c().Forget(value);
  EXPECT_EQ(c().freed, std::vector<std::uint64_t>{9});
}

TEST_F(ForeignObjectsTest, ACopyThatIsGoneIsNoSource) {
  const Call made = a().CallOf({});
  a().Finish(a().Begin(), {ObjectValue::Remote(peers[0][2]->index, 5, 100)});
  Refer(1, a().Name(made.result()));
  b().Get(made.result());
  DeliverAll();
  b().machine.Pulled(peers[1][0], b().pulls.at(0).pull, World::Large(7));
  DeliverAll();
  b().Forget(made.result());
  End(2);  // The other copy is gone, too.
  DeliverAll();
  EXPECT_EQ(a().State(made.result()), "");
  a().FinishAll();  // It is made again.
  EXPECT_EQ(a().State(made.result()), "value");
  a().Forget(made.result());
  a().ExpectNothingLeft();
  b().ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, WhatNamedAnObjectIsKeptUntilItsOwnerKnows) {
  const ObjectId inner = c().Put(World::Small());
  Refer(0, c().Name(inner));
  DeliverAll();
  const ObjectId outer = a().Put(World::Small(), {inner});
  a().Forget(inner);
  Refer(1, a().Name(outer));
  b().Get(outer);
  Deliver(1, 0);
  Deliver(0, 1);  // The value, which names `inner`.
  EXPECT_EQ(b().State(outer), "value");
  a().Forget(outer);
  c().Forget(inner);
  b().machine.objects().AddReferrer(kDriver, *b().machine.objects().Find(inner));
  b().Forget(outer);
  // Nobody keeps `inner` for b but `outer`, which b keeps.
  Deliver(1, 0);
  Deliver(0, 2);
  EXPECT_EQ(a().State(outer), "value");
  EXPECT_EQ(c().State(inner), "value");
  Deliver(1, 2);
  Deliver(2, 1);
  Deliver(1, 0);
  EXPECT_EQ(a().State(outer), "forgotten");
  DeliverAll();
  EXPECT_EQ(c().State(inner), "value");
  b().Forget(inner);
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, AnActorThatShallBeAnothersIsMadeThere) {
  const ObjectId keeper = a().Put(World::Small());
  Refer(1, a().Name(keeper));
  DeliverAll();
  SpecHeader header{.kind = CallKind::kConstruct, .home = keeper, .retries = 0, .detached = true};
  header.parent = b().root;
  header.task = ChildTask(RunOf(b().root, 0), 77);
  header.actor = ActorOf(header.task);
  const SpecHeader method{.kind = CallKind::kMethod,
                          .actor = header.actor,
                          .home = ResultOf(header.task, 0),
                          .retries = 0};
  SpecBuilder builder(header, 0, {}, "cpu=0", "actor", 0);
  b().machine.Submit(kDriver, builder.Finish());
  const Call called = b().CallOf({}, method);
  EXPECT_EQ(b().Begin().lease, 0u);
  DeliverAll();
  a().FinishAll();
  b().Get(called.result());
  DeliverAll();
  EXPECT_EQ(b().State(called.result()), "value");
  EXPECT_EQ(b().machine.FindActor(header.actor), nullptr);
  // Who has asked for it ends; it does not.
  End(1);
  worlds[1].reset();
  ASSERT_NE(a().machine.FindActor(header.actor), nullptr);
  EXPECT_EQ(a().machine.FindActor(header.actor)->state, Actor::State::kAlive);
}

TEST_F(ForeignObjectsTest, ACallOfAnothersActorIsMadeThere) {
  const Call actor = a().Construct({.parent = a().root});
  a().FinishAll();
  Refer(1, a().Name(actor.result()));
  const ObjectId third = c().Put(World::Small());
  Refer(1, c().Name(third));
  DeliverAll();
  const ObjectId own = b().Put(World::Small());
  const SpecHeader method{
      .kind = CallKind::kMethod, .actor = actor.actor, .home = actor.result(), .retries = 0};
  const Call first = b().CallOf({own}, method);
  const Call second = b().CallOf({third}, method);
  b().Forget(own);
  b().Forget(third);
  c().Forget(third);
  Deliver(1, 2);  // b does not refer to it any longer, but for the sake of a.
  EXPECT_EQ(c().State(third), "value");
  DeliverAll();
  std::vector<TaskId> done;
  for (auto running = a().Begin(); running.lease != 0; running = a().Begin()) {
    done.push_back(running.task);
    a().Finish(running);
    DeliverAll();
  }
  EXPECT_EQ(done, (std::vector<TaskId>{first.task, second.task}));
  EXPECT_EQ(b().State(first.result()), "value");  // Nobody had to ask.
  EXPECT_EQ(b().State(second.result()), "value");
  EXPECT_EQ(c().State(third), "forgotten");
  a().Forget(actor.result());
  DeliverAll();
  EXPECT_EQ(a().released_actors, 0);
  b().Forget(actor.result());
  DeliverAll();
  EXPECT_EQ(a().released_actors, 1);
  b().Forget(first.result());
  b().Forget(second.result());
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, NobodyIsToldOfWhatACallGivesBeforeTheCallHasCome) {
  const Call of_a = a().Construct({.parent = a().root});
  const Call of_c = c().Construct({.parent = c().root});
  a().FinishAll();
  c().FinishAll();
  Refer(1, a().Name(of_a.result()));
  Refer(1, c().Name(of_c.result()));
  DeliverAll();
  const Call first =
      b().CallOf({}, {.kind = CallKind::kMethod, .actor = of_a.actor, .home = of_a.result()});
  const Call second = b().CallOf(
      {first.result()}, {.kind = CallKind::kMethod, .actor = of_c.actor, .home = of_c.result()});
  const Call third =
      b().CallOf({}, {.kind = CallKind::kMethod, .actor = of_c.actor, .home = of_c.result()});
  EXPECT_EQ(Deliver(1, 2), 0);
  Deliver(1, 0);
  Deliver(0, 1);
  EXPECT_EQ(Deliver(1, 2), 2);  // Both, in order.
  DeliverAll();
  a().FinishAll();
  DeliverAll();
  std::vector<TaskId> done;
  for (auto running = c().Begin(); running.lease != 0; running = c().Begin()) {
    done.push_back(running.task);
    c().Finish(running);
  }
  EXPECT_EQ(done, (std::vector<TaskId>{second.task, third.task}));
  // So with values.
  const Call late =
      b().CallOf({}, {.kind = CallKind::kMethod, .actor = of_a.actor, .home = of_a.result()});
  const ObjectId outer = b().Put(World::Small(), {late.result()});
  Refer(2, b().Name(outer));
  c().Get(outer);
  Deliver(2, 1);
  Deliver(1, 2);
  EXPECT_EQ(c().State(outer), "");
  DeliverAll();
  EXPECT_EQ(c().State(outer), "value");
}

TEST_F(ForeignObjectsTest, AnOwnersEndIsAnErrorForWhatIsNotHere) {
  const ObjectId here = a().Put(World::Small());
  const ObjectId far = a().Put(World::Large(64));
  const Call pending = a().CallOf({});
  for (const ObjectId id : {here, far, pending.result()}) Refer(1, a().Name(id));
  b().Get(here);
  b().Get(far);
  b().Get(pending.result());
  const Call user = b().CallOf({pending.result()});
  DeliverAll();
  EXPECT_EQ(b().ready.size(), 1);
  End(0);
  EXPECT_EQ(b().State(here), "value");
  EXPECT_EQ(b().State(far), "owner died");
  EXPECT_EQ(b().State(pending.result()), "owner died");
  EXPECT_EQ(b().State(user.result()), "owner died");
  EXPECT_EQ(b().ready.size(), 3);
  // Whoever is told of it later learns that, too.
  Refer(2, {pending.result(), OwnerId(0), 1});
  EXPECT_EQ(c().State(pending.result()), "owner died");
  for (const ObjectId id : {here, far, pending.result(), user.result()}) b().Forget(id);
  c().Forget(pending.result());
  b().ExpectNothingLeft();
  c().ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, AHoldersEndDropsItsReferences) {
  const ObjectId value = a().Put(World::Small());
  Refer(1, a().Name(value));
  Refer(2, a().Name(value));
  DeliverAll();
  a().Forget(value);
  End(1);
  EXPECT_EQ(a().State(value), "value");
  End(2);
  EXPECT_EQ(a().State(value), "forgotten");
}

// Else two nodes could keep each other's calls for ever.
TEST_F(ForeignObjectsTest, AKeptCallDoesNotKeepAnothersObject) {
  const Call actor = a().Construct({.parent = a().root});
  a().FinishAll();
  Refer(1, a().Name(actor.result()));
  DeliverAll();
  const Call kept = b().Submit({}, {}, {.parent = b().root, .contained = {actor.result()}});
  b().Finish(b().Begin(), {World::Large(64)});
  b().Forget(actor.result());
  a().Forget(actor.result());
  DeliverAll();
  EXPECT_EQ(a().released_actors, 1);
  b().Forget(kept.result());
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, AKeptCallThatRunsAgainRefersToItAgain) {
  const Call made = a().CallOf({});
  a().Finish(a().Begin(), {World::Large(64)});
  Refer(1, a().Name(made.result()));
  const Call kept = b().CallOf({made.result()});
  DeliverAll();
  b().machine.Pulled(peers[1][0], b().pulls.at(0).pull, World::Large(7));
  b().machine.Run();
  b().Finish(b().Begin(), {World::Large(8)});
  b().Forget(made.result());
  a().Forget(made.result());
  DeliverAll();
  EXPECT_EQ(a().State(made.result()), "freed");
  b().machine.Lose(*b().machine.objects().Find(kept.result()));
  b().machine.Run();
  DeliverAll();
  a().Finish(a().Begin());  // It is made again.
  DeliverAll();
  b().FinishAll();
  EXPECT_EQ(b().State(kept.result()), "value");
  b().Forget(kept.result());
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, WhatItsOwnerKnowsNoLongerIsLost) {
  Refer(1, {PutBy(a().root, 77), OwnerId(0), 1});
  DeliverAll();
  EXPECT_EQ(b().State(PutBy(a().root, 77)), "object lost");
  b().Forget(PutBy(a().root, 77));
  ExpectNothingLeft();
}

TEST_F(ForeignObjectsTest, AnOwnerThatIsNotMetYetIsAskedOnceItIs) {
  const ObjectId value = PutBy(RootTask(9), 1);
  const ObjectId other = PutBy(RootTask(9), 2);
  Refer(1, {value, OwnerId(8), 3});
  Refer(1, {other, OwnerId(8), 2});
  b().Get(value);
  b().Get(other);
  EXPECT_TRUE(b().told.empty());
  Peer& late = b().machine.AddPeer(OwnerId(8), 3, Resources(1, 0));
  b().machine.NodeIsOver(OwnerId(8), 2);
  b().machine.Run();
  EXPECT_EQ(b().State(other), "owner died");
  ASSERT_EQ(b().told.size(), 2);
  EXPECT_EQ(b().told[0].message.kind, Kind::kRefer);
  EXPECT_EQ(b().told[1].message.kind, Kind::kAsk);
  EXPECT_EQ(b().told[1].to, late.index);
  b().Receive(late, {.kind = Kind::kReferred, .clean = true, .object = value});
  b().Receive(late, {.kind = Kind::kValue, .object = value, .value = World::Small()});
  EXPECT_EQ(b().State(value), "value");
  b().Forget(value);
  b().Forget(other);
  b().ExpectNothingLeft();
}

}  // namespace
}  // namespace menger
