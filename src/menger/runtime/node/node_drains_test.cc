#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "menger/runtime/testing/told_world.h"

// A node that will leave, and one whose neighbour will.
namespace menger {
namespace {

using Call = World::Call;
using Running = World::Running;
using Kind = PeerMessage::Kind;

// Without workers of its own; of two others each has what the other has.
class DrainsTest : public testing::Test, public ToldWorld {
 protected:
  DrainsTest() : ToldWorld({.resources = Resources(0, 0), .workers = 0, .wait_here_max = 0}) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      others.push_back(&machine.AddPeer(NodeId{Id{.high = 1, .low = 10 + i}}, 1, Resources(4, 1)));
    }
  }

  void Pull(const PullOrder& order) override { pulls.push_back(order); }

  Worker& Borrow(Peer& peer, const std::string& scheduling = "") {
    const LoanNumber loan = ++last_loan;
    Receive(peer, {.kind = Kind::kLend, .loan = loan, .scheduling = scheduling});
    return *NodeMachine::FindBorrowed(peer, loan);
  }
  void Return(Worker& worker, LeaseNumber lease) {
    queues[worker.index].clear();
    machine.Returned(worker, lease);
    machine.Run();
  }
  void Arrive(const PullOrder& order, std::uint64_t offset) {
    machine.Pulled(nullptr, order.pull, Large(offset));
    machine.Run();
  }
  void Leaves(Peer& peer) { Receive(peer, {.kind = Kind::kLeaving}); }
  // Done by a worker of the first, with a checkpoint every tenth call.
  Call ConstructThere(Worker*& worker) {
    const Call actor = Construct({.scheduling = "gpu=1", .restarts = 0, .checkpoint_every = 10});
    worker = &Borrow(*others[0], "gpu=1");
    Finish(Begin(*worker));
    return actor;
  }

  std::vector<Peer*> others;
  std::vector<PullOrder> pulls;
  LoanNumber last_loan = 0;
};

// ---- A neighbour will leave.

TEST_F(DrainsTest, CallsThatAreNotBegunGoElsewhereAtOnce) {
  Submit();
  Worker& worker = Borrow(*others[0]);
  Finish(Begin(worker));
  for (int i = 0; i < 100; ++i) {  // So they are known to be short.
    Submit();
    Finish(Begin(worker));
  }
  const Call first = Submit({.retries = 0}, {}, {});
  const Call second = Submit({.retries = 0}, {}, {});
  const Running running = Begin(worker);
  ASSERT_EQ(queues[worker.index].size(), 1);
  const LeaseNumber behind = queues[worker.index].front()->lease;
  Leaves(*others[0]);
  Return(worker, behind);
  Worker& elsewhere = Borrow(*others[1]);
  Finish(Begin(elsewhere));
  EXPECT_EQ(State(second.result()), "value");
  EXPECT_TRUE(Messages(Kind::kGiveBack).empty());
  Finish(running);  // Which may end where it is.
  EXPECT_EQ(State(first.result()), "value");
  const std::vector<Told> back = Messages(Kind::kGiveBack);
  ASSERT_EQ(back.size(), 1);
  EXPECT_EQ(back[0].to, others[0]->index);
  EXPECT_EQ(machine.counts().retried, 0);
}

TEST_F(DrainsTest, NoMoreWorkersAreAskedFor) {
  Leaves(*others[0]);
  Submit();
  const std::vector<Told> wants = Messages(Kind::kWant);
  ASSERT_EQ(wants.size(), 1);
  EXPECT_EQ(wants[0].to, others[1]->index);
}

TEST_F(DrainsTest, WhatOnlyItHasFails) {
  Leaves(*others[0]);
  const Call call = Submit({}, {}, {.scheduling = "gpu=1"});
  EXPECT_EQ(State(call.result()), "");
  Leaves(*others[1]);
  EXPECT_EQ(State(call.result()), "node died");
}

