#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/runtime/testing/told_world.h"

// Where values lie that several nodes read: what their owner orders, and what a node does that is
// told to pull one.
namespace menger {
namespace {

using Call = World::Call;
using Kind = PeerMessage::Kind;

// A node without workers of its own, and others that each lend it one at a time.
class CopiesTest : public testing::Test, public ToldWorld {
 protected:
  CopiesTest() : ToldWorld({.resources = Resources(0, 0), .workers = 0, .wait_here_max = 0}) {
    room = 1;
    for (std::uint64_t i = 0; i < 5; ++i) {
      others.push_back(&machine.AddPeer(NodeId{Id{.high = 1, .low = 10 + i}}, 1, Resources(4, 1)));
    }
  }

  void Pull(const PullOrder& order) override { pulls.push_back(order); }
  void Refuse(const Watch& watch, const Object&, const Payload&) override {
    refused.push_back(watch.request);
  }

  Worker& Borrow(Peer& peer) {
    const LoanNumber loan = ++last_loan;
    Receive(peer, {.kind = Kind::kLend, .loan = loan});
    return *NodeMachine::FindBorrowed(peer, loan);
  }
  void Arrive(const Told& pull) {
    Receive(*machine.FindPeer(pull.to), {.kind = Kind::kPulled, .kept = pull.message.kept});
  }
  ObjectId Put(ObjectValue value) {
    const ObjectId id = ResultOf(ChildTask(RootTask(9), ++puts), 0);
    machine.Put(kDriver, id, std::move(value), {});
    return id;
  }
  void End(Peer& peer) {
    machine.PeerDied(peer, {.kind = FailureKind::kNodeDied, .text = "it is gone"});
    machine.Run();
  }

  std::vector<Peer*> others;
  std::vector<PullOrder> pulls;
  std::vector<std::uint64_t> refused;  // Watches.
  LoanNumber last_loan = 0;
  std::uint64_t puts = 0;
};

TEST_F(CopiesTest, ANodePullsOnceForAllItsWorkers) {
  const ObjectId value = Put(Large(64));
  for (int i = 0; i < 3; ++i) Submit({value});
  Worker& first = Borrow(*others[0]);
  Worker& second = Borrow(*others[0]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_FALSE(orders[0].message.source.valid());  // From here.
  EXPECT_EQ(orders[0].message.bytes, 100);
  EXPECT_EQ(machine.FindPull(orders[0].message.kept), machine.objects().Find(value));
  EXPECT_TRUE(queues[first.index].empty());
  Arrive(orders[0]);
  EXPECT_EQ(queues[first.index].size(), 1);
  EXPECT_EQ(queues[second.index].size(), 1);
  EXPECT_EQ(machine.NameAt(*machine.objects().Find(value), others[0]->index),
            orders[0].message.kept);
}

TEST_F(CopiesTest, EachPlaceServesTwoAtATimeAndNewCopiesServeOthers) {
  const ObjectId value = Put(Large(64));
  for (int i = 0; i < 5; ++i) Submit({value});
  for (Peer* const other : others) Borrow(*other);
  std::vector<Told> first = Messages(Kind::kPull);
  ASSERT_EQ(first.size(), 2);
  Arrive(first[0]);
  const std::vector<Told> next = Messages(Kind::kPull);
  ASSERT_EQ(next.size(), 3);  // Two from the new copy, and one from here.
  EXPECT_EQ(next[0].message.source, others[0]->node);
  EXPECT_EQ(next[0].message.source_epoch, 1);
  EXPECT_EQ(next[0].message.source_name, first[0].message.kept);
  int from_here = 0;
  for (const Told& one : next) from_here += one.message.source.valid() ? 0 : 1;
  EXPECT_EQ(from_here, 1);
  Arrive(first[1]);
  for (const Told& one : next) Arrive(one);
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  Forget(value);
  FinishAll();
  for (Peer* const other : others) {
    for (const auto& [loan, worker] : other->borrowed) Finish(Begin(*worker));
  }
  EXPECT_EQ(Messages(Kind::kDrop).size(), 5);
  EXPECT_EQ(freed, std::vector<std::uint64_t>{64});
}

// For as long as the bytes would take, which are 10 ms here.
TEST_F(CopiesTest, ACallWaitsForAWorkerWhereItsArgumentLies) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 10'000'000));
  Submit({value});
  Worker& far = Borrow(*others[1]);
  EXPECT_TRUE(queues[far.index].empty());
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  Worker& near = Borrow(*others[0]);
  EXPECT_EQ(queues[near.index].size(), 1);
  EXPECT_TRUE(Messages(Kind::kPull).empty());
}

