#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/node_world.h"

// One node among others: what it tells them, and what it makes of what they tell it. How whole
// nodes get on with each other is the simulation's affair.
namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;
using Kind = PeerMessage::Kind;

constexpr NodeId kOther{Id{.high = 1, .low = 2}};

class PeerWorld : public World {
 public:
  explicit PeerWorld(int workers, bool only_borrows = false)
      : World({.resources = Resources(workers, 0),
               .workers = workers,
               .only_borrows = only_borrows,
               .wait_here_max = 2e6}) {
    room = 1;
    machine.StartWorkers();
    peer = &machine.AddPeer(kOther, 1, Resources(4, 1));
  }

  bool Recall(Worker& worker, const Task& task) override {
    return worker.lender == 0 && World::Recall(worker, task);
  }
  void Pull(const PullOrder& order) override { pulls.push_back(order); }
  void TellPeer(const Peer& to, const PeerMessage& message) override {
    told.push_back(message);
    told_to.push_back(to.index);
  }

  // Nothing, or what it has told of that kind since it was asked last.
  std::vector<PeerMessage> Told(Kind kind) {
    std::vector<PeerMessage> found;
    for (PeerMessage& message : std::exchange(told, {})) {
      if (message.kind == kind) found.push_back(std::move(message));
    }
    return found;
  }
  void Receive(PeerMessage message) {
    machine.Receive(*peer, message);
    machine.Run();
  }
  Worker& Borrow(LoanNumber loan, const std::string& scheduling = "") {
    Receive({.kind = Kind::kLend, .loan = loan, .scheduling = scheduling});
    return *NodeMachine::FindBorrowed(*peer, loan);
  }
  void EndPeer() {
    machine.PeerDied(*peer, {.kind = FailureKind::kNodeDied, .text = "it is gone"});
    machine.Run();
  }
  // In another life.
  void BeginAnew(std::uint64_t epoch) {
    peer = &machine.AddPeer(kOther, epoch, Resources(4, 1));
    machine.Run();
  }

  Peer* peer = nullptr;
  std::vector<PeerMessage> told;
  std::vector<PeerIndex> told_to;
  std::vector<PullOrder> pulls;
};

TEST(NodePeersTest, ANodeWithMoreCallsThanMayWaitAsksForWorkers) {
  PeerWorld world(1);
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(world.Submit());
  EXPECT_TRUE(world.Told(Kind::kWant).empty());
  for (int i = 0; i < 5; ++i) calls.push_back(world.Submit());  // One runs, seven wait.
  const std::vector<PeerMessage> wants = world.Told(Kind::kWant);
  ASSERT_FALSE(wants.empty());
  EXPECT_EQ(wants.back().count, 8);  // Five, in powers of two.
  world.FinishAll();
  const std::vector<PeerMessage> none = world.Told(Kind::kWant);
  ASSERT_EQ(none.size(), 1);
  EXPECT_EQ(none.back().count, 0);
}

TEST(NodePeersTest, ShortCallsMayBeMoreBeforeOthersAreAsked) {
  PeerWorld world(1);
  world.room = 2;
  for (int i = 0; i < 30; ++i) world.Submit();  // Nobody knows how long they take.
  EXPECT_FALSE(world.Told(Kind::kWant).empty());
  world.FinishAll();  // 1 us each, as it turns out.
  world.told.clear();
  for (int i = 0; i < 1000; ++i) world.Submit();
  EXPECT_TRUE(world.Told(Kind::kWant).empty());
  world.FinishAll();
}

TEST(NodePeersTest, ABorrowedWorkerDoesCallsAndGoesHomeWhenThereAreNone) {
  PeerWorld world(0);
  const Call call = world.Submit();
  Worker& worker = world.Borrow(7);
  world.Finish(world.Begin(worker));
  EXPECT_EQ(world.State(call.result()), "value");
  EXPECT_TRUE(world.Told(Kind::kGiveBack).empty());
  world.machine.SetTime(10'000'000);
  world.machine.Run();
  const std::vector<PeerMessage> back = world.Told(Kind::kGiveBack);
  ASSERT_EQ(back.size(), 1);
  EXPECT_EQ(back[0].loan, 7);
  EXPECT_TRUE(back[0].clean);
  world.Forget(call.result());
  world.ExpectNothingLeft();
}

