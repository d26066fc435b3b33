#include <gtest/gtest.h>

#include <vector>

#include "menger/runtime/testing/lending_world.h"

// A node whose workers run the programs of others, and a driver that has none of its own.
namespace menger {
namespace {

using Kind = PeerMessage::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;

// The second's program is there, too.
std::vector<LoanNumber> LendAllToTheFirst(LendingWorld& world) {
  world.machine.SetProgram(*world.drivers[0], 1);
  world.machine.SetProgram(*world.drivers[1], 2);
  world.Want(0, 2);
  world.StartAll(1);
  return world.Lent(0);
}

TEST(NodeGuestsTest, WorkersAreLentOnceTheProgramIsThereAndNoMoreThanThereIsRoomFor) {
  LendingWorld world;
  world.Want(0, 8);
  EXPECT_TRUE(world.starting.empty());
  world.machine.SetProgram(*world.drivers[0], 1);
  world.machine.Run();
  EXPECT_EQ(world.starting[1], 2);
  world.StartAll(1);
  EXPECT_EQ(world.Lent(0).size(), 2);
  EXPECT_EQ(world.machine.scheduler().available().Get("cpu"), 0);
}

TEST(NodeGuestsTest, WhatOneDriverGivesBackIsForAnotherOnlyAsRoom) {
  LendingWorld world;
  const std::vector<LoanNumber> loans = LendAllToTheFirst(world);
  world.Want(1, 2);
  EXPECT_EQ(world.starting[2], 0);
  for (const LoanNumber loan : loans) world.GiveBack(0, loan);
  EXPECT_EQ(world.starting[2], 2);
  world.StartAll(2);
  EXPECT_EQ(world.Lent(1).size(), 2);
  EXPECT_EQ(world.Lent(0).size(), 0);
}

// Of more that wait than there are CPUs those go that have waited for the longest, and none that
// somebody is about to get.
TEST(NodeGuestsTest, IdleOnesMakeWayForThoseThatAreWanted) {
  LendingWorld world;
  // The driver who comes last was met first.
  world.machine.SetProgram(*world.drivers[1], 2);
  world.Want(1, 2);
  world.StartAll(2);
  for (const LoanNumber loan : world.Lent(1)) world.GiveBack(1, loan);
  EXPECT_TRUE(world.ended.empty());
  world.machine.SetProgram(*world.drivers[0], 1);
  world.machine.SetTime(kSecond);
  world.Want(0, 1);
  world.StartAll(1);
  EXPECT_EQ(world.Lent(0).size(), 1);
  EXPECT_EQ(world.ended.size(), 1);
}

TEST(NodeGuestsTest, OneThatStillRefersToSomethingRestsAndGoesOn) {
  LendingWorld world;
  world.machine.SetProgram(*world.drivers[0], 1);
  world.Want(0, 1);
  world.StartAll(1);
  const LoanNumber loan = world.Lent(0).front();
  world.GiveBack(0, loan, /*clean=*/false);
  EXPECT_EQ(world.machine.scheduler().available().Get("cpu"), 2);
  world.GiveBack(0, loan, /*clean=*/false);  // He has nothing to give.
  world.Want(0, 1);
  EXPECT_EQ(world.Lent(0), std::vector<LoanNumber>{loan});
  EXPECT_EQ(world.machine.scheduler().available().Get("cpu"), 1);
  EXPECT_TRUE(world.ended.empty());
}

TEST(NodeGuestsTest, OneThatRestsEndsWithItsBorrower) {
  LendingWorld world;
  world.machine.SetProgram(*world.drivers[0], 1);
  world.Want(0, 1);
  world.StartAll(1);
  world.GiveBack(0, world.Lent(0).front(), /*clean=*/false);
  world.machine.PeerDied(*world.drivers[0], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  world.machine.Run();
  EXPECT_EQ(world.ended.size(), 1);
  EXPECT_EQ(world.machine.workers(), 0);
}

TEST(NodeGuestsTest, OfOneThatRestedAndMadeWayItsBorrowerHears) {
  LendingWorld world;
  const std::vector<LoanNumber> loans = LendAllToTheFirst(world);
  for (const LoanNumber loan : loans) world.GiveBack(0, loan, /*clean=*/false);
  world.Want(1, 2);
  world.StartAll(2);
  for (const LoanNumber loan : world.Lent(1)) world.GiveBack(1, loan, /*clean=*/false);
  world.machine.Run();
  EXPECT_EQ(world.ended.size(), 2);
  std::vector<LoanNumber> lost;
  for (const PeerMessage& message : world.told[world.drivers[0]->index]) {
    if (message.kind == Kind::kLost) lost.push_back(message.loan);
  }
  EXPECT_EQ(lost, loans);
}

TEST(NodeGuestsTest, ADriverThatIsGoneTakesHisWorkersWithHim) {
  LendingWorld world;
  world.machine.SetProgram(*world.drivers[0], 1);
  world.Want(0, 2);
  world.StartAll(1);
  world.GiveBack(0, world.Lent(0).front());
  world.Want(0, 2, "cpu=2");  // Asked for while one is lent: none is free.
  world.machine.PeerDied(*world.drivers[0], {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  world.machine.Run();
  EXPECT_EQ(world.ended.size(), 2);
  EXPECT_EQ(world.machine.workers(), 0);
  EXPECT_EQ(world.machine.AddGuest(world.machine.NewWorkerIndex(), 1), nullptr);
  EXPECT_EQ(world.machine.scheduler().available().Get("cpu"), 2);
}

TEST(NodeGuestsTest, AProgramThatDoesNotRunHereIsSaid) {
  LendingWorld world;
  world.machine.SetProgram(*world.drivers[0], 1);
  world.Want(0, 1);
  world.machine.GuestFailed(1, "");  // Somebody killed it: another is started.
  world.machine.Run();
  world.machine.GuestFailed(1, "it lacks libodd.so");
  world.machine.Run();
  const std::vector<PeerMessage>& told = world.told[world.drivers[0]->index];
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().kind, Kind::kCannot);
  EXPECT_NE(told.back().text.find("libodd.so"), std::string::npos);
  world.machine.SetProgram(*world.drivers[0], 2);
  EXPECT_EQ(told.back().kind, Kind::kCannot);
  EXPECT_EQ(told.back().text, "");
}

// ---- The driver.

class DriverWorld : public World {
 public:
  DriverWorld()
      : World({.resources = Resources(0, 0),
               .workers = 0,
               .only_borrows = true,
               .node_patience = 60 * kSecond}) {
    machine.SetTime(kSecond);
  }
  void Warn(std::string_view text) override { warnings.emplace_back(text); }
  void Pass(std::int64_t to) {
    machine.SetTime(to);
    machine.Run();
  }
  std::string TextOf(ObjectId id) {
    return DecodeFailure(machine.objects().Find(id)->value.payload).text;
  }

  std::vector<std::string> warnings;
};

TEST(NodeGuestsTest, CallsWaitForANodeAndAreToldOfWhenNoneComes) {
  DriverWorld world;
  const DriverWorld::Call call = world.Submit();
  world.Pass(2 * kSecond);
  EXPECT_TRUE(world.warnings.empty());
  world.Pass(30 * kSecond);
  EXPECT_EQ(world.warnings.size(), 1);
  EXPECT_EQ(world.State(call.result()), "");
  world.Pass(62 * kSecond);
  EXPECT_EQ(world.State(call.result()), "node died");
  EXPECT_EQ(world.warnings.size(), 1);
}

TEST(NodeGuestsTest, ANodeThatComesInTimeIsAskedAndOneThatCannotIsNamed) {
  DriverWorld world;
  const DriverWorld::Call call = world.Submit();
  world.Pass(50 * kSecond);
  Peer& node = world.machine.AddPeer(NodeId{Id{.high = 1, .low = 20}}, 1, Resources(4, 0));
  world.Pass(70 * kSecond);
  EXPECT_EQ(world.State(call.result()), "");
  world.machine.Receive(node, {.kind = Kind::kCannot, .text = "it lacks libodd.so"});
  world.Pass(71 * kSecond);
  EXPECT_EQ(world.State(call.result()), "");
  world.Pass(132 * kSecond);
  EXPECT_EQ(world.State(call.result()), "node died");
  EXPECT_NE(world.TextOf(call.result()).find("libodd.so"), std::string::npos);
}

TEST(NodeGuestsTest, ANodeThatCouldNotAndCanIsAskedAgainAndTheProgramToldWhy) {
  DriverWorld world;
  Peer& node = world.machine.AddPeer(NodeId{Id{.high = 1, .low = 20}}, 1, Resources(4, 0));
  world.machine.Receive(node, {.kind = Kind::kCannot, .text = "its disk is full"});
  ASSERT_EQ(world.warnings.size(), 1);
  EXPECT_NE(world.warnings[0].find("its disk is full"), std::string::npos);
  const DriverWorld::Call call = world.Submit();
  world.Pass(1 * kSecond);
  EXPECT_TRUE(node.asked.empty());
  world.machine.Receive(node, {.kind = Kind::kCannot});
  world.Pass(2 * kSecond);
  EXPECT_FALSE(node.asked.empty());
  EXPECT_EQ(world.State(call.result()), "");
  EXPECT_EQ(world.warnings.size(), 1);
}

TEST(NodeGuestsTest, WhoIsCutOffWaitsForNobody) {
  DriverWorld world;
  const DriverWorld::Call before = world.Submit();
  world.machine.CutOff("the cluster is over");
  world.machine.Run();
  const DriverWorld::Call after = world.Submit();
  for (const ObjectId result : {before.result(), after.result()}) {
    EXPECT_EQ(world.State(result), "node died");
    EXPECT_NE(world.TextOf(result).find("the cluster is over"), std::string::npos);
  }
}

}  // namespace
}  // namespace menger