TEST_F(CopiesTest, ACallDoesNotWaitForLongerThanItsArgumentTakes) {
  machine.SetTime(1'000'000'000);
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 10'000'000));
  Submit({value});
  Borrow(*others[1]);
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  machine.SetTime(1'009'000'000);
  EXPECT_LE(machine.next_deadline(), 1'010'000'000);
  machine.Run();
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  machine.SetTime(1'010'000'000);
  machine.Run();
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
}

// By what values took on that way, of which nothing is known at first.
TEST_F(CopiesTest, HowLongItWaitsFollowsHowLongOthersTook) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  std::int64_t now = 1'000'000'000;
  // A value of 10 MB: how long a call waits with it for a worker of another node than that which
  // the first lent, until it is to go to that; and then it goes there, which takes so long.
  const auto waited = [&](Peer& to, std::int64_t takes) {
    machine.SetTime(now);
    Submit({Put(ObjectValue::Remote(others[0]->index, 7, 10'000'000))});
    Worker& worker = Borrow(to);
    std::vector<Told> pulls_told;
    const std::int64_t began = now;
    while ((pulls_told = Messages(Kind::kPull)).empty() && now - began < 2'000 * kMillisecond) {
      machine.SetTime(now += kMillisecond);
      machine.Run();
    }
    const std::int64_t took = now - began;
    machine.SetTime(now += takes);
    Arrive(pulls_told.at(0));
    Finish(Begin(worker));
    machine.SetTime(now += 1'000 * kMillisecond);
    machine.Run();
    return took / kMillisecond;
  };
  EXPECT_EQ(waited(*others[1], 1'000 * kMillisecond), 10);
  EXPECT_NEAR(waited(*others[1], kMillisecond), 717, 2);  // 10 MB count 10 / 14, and before 4 / 14.
  EXPECT_NEAR(waited(*others[2], 0), 205, 2);             // Another way: as all so far.
  EXPECT_NEAR(waited(*others[2], 0), 59, 2);
}

TEST_F(CopiesTest, OthersGoBeforeACallThatWaitsForItsArgument) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 10'000'000));
  Submit({value});
  Submit();
  EXPECT_EQ(queues[Borrow(*others[1]).index].size(), 1);
  EXPECT_TRUE(Messages(Kind::kPull).empty());
}

// However many there are that need nothing.
TEST_F(CopiesTest, OthersDoNotGoBeforeItForEver) {
  machine.SetTime(1'000'000'000);
  Submit();
  Worker& worker = Borrow(*others[1]);
  Submit({Put(Large(64))});
  std::size_t pulls_asked = 0;
  for (int i = 0; i < 5 && pulls_asked == 0; ++i) {
    Submit();
    Submit();
    machine.SetTime(1'001'000'000 + 1'000'000 * i);
    Finish(Begin(worker));
    machine.Run();
    pulls_asked = Messages(Kind::kPull).size();
  }
  EXPECT_EQ(pulls_asked, 1);
}

TEST_F(CopiesTest, AValueIsLostWithItsLastCopy) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 100));
  Submit({value});
  Borrow(*others[1]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].message.source_name, 7);
  Arrive(orders[0]);
  End(*others[0]);
  EXPECT_EQ(State(value), "value");
  End(*others[1]);
  EXPECT_EQ(State(value), "object lost");
}

TEST_F(CopiesTest, WhatNothingMakesAgainIsKeptForWhatLiesElsewhere) {
  const ObjectId put = Put(Large(64));
  const Call call = Submit({put});
  Worker& maker = Borrow(*others[0]);
  Arrive(Messages(Kind::kPull).at(0));
  Finish(Begin(maker), {ObjectValue::Remote(others[0]->index, 7, 100)});
  Forget(put);
  EXPECT_TRUE(freed.empty());
  End(*others[0]);
  EXPECT_EQ(State(call.result()), "");
  Worker& other = Borrow(*others[1]);
  Arrive(Messages(Kind::kPull).at(0));
  const Running again = Begin(other);
  EXPECT_EQ(again.task, call.task);
  Finish(again, {ObjectValue::Remote(others[1]->index, 8, 100)});
  Forget(call.result());
  EXPECT_EQ(freed, std::vector<std::uint64_t>{64});
}