TEST(NodePeersTest, AWorkerThatIsAskedBackGoesAfterItsCall) {
  PeerWorld world(0);
  world.Submit();
  world.Submit();
  Worker& worker = world.Borrow(1);
  const Running running = world.Begin(worker);
  world.Receive({.kind = Kind::kAskBack, .loan = 1});
  EXPECT_TRUE(world.Told(Kind::kGiveBack).empty());
  world.Finish(running);
  EXPECT_EQ(world.Told(Kind::kGiveBack).size(), 1);
  EXPECT_EQ(world.machine.scheduler().ready(), 1);
}

TEST(NodePeersTest, WhatABorrowedWorkerHadNotBegunIsNotCharged) {
  PeerWorld world(0);
  const Call call = world.Submit({.retries = 0}, {}, {});
  Worker& first = world.Borrow(1);
  const LeaseNumber other = world.Begin(first).lease + 1;
  world.Receive({.kind = Kind::kLost, .loan = 1, .begun = {other}});
  EXPECT_EQ(world.State(call.result()), "");
  world.Finish(world.Begin(world.Borrow(2)));
  EXPECT_EQ(world.State(call.result()), "value");
}

// As one that has had a GPU does after each call: another may be on its way to it by then.
TEST(NodePeersTest, WhatIsOnItsWayToABorrowedWorkerThatLeavesIsNotCharged) {
  PeerWorld world(0);
  const Call call = world.Submit({.retries = 0}, {}, {});
  Worker& first = world.Borrow(1);
  ASSERT_FALSE(first.outstanding.empty());
  world.machine.WorkerLeaves(first);
  world.machine.Run();
  EXPECT_EQ(world.State(call.result()), "");
  world.Finish(world.Begin(world.Borrow(2)));
  EXPECT_EQ(world.State(call.result()), "value");
}

TEST(NodePeersTest, CallsOfANodeThatDiesRunAgainAsOftenAsTheyMay) {
  PeerWorld world(0);
  const Call once = world.Submit({.retries = 0}, {}, {});
  const Call again = world.Submit({.retries = 1}, {}, {});
  world.Borrow(1);
  world.Borrow(2);
  world.EndPeer();
  EXPECT_EQ(world.State(once.result()), "node died");
  // It may run again, but no node has a CPU any longer.
  EXPECT_EQ(world.State(again.result()), "node died");
  EXPECT_EQ(world.machine.counts().retried, 1);
}

TEST(NodePeersTest, AValueThatLayAtANodeIsMadeAgainOrLostWithIt) {
  PeerWorld world(1);
  const ObjectId put = ResultOf(ChildTask(RootTask(9), 1), 0);
  world.machine.Put(kDriver, put, ObjectValue::Remote(world.peer->index, 1, 100), {});
  const Call here = world.Submit();
  const Call there = world.Submit({.retries = 2}, {}, {});
  Worker& worker = world.Borrow(1);
  world.Finish(world.Begin(worker), {ObjectValue::Remote(world.peer->index, 2, 100)});
  EXPECT_EQ(world.State(there.result()), "value");
  world.EndPeer();
  EXPECT_EQ(world.State(put), "object lost");
  EXPECT_EQ(world.State(there.result()), "");
  EXPECT_EQ(world.machine.counts().rebuilt, 1);
  world.FinishAll();
  EXPECT_EQ(world.State(here.result()), "value");
  EXPECT_EQ(world.State(there.result()), "value");
}

TEST(NodePeersTest, AValueIsFetchedForAWorkerHere) {
  PeerWorld world(1);
  const ObjectId put = ResultOf(ChildTask(RootTask(9), 1), 0);
  world.machine.Put(kDriver, put, ObjectValue::Remote(world.peer->index, 5, 100), {});
  const Call call = world.Submit({put});
  ASSERT_EQ(world.pulls.size(), 1);
  EXPECT_EQ(world.pulls[0].name, 5);
  EXPECT_EQ(world.pulls[0].source, world.peer);
  EXPECT_EQ(world.Begin().lease, 0);
  world.machine.Pulled(nullptr, world.pulls[0].pull, World::Large(64));
  world.machine.Run();
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
}