TEST_F(DrainsTest, ValuesThatLieThereAloneComeHomeBeforeItIsLetGo) {
  const Call call = Submit({.retries = 0}, {}, {});
  Worker& worker = Borrow(*others[0]);
  Finish(Begin(worker), {ObjectValue::Remote(others[0]->index, 3, 100)});
  Leaves(*others[0]);
  ASSERT_EQ(pulls.size(), 1);
  EXPECT_EQ(pulls[0].source, others[0]);
  EXPECT_EQ(pulls[0].name, 3);
  EXPECT_TRUE(Messages(Kind::kLetGo).empty());
  Arrive(pulls[0], 64);
  const std::vector<Told> let_go = Messages(Kind::kLetGo);
  ASSERT_EQ(let_go.size(), 1);
  EXPECT_EQ(let_go[0].message.count, 1);
  EXPECT_EQ(let_go[0].message.bytes, 100);
  machine.PeerDied(*others[0], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  machine.Run();
  EXPECT_EQ(State(call.result()), "value");
  EXPECT_EQ(machine.counts().rebuilt, 0);
}

TEST_F(DrainsTest, WhatItsLastCallsGiveComesHomeToo) {
  Submit({.retries = 0}, {}, {});
  Worker& worker = Borrow(*others[0]);
  const Running running = Begin(worker);
  Leaves(*others[0]);
  EXPECT_TRUE(Messages(Kind::kLetGo).empty());
  Finish(running, {ObjectValue::Remote(others[0]->index, 3, 100)});
  ASSERT_EQ(pulls.size(), 1);
  EXPECT_TRUE(Messages(Kind::kLetGo).empty());
  Arrive(pulls[0], 64);
  EXPECT_EQ(Messages(Kind::kLetGo).size(), 1);
}

TEST_F(DrainsTest, WhatLiesWhereItStaysDoesNot) {
  const ObjectId id = ResultOf(ChildTask(RootTask(9), 1), 0);
  machine.Put(kDriver, id, Large(64), {});
  Submit({id});
  Worker& worker = Borrow(*others[0]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  Receive(*others[0], {.kind = Kind::kPulled, .kept = orders[0].message.kept});
  Finish(Begin(worker));
  Leaves(*others[0]);
  EXPECT_TRUE(pulls.empty());
  EXPECT_EQ(Messages(Kind::kLetGo).size(), 1);
}

TEST_F(DrainsTest, UnlessTheNodeWhereItStaysIsGoneBeforeTheOtherIs) {
  const ObjectId value = ResultOf(ChildTask(RootTask(9), 1), 0);
  machine.Put(kDriver, value, ObjectValue::Remote(others[0]->index, 3, 100), {});
  Submit({value});
  Worker& worker = Borrow(*others[1]);
  Receive(*others[1], {.kind = Kind::kPulled, .kept = Messages(Kind::kPull).at(0).message.kept});
  Finish(Begin(worker));
  Leaves(*others[0]);
  std::vector<Told> let_go = Messages(Kind::kLetGo);
  ASSERT_EQ(let_go.size(), 1);
  EXPECT_TRUE(let_go[0].message.clean);
  machine.PeerDied(*others[1], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  machine.Run();
  let_go = Messages(Kind::kLetGo);
  ASSERT_EQ(let_go.size(), 1);
  EXPECT_FALSE(let_go[0].message.clean);
  ASSERT_EQ(pulls.size(), 1);
  Arrive(pulls[0], 64);
  let_go = Messages(Kind::kLetGo);
  ASSERT_EQ(let_go.size(), 1);
  EXPECT_TRUE(let_go[0].message.clean);
}

// The loan was for a group that is no more: it is given back before it was had.
TEST_F(DrainsTest, AfterALoanThatCrossedItAllIsLetGoOnceMore) {
  Leaves(*others[0]);
  EXPECT_EQ(Messages(Kind::kLetGo).size(), 1);
  Receive(*others[0], {.kind = Kind::kLend, .loan = 1, .scheduling = "@1 0 cpu=1"});
  const auto is_given_back = [](const Told& one) { return one.message.kind == Kind::kGiveBack; };
  EXPECT_TRUE(std::ranges::any_of(told, is_given_back));
  EXPECT_EQ(Messages(Kind::kLetGo).size(), 1);
}

// Of two that leave neither keeps what the other has.
TEST_F(DrainsTest, ACopyAtANodeThatWillLeaveTooDoesNotCount) {
  const ObjectId id = ResultOf(ChildTask(RootTask(9), 1), 0);
  machine.Put(kDriver, id, ObjectValue::Remote(others[0]->index, 3, 100), {});
  Submit({id});
  Worker& worker = Borrow(*others[1]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  Receive(*others[1], {.kind = Kind::kPulled, .kept = orders[0].message.kept});
  Finish(Begin(worker));
  Leaves(*others[0]);
  EXPECT_TRUE(pulls.empty());
  Leaves(*others[1]);
  EXPECT_EQ(pulls.size(), 1);
}

// ---- Actors that live there.

TEST_F(DrainsTest, ACheckpointedActorLivesOnElsewhereAndNoCallIsDoneTwice) {
  Worker* worker = nullptr;
  const Call actor = ConstructThere(worker);
  const Call first = Method(actor, {});
  const Running running = Begin(*worker);
  const Call second = Method(actor, {});
  const LeaseNumber behind = queues[worker->index].front()->lease;
  Leaves(*others[0]);
  Return(*worker, behind);
  EXPECT_TRUE(queues[worker->index].empty());  // It is not given again.
  Finish(running);
  const Running save = Begin(*worker);
  ASSERT_EQ(save.kind, CallKind::kSave);
  Finish(save, {ObjectValue::Remote(others[0]->index, 3, 100)});
  ASSERT_EQ(pulls.size(), 1);
  EXPECT_TRUE(Messages(Kind::kEnd).empty());
  Arrive(pulls[0], 64);
  EXPECT_EQ(Messages(Kind::kEnd).size(), 1);
  Worker& next = Borrow(*others[1], "gpu=1");
  Finish(Begin(next));
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  Receive(*others[1], {.kind = Kind::kPulled, .kept = orders[0].message.kept});
  const Running load = Begin(next);
  ASSERT_EQ(load.kind, CallKind::kLoad);
  Finish(load);
  EXPECT_EQ(Begin(next).task, second.task);
  EXPECT_EQ(State(first.result()), "value");
  EXPECT_EQ(machine.counts().replayed, 0);
  EXPECT_EQ(machine.counts().actors_restarted, 0);
  EXPECT_EQ(machine.counts().actors_moved, 1);
}

TEST_F(DrainsTest, OneThatHasDoneNothingNeedsNoCheckpoint) {
  Worker* worker = nullptr;
  const Call actor = ConstructThere(worker);
  Leaves(*others[0]);
  EXPECT_EQ(Messages(Kind::kEnd).size(), 1);
  Worker& next = Borrow(*others[1], "gpu=1");
  EXPECT_EQ(Begin(next).task, actor.task);
}

TEST_F(DrainsTest, OneWithoutCheckpointsStaysAndServes) {
  const Call actor = Construct({.scheduling = "gpu=1", .restarts = 5});
  Worker& worker = Borrow(*others[0], "gpu=1");
  Finish(Begin(worker));
  Leaves(*others[0]);
  const Call method = Method(actor, {});
  Finish(Begin(worker));
  EXPECT_EQ(State(method.result()), "value");
  EXPECT_TRUE(Messages(Kind::kEnd).empty());
  EXPECT_EQ(machine.counts().actors_moved, 0);
}

TEST_F(DrainsTest, WhatSuchAnActorMakesComesHome) {
  const Call actor = Construct({.scheduling = "gpu=1"});
  Worker& worker = Borrow(*others[0], "gpu=1");
  Finish(Begin(worker));
  Leaves(*others[0]);
  const Call method = Method(actor, {});
  Finish(Begin(worker), {ObjectValue::Remote(others[0]->index, 3, 100)});
  ASSERT_EQ(pulls.size(), 1);
  Arrive(pulls[0], 64);
  machine.PeerDied(*others[0], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  machine.Run();
  EXPECT_EQ(State(method.result()), "value");
}

TEST_F(DrainsTest, OneThatCouldNotBeMadeAgainStaysAndServes) {
  Worker* worker = nullptr;
  const Call actor = ConstructThere(worker);
  Method(actor, {});
  const Running running = Begin(*worker);
  for (int i = 0; i < 100; ++i) {  // What it was told is too much to keep,
    machine.Record(*worker, running.lease, std::vector<std::byte>(1000));
  }
  Leaves(*others[0]);
  Finish(running);
  Finish(Begin(*worker), {ObjectValue::Remote(others[0]->index, 3, 100)});
  ASSERT_EQ(pulls.size(), 1);
  machine.NoRoom(*machine.FindPull(pulls[0].pull), {});  // and so is its checkpoint.
  machine.Run();
  EXPECT_TRUE(Messages(Kind::kEnd).empty());
  const Call method = Method(actor, {});
  Finish(Begin(*worker));
  EXPECT_EQ(State(method.result()), "value");
}

// What is done for its sake when calls are given back is no call of anybody's, and is not lost.
TEST_F(DrainsTest, ACheckpointThatIsGivenBackIsMadeAllTheSame) {
  Worker* worker = nullptr;
  const Call actor = ConstructThere(worker);
  for (int i = 0; i < 9; ++i) {
    Method(actor, {});
    Finish(Begin(*worker));
  }
  Method(actor, {});
  const Running tenth = Begin(*worker);
  ASSERT_EQ(queues[worker->index].size(), 1);  // The checkpoint.
  Return(*worker, queues[worker->index].front()->lease);
  Finish(tenth);
  EXPECT_EQ(Begin(*worker).kind, CallKind::kSave);
}

// ---- This one will leave.

class LeavingTest : public testing::Test, public ToldWorld {
 protected:
  LeavingTest() : ToldWorld({.resources = Resources(2, 0), .workers = 2}) {
    machine.StartWorkers();
    borrower = &machine.AddPeer(NodeId{Id{.high = 1, .low = 10}}, 1, Resources(0, 0));
  }
  Peer* borrower = nullptr;
};

TEST_F(LeavingTest, ANodeThatOthersHaveNothingOfMayGoAtOnce) {
  machine.Drain();
  machine.Run();
  EXPECT_EQ(Messages(Kind::kLeaving).size(), 1);
  EXPECT_TRUE(machine.drain_progress().done());
  Receive(*borrower, {.kind = Kind::kWant, .count = 1});
  EXPECT_TRUE(Messages(Kind::kLend).empty());
  EXPECT_EQ(borrower->lent.size(), 0);
}

TEST_F(LeavingTest, WhoeverIsMetLaterIsToldToo) {
  machine.Drain();
  machine.Run();
  told.clear();
  machine.AddPeer(NodeId{Id{.high = 1, .low = 11}}, 1, Resources(0, 0));
  machine.Run();
  EXPECT_EQ(Messages(Kind::kLeaving).size(), 1);
}

TEST_F(LeavingTest, ItWaitsForItsWorkersAndForWhoNeedsWhatLiesHere) {
  Receive(*borrower, {.kind = Kind::kWant, .count = 1});
  const LoanNumber loan = Messages(Kind::kLend).at(0).message.loan;
  machine.Drain();
  machine.Run();
  EXPECT_EQ(machine.drain_progress().lent, 1);
  // He could not yet know that he has got it.
  Receive(*borrower, {.kind = Kind::kLetGo, .clean = true});
  machine.KeepFor(*borrower, Large(64));
  Receive(*borrower, {.kind = Kind::kGiveBack, .clean = true, .loan = loan});
  EXPECT_EQ(machine.drain_progress().lent, 0);
  EXPECT_EQ(machine.drain_progress().holders, 1);
  Receive(*borrower, {.kind = Kind::kLetGo, .clean = true, .count = 1, .bytes = 100});
  EXPECT_TRUE(machine.drain_progress().done());
  EXPECT_EQ(machine.drain_progress().values, 1);
  EXPECT_EQ(machine.drain_progress().bytes, 100);
}

// Bundles stay for as long as the node is there, and get workers; new ones it takes none.
TEST_F(LeavingTest, PlacementGroupsGoOnWhereTheyAre) {
  Receive(*borrower, {.kind = Kind::kReserve, .kept = 1, .text = "0;cpu=1"});
  ASSERT_EQ(Messages(Kind::kReserved).size(), 1);
  machine.Drain();
  machine.Run();
  EXPECT_EQ(machine.drain_progress().groups, 1);
  Receive(*borrower, {.kind = Kind::kReserve, .kept = 2, .text = "0;cpu=1"});
  EXPECT_EQ(Messages(Kind::kNotReserved).size(), 1);
  Receive(*borrower,
          {.kind = Kind::kLetGo, .clean = true});  // Which says nothing of what is still to come.
  Receive(*borrower, {.kind = Kind::kWant, .count = 1, .scheduling = "@1 0 cpu=1"});
  ASSERT_EQ(Messages(Kind::kLend).size(), 1);
  EXPECT_EQ(machine.drain_progress().lent, 1);
  machine.KeepFor(*borrower, Large(64));
  Receive(*borrower, {.kind = Kind::kGiveBack, .clean = true, .loan = 1});
  Receive(*borrower, {.kind = Kind::kRelease, .kept = 1});
  EXPECT_EQ(machine.drain_progress().holders, 1);
  Receive(*borrower, {.kind = Kind::kLetGo, .clean = true});
  EXPECT_TRUE(machine.drain_progress().done());
}

}  // namespace
}  // namespace menger