// Its home would be the place that is needed for that.
TEST_F(CopiesTest, WhatAnActorIsMadeAgainWithIsMadeBeforeItHasAHome) {
  const Call made = Submit();
  Worker& maker = Borrow(*others[0]);
  Finish(Begin(maker), {ObjectValue::Remote(others[0]->index, 7, 100)});
  const Call actor =
      Submit({.kind = CallKind::kConstruct, .retries = 0}, {made.result()}, {.restarts = 1});
  Finish(Begin(maker));
  ASSERT_EQ(State(actor.result()), "value");
  End(*others[0]);
  Worker& other = Borrow(*others[1]);
  ASSERT_EQ(queues[other.index].size(), 1);
  const Running again = Begin(other);
  EXPECT_EQ(again.task, made.task);
  Finish(again, {ObjectValue::Remote(others[1]->index, 8, 100)});
  ASSERT_EQ(queues[other.index].size(), 1);
  EXPECT_EQ(Begin(other).kind, CallKind::kConstruct);
}

TEST_F(CopiesTest, AnActorLeavesItsHomeForWhatIsMadeAgain) {
  const Call made = Submit();
  Worker& maker = Borrow(*others[0]);
  Finish(Begin(maker), {ObjectValue::Remote(others[0]->index, 7, 100)});
  Submit({.kind = CallKind::kConstruct, .retries = 0}, {made.result()}, {.scheduling = "gpu=1"});
  Receive(*others[1], {.kind = Kind::kLend, .loan = ++last_loan, .scheduling = "gpu=1"});
  const LoanNumber home = last_loan;
  ASSERT_NE(NodeMachine::FindBorrowed(*others[1], home), nullptr);
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
  End(*others[0]);  // What it reads is under way to it.
  EXPECT_EQ(NodeMachine::FindBorrowed(*others[1], home), nullptr);
  Worker& other = Borrow(*others[2]);
  ASSERT_EQ(queues[other.index].size(), 1);
  EXPECT_EQ(Begin(other).task, made.task);
}

TEST_F(CopiesTest, WhatWasUnderWayFromANodeThatDiesComesFromAnother) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 100));
  Submit({value});
  Borrow(*others[1]);
  Arrive(Messages(Kind::kPull).at(0));
  Submit({value});
  Borrow(*others[2]);
  std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].message.source, others[1]->node);  // The newer one.
  End(*others[1]);
  const std::vector<Told> again = Messages(Kind::kPull);
  ASSERT_EQ(again.size(), 1);
  EXPECT_EQ(again[0].message.source, others[0]->node);
  // What comes of the first order nevertheless is of no use.
  Arrive(orders[0]);
  EXPECT_EQ(Messages(Kind::kDrop).at(0).message.kept, orders[0].message.kept);
  Arrive(again[0]);
  EXPECT_NE(machine.NameAt(*machine.objects().Find(value), others[2]->index), 0);
}

TEST_F(CopiesTest, WhatHasNoRoomWhereItIsReadFailsWhatWaitsForItThereAlone) {
  const ObjectId value = Put(Large(64));
  const Call first = Submit({value});
  const Call second = Submit({value});
  Borrow(*others[0]);
  Worker& roomy = Borrow(*others[1]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 2);
  Receive(*others[0], {.kind = Kind::kNotPulled,
                       .kept = orders[0].message.kept,
                       .cause = {.kind = FailureKind::kOutOfMemory, .text = "it is full"}});
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  Arrive(orders[1]);
  Finish(Begin(roomy));
  EXPECT_EQ(State(first.result()), "out of memory");
  EXPECT_EQ(State(second.result()), "value");
}

// Two of them fill what calls may read there.
TEST_F(CopiesTest, NoMoreIsBroughtToANodeThanItsMemoryHasRoomFor) {
  Peer& small = machine.AddPeer(NodeId{Id{.high = 1, .low = 20}}, 1, Resources(4, 0), 250);
  for (int i = 0; i < 3; ++i) Submit({Put(Large(64 + i))});
  std::vector<Worker*> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(&Borrow(small));
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 2);
  for (const Told& order : orders) Arrive(order);
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  const auto busy = std::ranges::find_if(
      workers, [](const Worker* worker) { return !worker->outstanding.empty(); });
  Finish(Begin(**busy));
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
}