TEST(NodePeersTest, AValueIsReadWhereItLiesByAWorkerThere) {
  PeerWorld world(0);
  const ObjectId put = ResultOf(ChildTask(RootTask(9), 1), 0);
  world.machine.Put(kDriver, put, ObjectValue::Remote(world.peer->index, 5, 100), {});
  Object& object = *world.machine.objects().Find(put);
  world.Submit({put});
  Worker& worker = world.Borrow(1);
  ASSERT_EQ(world.queues[worker.index].size(), 1);
  EXPECT_TRUE(world.machine.WatchObject({worker.index, 2}, object, /*with_value=*/true));
  EXPECT_TRUE(world.pulls.empty());
  EXPECT_FALSE(world.machine.WatchObject({kDriver, 1}, object, /*with_value=*/true));
  ASSERT_EQ(world.pulls.size(), 1);
  // What has come lies here and there, until nobody needs it.
  world.machine.Pulled(nullptr, world.pulls[0].pull, World::Large(64));
  EXPECT_EQ(world.ready, std::vector<std::uint64_t>{1});
  world.Finish(world.Begin(worker));
  world.told.clear();
  world.Forget(put);
  EXPECT_EQ(world.freed, std::vector<std::uint64_t>{64});
  const std::vector<PeerMessage> drops = world.Told(Kind::kDrop);
  ASSERT_EQ(drops.size(), 1);
  EXPECT_EQ(drops[0].kept, 5);
}

