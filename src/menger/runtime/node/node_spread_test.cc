#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/told_world.h"

// Which node a call is done by, of those that could: each in its turn, or the one that is
// preferred.
namespace menger {
namespace {

using Call = World::Call;
using Kind = PeerMessage::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;

NodeId IdOf(std::uint64_t number) { return NodeId{Id{.high = 1, .low = number}}; }
std::string NameOf(std::uint64_t number) { return "node:" + ToString(IdOf(number)); }

// A driver, and three nodes of two CPUs.
class SpreadWorld : public ToldWorld {
 public:
  SpreadWorld()
      : ToldWorld({.resources = Resources(0, 0),
                   .workers = 0,
                   .only_borrows = true,
                   .node_patience = 60 * kSecond}) {
    room = 1;
    machine.SetTime(kSecond);
    for (std::uint64_t i = 0; i < 3; ++i) {
      Resources total(2, 0);
      total.Set(NameOf(i), 1);
      peers.push_back(&machine.AddPeer(IdOf(i), 1, std::move(total)));
    }
  }

  Worker& Lend(int node, const std::string& scheduling) {
    Receive(*peers[node], {.kind = Kind::kLend, .loan = ++loans, .scheduling = scheduling});
    return *NodeMachine::FindBorrowed(*peers[node], loans);
  }
  void SayFull(int node, const std::string& scheduling) {
    Receive(*peers[node], {.kind = Kind::kFull, .scheduling = scheduling});
  }
  void End(int node) {
    machine.PeerDied(*peers[node], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
    machine.Run();
  }
  void Pass(std::int64_t nanoseconds) {
    time += nanoseconds;
    machine.SetTime(time);
    machine.Run();
  }
  std::size_t Has(const Worker& worker) { return queues[worker.index].size(); }
  std::string TextOf(const Call& call) {
    return DecodeFailure(machine.objects().Find(call.result())->value.payload).text;
  }

  std::vector<Peer*> peers;
  LoanNumber loans = 0;
  std::int64_t time = kSecond;
};

const std::string kSpread = "cpu=1;spread";

TEST(NodeSpreadTest, ANodeGetsAnotherCallOnceTheOthersHadTheirTurn) {
  SpreadWorld world;
  for (int i = 0; i < 4; ++i) world.Submit({}, {}, {.scheduling = kSpread});
  Worker& first = world.Lend(0, kSpread);
  Worker& second = world.Lend(0, kSpread);
  EXPECT_EQ(world.Has(first), 1);
  EXPECT_EQ(world.Has(second), 0);
  EXPECT_EQ(world.Has(world.Lend(1, kSpread)), 1);
  EXPECT_EQ(world.Has(second), 0);
  EXPECT_EQ(world.Has(world.Lend(2, kSpread)), 1);
  EXPECT_EQ(world.Has(second), 1);
}

TEST(NodeSpreadTest, WhoHasNoRoomOrDoesNotAnswerIsPassedOver) {
  SpreadWorld world;
  for (int i = 0; i < 6; ++i) world.Submit({}, {}, {.scheduling = kSpread});
  world.Lend(0, kSpread);
  Worker& second = world.Lend(0, kSpread);
  world.SayFull(1, kSpread);
  EXPECT_EQ(world.Has(second), 0);
  world.Pass(20 * kSecond);
  EXPECT_EQ(world.Has(second), 1);
  EXPECT_EQ(world.Has(world.Lend(1, kSpread)), 1);  // It has room after all.
}

TEST(NodeSpreadTest, OneCallAfterTheOtherIsDoneByOneNodeAfterTheOther) {
  SpreadWorld world;
  std::vector<Worker*> workers;
  for (int i = 0; i < 3; ++i) {
    world.Submit({}, {}, {.scheduling = kSpread});
    workers.push_back(&world.Lend(i, kSpread));
    ASSERT_EQ(world.Has(*workers.back()), 1);
    world.Finish(world.Begin(*workers.back()));
  }
  for (int i = 0; i < 6; ++i) {
    world.Submit({}, {}, {.scheduling = kSpread});
    ASSERT_EQ(world.Has(*workers[i % 3]), 1) << i;
    world.Finish(world.Begin(*workers[i % 3]));
  }
}

TEST(NodeSpreadTest, ActorsAreSpreadToo) {
  SpreadWorld world;
  const Call one = world.Construct({.scheduling = kSpread});
  const Call other = world.Construct({.scheduling = kSpread});
  world.Finish(world.Begin(world.Lend(0, kSpread)));
  Worker& idle = world.Lend(0, kSpread);
  world.Messages(Kind::kGiveBack);
  world.Pass(kSecond);
  EXPECT_EQ(world.Has(idle), 0);
  EXPECT_TRUE(world.Messages(Kind::kGiveBack).empty());  // It may come to be needed.
  world.Finish(world.Begin(world.Lend(1, kSpread)));
  EXPECT_EQ(world.State(one.result()), "value");
  EXPECT_EQ(world.State(other.result()), "value");
}

// Also what needs no resources at all, of which it has as much as anybody.
TEST(NodeSpreadTest, AnotherProgramIsNeitherAskedNorWaitedFor) {
  const std::string nothing = "cpu=0;spread";
  SpreadWorld world;
  Peer& driver = world.machine.AddPeer(IdOf(9), 1, Resources());
  world.machine.LendsNothing(driver);
  for (int i = 0; i < 4; ++i) world.Submit({}, {}, {.scheduling = nothing});
  for (const auto& want : world.Messages(Kind::kWant)) EXPECT_NE(want.to, driver.index);
  Worker& first = world.Lend(0, nothing);
  Worker& second = world.Lend(0, nothing);
  for (int node : {1, 2}) EXPECT_EQ(world.Has(world.Lend(node, nothing)), 1);
  EXPECT_EQ(world.Has(first), 1);
  EXPECT_EQ(world.Has(second), 1);
}

TEST(NodeSpreadTest, WhoHasLentEnoughIsAskedForNoMore) {
  SpreadWorld world;
  for (int i = 0; i < 4; ++i) world.Submit({}, {}, {.scheduling = kSpread});
  world.Messages(Kind::kWant);
  for (int i = 0; i < 4; ++i) world.Lend(0, kSpread);  // Three wait for the others' turns.
  world.machine.Run();
  EXPECT_TRUE(world.Messages(Kind::kWant).empty());
  world.Submit({}, {}, {.scheduling = kSpread});
  const auto asked = world.Messages(Kind::kWant);
  ASSERT_EQ(asked.size(), 1);
  EXPECT_EQ(asked[0].to, world.peers[0]->index);
  EXPECT_EQ(asked[0].message.count, 1);
}

TEST(NodeSpreadTest, ALenderSaysThatItHasNoRoomAndSaysItOnce) {
  ToldWorld world({.resources = Resources(1, 0), .workers = 1});
  world.machine.StartWorkers();
  Peer& driver = world.machine.AddPeer(IdOf(9), 1, Resources(0, 0));
  world.Receive(driver, {.kind = Kind::kWant, .count = 2, .scheduling = kSpread});
  EXPECT_EQ(world.told.size(), 2);
  EXPECT_EQ(world.Messages(Kind::kFull).size(), 1);
  world.machine.Run();
  EXPECT_TRUE(world.told.empty());
  // Of others nobody awaits that.
  world.Receive(driver, {.kind = Kind::kWant, .count = 2});
  EXPECT_TRUE(world.told.empty());
}

// What it said is of what was asked for then.
TEST(NodeSpreadTest, WhoHadNoRoomIsAskedAgainForTheNextCall) {
  SpreadWorld world;
  world.Submit({}, {}, {.scheduling = kSpread});
  Worker& first = world.Lend(0, kSpread);
  ASSERT_EQ(world.Has(first), 1);
  world.SayFull(1, kSpread);  // Late: it is asked for nothing now.
  world.Submit({}, {}, {.scheduling = kSpread});
  world.SayFull(1, kSpread);
  world.SayFull(2, kSpread);
  world.Finish(world.Begin(first));
  ASSERT_EQ(world.Has(first), 1);
  world.Finish(world.Begin(first));
  world.Submit({}, {}, {.scheduling = kSpread});
  EXPECT_EQ(world.Has(first), 0);
  EXPECT_EQ(world.Has(world.Lend(2, kSpread)), 1);
}

// ---- One node, or that if it can be had.

TEST(NodeSpreadTest, WhatPrefersANodeWaitsForItAndGoesElsewhereWhenItEnds) {
  SpreadWorld world;
  const std::string soft = "cpu=1;" + NameOf(0) + "=0.0001";
  const Call running = world.Submit({.retries = 1}, {}, {.scheduling = soft});
  world.Lend(0, soft);
  const Call waiting = world.Submit({}, {}, {.scheduling = soft});
  const Call actor = world.Construct({.scheduling = soft});
  for (const auto& want : world.Messages(Kind::kWant)) EXPECT_EQ(want.to, world.peers[0]->index);
  world.End(0);
  EXPECT_EQ(world.Messages(Kind::kWant).back().message.scheduling, "cpu=1");
  world.Finish(world.Begin(world.Lend(1, "cpu=1")));  // The actor's.
  Worker& worker = world.Lend(1, "cpu=1");
  for (int i = 0; i < 2; ++i) world.Finish(world.Begin(worker));
  for (const Call& call : {waiting, actor, running}) {
    EXPECT_EQ(world.State(call.result()), "value");
  }
  // Those that follow know.
  const Call late = world.Submit({}, {}, {.scheduling = soft});
  world.Finish(world.Begin(worker));
  EXPECT_EQ(world.State(late.result()), "value");
}

TEST(NodeSpreadTest, WhatPrefersANodeThatIsNotThereOrTooSmallGoesElsewhereSoon) {
  SpreadWorld world;
  world.machine.AddPeer(IdOf(7), 1, Resources(4, 0));
  world.Submit({}, {}, {.scheduling = "cpu=1;" + NameOf(8) + "=0.0001"});
  world.Submit({}, {}, {.scheduling = "cpu=4;" + NameOf(0) + "=0.0001"});
  const auto wanted = [&](const std::string& scheduling) {
    bool any = false;
    for (const auto& want : world.told) any |= want.message.scheduling == scheduling;
    return any;
  };
  world.machine.Run();
  EXPECT_FALSE(wanted("cpu=1"));  // It may be about to be met.
  EXPECT_TRUE(wanted("cpu=4"));
  world.Pass(2 * kSecond);
  EXPECT_TRUE(wanted("cpu=1"));
}

TEST(NodeSpreadTest, WhatMayBeOnOneNodeAloneFailsWithIt) {
  SpreadWorld world;
  const std::string hard = "cpu=1 " + NameOf(0) + "=0.0001";
  const Call call = world.Submit({}, {}, {.scheduling = hard});
  const Call actor = world.Construct({.scheduling = hard});
  const Call large = world.Submit({}, {}, {.scheduling = "cpu=3 " + NameOf(1) + "=0.0001"});
  const Call unknown = world.Submit({}, {}, {.scheduling = NameOf(8) + "=0.0001"});
  EXPECT_EQ(world.State(large.result()), "node died");
  EXPECT_NE(world.TextOf(large).find("has not what it needs: cpu"), std::string::npos);
  world.End(0);
  EXPECT_EQ(world.State(call.result()), "node died");
  EXPECT_EQ(world.State(actor.result()), "actor died");
  EXPECT_NE(world.TextOf(call).find("the only node that may do it, node:"), std::string::npos);
  EXPECT_EQ(world.State(unknown.result()), "");
  world.Pass(2 * kSecond);
  EXPECT_EQ(world.State(unknown.result()), "node died");
}

}  // namespace
}  // namespace menger