TEST_F(CopiesTest, OfAMemoryThatIsSharedOnlyAPartIsFilled) {
  Peer& small = machine.AddPeer(NodeId{Id{.high = 1, .low = 20}}, 1, Resources(4, 0), 250);
  Receive(small, {.kind = Kind::kSharers, .count = 2});
  for (int i = 0; i < 2; ++i) Submit({Put(Large(64 + i))});
  for (int i = 0; i < 2; ++i) Borrow(small);
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
  Receive(small, {.kind = Kind::kSharers, .count = 1});
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
}

TEST_F(CopiesTest, WhoWaitsForRoomAtANodeGoesWhereThereIsSome) {
  Peer& small = machine.AddPeer(NodeId{Id{.high = 1, .low = 20}}, 1, Resources(4, 0), 150);
  for (int i = 0; i < 2; ++i) Submit({Put(Large(64 + i))});
  Borrow(small);
  Borrow(small);
  EXPECT_EQ(Messages(Kind::kPull).size(), 1);
  Borrow(*others[0]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].to, others[0]->index);
}

TEST_F(CopiesTest, WhatHasNoRoomHereFailsWhoWatchesItAndIsNotAskedForAgain) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 100));
  Object& object = *machine.objects().Find(value);
  machine.WatchObject({kDriver, 5}, object, /*with_value=*/true);
  ASSERT_EQ(pulls.size(), 1);
  machine.PullRefused(nullptr, pulls[0].pull,
                      {.kind = FailureKind::kOutOfMemory, .text = "it is full"});
  machine.Run();
  EXPECT_EQ(refused, std::vector<std::uint64_t>{5});
  EXPECT_EQ(pulls.size(), 1);
  EXPECT_EQ(State(value), "value");
}

TEST_F(CopiesTest, WhatOneNodeCannotGiveAnotherComesByWayOfThisOne) {
  const ObjectId value = Put(ObjectValue::Remote(others[0]->index, 7, 100));
  Submit({value});
  Borrow(*others[1]);
  const std::vector<Told> orders = Messages(Kind::kPull);
  Receive(*others[1], {.kind = Kind::kNotPulled, .kept = orders.at(0).message.kept});
  EXPECT_TRUE(Messages(Kind::kPull).empty());
  ASSERT_EQ(pulls.size(), 1);
  EXPECT_EQ(pulls[0].source, others[0]);
  EXPECT_EQ(pulls[0].name, 7);
  machine.Pulled(nullptr, pulls[0].pull, Large(64));
  const std::vector<Told> again = Messages(Kind::kPull);
  ASSERT_EQ(again.size(), 1);
  EXPECT_FALSE(again[0].message.source.valid());
}

TEST_F(CopiesTest, ANodeKeepsWhatItWasToldToPullUntilItIsDropped) {
  Receive(*others[0], {.kind = Kind::kPull,
                       .kept = 5,
                       .source = others[1]->node,
                       .source_epoch = 1,
                       .source_name = 8,
                       .bytes = 100});
  ASSERT_EQ(pulls.size(), 1);
  EXPECT_EQ(pulls[0].owner, others[0]);
  EXPECT_EQ(pulls[0].source, others[1]);
  EXPECT_EQ(pulls[0].name, 8);
  machine.Pulled(others[0], 5, Large(64));
  EXPECT_EQ(Messages(Kind::kPulled).at(0).message.kept, 5);
  EXPECT_NE(machine.FindKept(*others[0], 5), nullptr);
  Receive(*others[0], {.kind = Kind::kDrop, .kept = 5});
  EXPECT_EQ(freed, std::vector<std::uint64_t>{64});
}

TEST_F(CopiesTest, ANodeSaysThatItKnowsNoSuchSource) {
  Receive(*others[0],
          {.kind = Kind::kPull, .kept = 5, .source = others[1]->node, .source_epoch = 2});
  EXPECT_TRUE(pulls.empty());
  EXPECT_EQ(Messages(Kind::kNotPulled).at(0).message.kept, 5);
}

}  // namespace
}  // namespace menger