// It has something of this node's, which would be lost with it.
TEST(NodePeersTest, AWorkerThatRefersToSomethingIsGivenBackAndHadAgain) {
  PeerWorld world(0);
  const Call call = world.Submit();
  Worker& worker = world.Borrow(1);
  const WorkerIndex index = worker.index;
  world.Finish(world.Begin(worker));
  world.machine.objects().AddReferrer(index, *world.machine.objects().Find(call.result()));
  world.Forget(call.result());
  world.machine.SetTime(1'000'000'000);
  world.machine.Run();
  const std::vector<PeerMessage> back = world.Told(Kind::kGiveBack);
  ASSERT_EQ(back.size(), 1);
  EXPECT_FALSE(back[0].clean);
  EXPECT_FALSE(world.machine.next_deadline().has_value());
  EXPECT_EQ(world.State(call.result()), "value");
  world.Submit();
  EXPECT_TRUE(world.queues[index].empty());
  EXPECT_EQ(world.Borrow(1).index, index);
  EXPECT_EQ(world.queues[index].size(), 1);
  world.Finish(world.Begin(worker));
  world.machine.SetTime(2'000'000'000);
  world.machine.Run();
  EXPECT_EQ(world.Told(Kind::kGiveBack).size(), 1);
  world.Receive({.kind = Kind::kLost, .loan = 1, .cause = {.text = "it was not needed"}});
  world.machine.Run();
  EXPECT_EQ(world.machine.objects().Find(call.result()), nullptr);
  EXPECT_EQ(world.machine.workers(), 0);
}

TEST(NodePeersTest, ALentWorkerOccupiesItsResourcesUnlessItsCallWaits) {
  PeerWorld world(1);
  const auto free = [&] { return world.machine.scheduler().available().Get("cpu"); };
  world.Receive({.kind = Kind::kWant, .count = 3});
  const std::vector<PeerMessage> lent = world.Told(Kind::kLend);
  ASSERT_EQ(lent.size(), 1);
  EXPECT_EQ(free(), 0);
  world.Receive({.kind = Kind::kBlocked, .loan = lent[0].loan});
  world.machine.Run();
  EXPECT_EQ(world.Told(Kind::kLend).size(), 1);  // By another process.
  EXPECT_EQ(free(), 0);
  world.Receive({.kind = Kind::kUnblocked, .loan = lent[0].loan});
  EXPECT_EQ(free(), -1);
  world.Receive({.kind = Kind::kWant, .count = 0});
  world.Receive({.kind = Kind::kGiveBack, .clean = true, .loan = lent[0].loan});
  EXPECT_EQ(free(), 0);
  EXPECT_TRUE(world.ended.empty());
  // One that may still refer to what was the borrower's is of no use here.
  world.Receive({.kind = Kind::kGiveBack, .clean = false, .loan = lent[0].loan + 1});
  EXPECT_EQ(free(), 1);
  EXPECT_EQ(world.ended.size(), 1);
}

TEST(NodePeersTest, ALenderAsksForItsWorkersWhenItNeedsThemItself) {
  PeerWorld world(1);
  world.Receive({.kind = Kind::kWant, .count = 1});
  const LoanNumber loan = world.Told(Kind::kLend).at(0).loan;
  const Call call = world.Submit();
  EXPECT_EQ(world.Told(Kind::kAskBack).size(), 1);
  world.machine.Run();
  EXPECT_TRUE(world.Told(Kind::kAskBack).empty());  // Once is enough.
  world.Receive({.kind = Kind::kGiveBack, .clean = true, .loan = loan});
  world.FinishAll();
  EXPECT_EQ(world.State(call.result()), "value");
}

TEST(NodePeersTest, ALentWorkerThatDiesIsToldOf) {
  PeerWorld world(1);
  world.Receive({.kind = Kind::kWant, .count = 1});
  world.Told(Kind::kLend);
  world.machine.WorkerDied(*world.workers[0],
                           {.kind = FailureKind::kOutOfMemory, .text = "it died"});
  const std::vector<PeerMessage> lost = world.Told(Kind::kLost);
  ASSERT_EQ(lost.size(), 1);
  EXPECT_EQ(lost[0].cause.text, "it died");
  EXPECT_EQ(lost[0].cause.kind, FailureKind::kOutOfMemory);
}

TEST(NodePeersTest, WhatANodeHasHereGoesWithIt) {
  PeerWorld world(2);
  world.Receive({.kind = Kind::kWant, .count = 1});
  const std::uint64_t first = world.machine.KeepFor(*world.peer, World::Large(1));
  const std::uint64_t second = world.machine.KeepFor(*world.peer, World::Large(2));
  EXPECT_NE(world.machine.FindKept(*world.peer, second), nullptr);
  world.Receive({.kind = Kind::kDrop, .kept = first});
  EXPECT_EQ(world.freed, std::vector<std::uint64_t>{1});
  // It is seen again, in another life.
  world.peer = &world.machine.AddPeer(kOther, 2, Resources(4, 1));
  world.machine.Run();
  EXPECT_EQ(world.freed, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(world.ended.size(), 1);
  EXPECT_EQ(world.machine.scheduler().available().Get("cpu"), 2);
  world.ExpectNothingLeft();
}

TEST(NodePeersTest, AnActorWithoutRoomHereLivesInABorrowedWorker) {
  PeerWorld world(1);
  const Call actor = world.Construct({.scheduling = "gpu=1"});
  const Call method = world.Method(actor, {});
  ASSERT_EQ(world.Told(Kind::kWant).size(), 1);
  Worker& worker = world.Borrow(7, "gpu=1");
  const std::vector<PeerMessage> kept = world.Told(Kind::kKeep);
  ASSERT_EQ(kept.size(), 1);
  EXPECT_EQ(kept[0].loan, 7);
  world.Finish(world.Begin(worker));
  world.Finish(world.Begin(worker));
  EXPECT_EQ(world.State(method.result()), "value");
  // It does not go home for want of calls, nor when it is asked to.
  world.Receive({.kind = Kind::kAskBack, .loan = 7});
  world.machine.SetTime(1'000'000'000);
  world.machine.Run();
  EXPECT_TRUE(world.Told(Kind::kGiveBack).empty());
  world.Forget(method.result());
  world.Forget(actor.result());
  const std::vector<PeerMessage> ends = world.Told(Kind::kEnd);
  ASSERT_EQ(ends.size(), 1);
  EXPECT_TRUE(ends[0].clean);
  world.ExpectNothingLeft();
}

TEST(NodePeersTest, AnActorLivesAtHomeWhereThereIsRoom) {
  PeerWorld world(1);
  const Call actor = world.Construct({.scheduling = "cpu=1"});
  EXPECT_TRUE(world.Told(Kind::kWant).empty());
  world.FinishAll();
  world.Construct({.scheduling = "cpu=1"});
  EXPECT_EQ(world.Told(Kind::kWant).size(), 1);
  EXPECT_EQ(world.State(actor.result()), "value");
}

TEST(NodePeersTest, WhatNeedsNothingIsElsewhereToo) {
  PeerWorld world(0, /*only_borrows=*/true);
  const Call actor = world.Construct({.scheduling = "cpu=0"});
  const Call call = world.Submit({}, {}, {.scheduling = "cpu=0"});
  EXPECT_TRUE(world.workers.empty());
  EXPECT_FALSE(world.Told(Kind::kWant).empty());
  world.Finish(world.Begin(world.Borrow(1, "cpu=0")));
  world.Finish(world.Begin(world.Borrow(2, "cpu=0")));
  EXPECT_EQ(world.State(actor.result()), "value");
  EXPECT_EQ(world.State(call.result()), "value");
}

TEST(NodePeersTest, AnActorIsMadeAgainElsewhereWhenItsNodeDies) {
  PeerWorld world(0);
  const Call actor = world.Construct({.scheduling = "gpu=1", .restarts = 1});
  Worker& worker = world.Borrow(1, "gpu=1");
  world.Finish(world.Begin(worker));
  const Call method = world.Method(actor, {});
  world.BeginAnew(2);
  EXPECT_EQ(world.State(method.result()), "actor unavailable");
  Worker& next = world.Borrow(1, "gpu=1");
  world.Finish(world.Begin(next));
  const Call again = world.Method(actor, {});
  world.Finish(world.Begin(next));
  EXPECT_EQ(world.State(again.result()), "value");
}

TEST(NodePeersTest, ACheckpointCountsOnceItIsHere) {
  PeerWorld world(0);
  world.room = 100;
  const Call actor = world.Construct({.scheduling = "gpu=1", .restarts = 5, .checkpoint_every = 1});
  Worker& worker = world.Borrow(1, "gpu=1");
  world.Finish(world.Begin(worker));
  const auto replayed = [&] { return world.machine.counts().replayed; };
  const Call method = world.Method(actor, {});
  world.Finish(world.Begin(worker));
  const Running save = world.Begin(worker);
  ASSERT_EQ(save.kind, CallKind::kSave);
  world.Finish(save, {ObjectValue::Remote(world.peer->index, 3, 100)});
  ASSERT_EQ(world.pulls.size(), 1);
  // The node goes before it has come: the actor does its call once more.
  world.BeginAnew(2);
  Worker& next = world.Borrow(1, "gpu=1");
  world.Finish(world.Begin(next));
  EXPECT_EQ(replayed(), 1);
  world.Finish(world.Begin(next));
  // This time it comes.
  const Running again = world.Begin(next);
  ASSERT_EQ(again.kind, CallKind::kSave);
  world.Finish(again, {ObjectValue::Remote(world.peer->index, 4, 100)});
  ASSERT_EQ(world.pulls.size(), 2);
  world.machine.Pulled(nullptr, world.pulls[1].pull, World::Large(64));
  world.BeginAnew(3);
  Worker& third = world.Borrow(1, "gpu=1");
  world.Finish(world.Begin(third));
  EXPECT_EQ(replayed(), 1);
  const std::vector<PeerMessage> sent = world.Told(Kind::kPull);
  ASSERT_EQ(sent.size(), 1);
  world.Receive({.kind = Kind::kPulled, .kept = sent[0].kept});
  EXPECT_EQ(world.Begin(third).kind, CallKind::kLoad);
  EXPECT_EQ(world.State(method.result()), "value");
}

TEST(NodePeersTest, WhatIsLentForAnActorIsNotAskedBack) {
  PeerWorld world(1);
  world.Receive({.kind = Kind::kWant, .count = 1});
  const LoanNumber loan = world.Told(Kind::kLend).at(0).loan;
  world.Receive({.kind = Kind::kKeep, .loan = loan});
  world.Submit();
  EXPECT_TRUE(world.Told(Kind::kAskBack).empty());
  world.Receive({.kind = Kind::kEnd, .clean = true, .loan = loan, .text = "it is not needed"});
  EXPECT_EQ(world.ended.size(), 1);
}

TEST(NodePeersTest, WhatNoNodeHasAnyLongerFails) {
  PeerWorld world(1);
  const Call call = world.Submit({}, {}, {.scheduling = "gpu=1"});
  EXPECT_EQ(world.State(call.result()), "");
  EXPECT_EQ(world.State(world.Submit({}, {}, {.scheduling = "gpu=2"}).result()), "exception");
  const Call actor = world.Construct({.scheduling = "gpu=1", .restarts = 5});
  const Call method = world.Method(actor, {});
  world.EndPeer();
  EXPECT_EQ(world.State(call.result()), "node died");
  EXPECT_EQ(world.State(method.result()), "actor died");
  EXPECT_EQ(world.State(world.Submit({}, {}, {.scheduling = "gpu=1"}).result()), "node died");
}

}  // namespace
}  // namespace menger
