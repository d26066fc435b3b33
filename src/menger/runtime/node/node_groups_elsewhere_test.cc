#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/told_world.h"

// Placement groups with bundles on other nodes: a node with one CPU, and two others.
namespace menger {
namespace {

using Call = World::Call;
using Kind = PeerMessage::Kind;

class GroupsElsewhereTest : public testing::Test, public ToldWorld {
 protected:
  GroupsElsewhereTest() : ToldWorld({.resources = Resources(1, 0), .workers = 1}) {
    machine.StartWorkers();
    first = &machine.AddPeer(NodeId{Id{.high = 1, .low = 10}}, 1, Resources(2, 0));
    second = &machine.AddPeer(NodeId{Id{.high = 1, .low = 11}}, 1, Resources(2, 1));
  }

  void Grant(const Told& asked) {
    Receive(*machine.FindPeer(asked.to), {.kind = Kind::kReserved, .kept = asked.message.kept});
  }
  Call Reserve(const std::string& what) {
    return Submit({.kind = CallKind::kReserve}, {}, {.scheduling = what});
  }
  Call CallIn(const Call& group, const std::string& scheduling) {
    return Submit({.home = group.result()}, {}, {.scheduling = scheduling});
  }
  void Die(Peer& peer) {
    machine.PeerDied(peer, {.kind = FailureKind::kNodeDied, .text = "it is gone"});
    machine.Run();
  }
  double FreeCpus() const { return machine.scheduler().available().Get("cpu"); }

  Peer* first = nullptr;
  Peer* second = nullptr;
};

TEST_F(GroupsElsewhereTest, BundlesThatAreSpreadAreReadyOnceAllNodesHaveTheirs) {
  const Call group = Reserve("SPREAD;cpu=1;cpu=1;cpu=1");
  const std::vector<Told> asked = Messages(Kind::kReserve);
  ASSERT_EQ(asked.size(), 2);
  EXPECT_EQ(asked[0].to, first->index);
  EXPECT_EQ(asked[0].message.text, "1;cpu=1");
  EXPECT_EQ(asked[1].message.text, "2;cpu=1");
  EXPECT_EQ(FreeCpus(), 0);
  Grant(asked[0]);
  EXPECT_EQ(State(group.result()), "");
  Grant(asked[1]);
  EXPECT_EQ(State(group.result()), "value");
  Forget(group.result());
  EXPECT_EQ(Messages(Kind::kRelease).size(), 2);
  EXPECT_EQ(FreeCpus(), 1);
  ExpectNothingLeft();
}

// The node with the GPU is met before one with a single CPU, as all others here have at least.
TEST_F(GroupsElsewhereTest, ABundleTakesNoNodeThatAnotherCannotDoWithout) {
  machine.AddPeer(NodeId{Id{.high = 1, .low = 12}}, 1, Resources(1, 0));
  const Call group = Reserve("STRICT_SPREAD;cpu=1;cpu=2;cpu=1;cpu=1 gpu=1");
  const std::vector<Told> asked = Messages(Kind::kReserve);
  ASSERT_EQ(asked.size(), 3);
  EXPECT_EQ(asked[0].to, first->index);
  EXPECT_EQ(asked[0].message.text, "1;cpu=2");
  EXPECT_EQ(asked[1].to, second->index);
  EXPECT_EQ(asked[1].message.text, "3;cpu=1 gpu=1");
  for (const Told& one : asked) Grant(one);
  EXPECT_EQ(State(group.result()), "value");
}

TEST_F(GroupsElsewhereTest, CallsInABundleGetWorkersThatAreLentFromIt) {
  const Call group = Reserve("STRICT_SPREAD;cpu=1;cpu=1");
  const Call inside = CallIn(group, "cpu=1 @1");
  Grant(Messages(Kind::kReserve).at(0));
  const std::vector<Told> wants = Messages(Kind::kWant);
  ASSERT_EQ(wants.size(), 1);
  EXPECT_EQ(wants[0].to, first->index);
  EXPECT_EQ(wants[0].message.scheduling, "@1 1 cpu=1");
  Receive(*first, {.kind = Kind::kLend, .loan = 4, .scheduling = wants[0].message.scheduling});
  Finish(Begin(*NodeMachine::FindBorrowed(*first, 4)));
  EXPECT_EQ(State(inside.result()), "value");
  // The worker goes before its bundle does.
  told.clear();
  Forget(inside.result());
  Forget(group.result());
  ASSERT_EQ(told.size(), 2);
  EXPECT_EQ(told[0].message.kind, Kind::kGiveBack);
  EXPECT_EQ(told[1].message.kind, Kind::kRelease);
  // One that was on its way goes back.
  Receive(*first, {.kind = Kind::kLend, .loan = 5, .scheduling = wants[0].message.scheduling});
  EXPECT_EQ(Messages(Kind::kGiveBack).back().message.loan, 5);
  ExpectNothingLeft();
}

TEST_F(GroupsElsewhereTest, ACallThatNeedsNothingIsDoneWhereItsBundleIs) {
  const Call group = Reserve("STRICT_SPREAD;cpu=1;cpu=1;cpu=1");
  for (const Told& asked : Messages(Kind::kReserve)) Grant(asked);
  const Call one = CallIn(group, " @1");
  const Call two = CallIn(group, " @2");
  const std::vector<Told> wants = Messages(Kind::kWant);
  ASSERT_EQ(wants.size(), 2);
  EXPECT_EQ(wants[0].to, first->index);
  EXPECT_EQ(wants[1].to, second->index);
  Receive(*second, {.kind = Kind::kLend, .loan = 4, .scheduling = wants[1].message.scheduling});
  Finish(Begin(*NodeMachine::FindBorrowed(*second, 4)));
  EXPECT_EQ(State(one.result()), "");
  EXPECT_EQ(State(two.result()), "value");
}

// The second node has the GPU, and a CPU beside it.
TEST_F(GroupsElsewhereTest, CallsWithoutGpusLeaveThoseToOthersWhileThereIsRoomElsewhere) {
  const Call group = Reserve("PACK;cpu=1 gpu=1;cpu=1;cpu=1;cpu=1;cpu=1");
  for (const Told& asked : Messages(Kind::kReserve)) Grant(asked);
  ASSERT_EQ(State(group.result()), "value");
  told.clear();
  const auto wanted_of_second = [this] {
    std::uint32_t count = 0;
    for (const Told& want : Messages(Kind::kWant)) {
      if (want.to == second->index) count = want.message.count;
    }
    return count;
  };
  // The one worker here has three of them, and two have room on the first node.
  for (int i = 0; i < 5; ++i) {
    CallIn(group, "cpu=1");
    EXPECT_EQ(wanted_of_second(), 0);
  }
  CallIn(group, "cpu=1");
  EXPECT_EQ(wanted_of_second(), 1);
  // Not for ever: what others have taken may be more than is known here.
  machine.SetTime(11'000'000'000);
  machine.Run();
  EXPECT_GE(wanted_of_second(), 2);
}

TEST_F(GroupsElsewhereTest, AllOrNoneAndAgainAfterAWhile) {
  const Call group = Reserve("SPREAD;cpu=1;cpu=1;cpu=1");
  const std::vector<Told> asked = Messages(Kind::kReserve);
  Grant(asked.at(0));
  Receive(*second, {.kind = Kind::kNotReserved, .kept = asked.at(1).message.kept, .text = "cpu=0"});
  EXPECT_EQ(State(group.result()), "");
  const std::vector<Told> after = std::exchange(told, {});
  ASSERT_EQ(after.size(), 3);
  EXPECT_EQ(after[0].message.kind, Kind::kRelease);
  EXPECT_EQ(after[1].message.kind, Kind::kRelease);
  // The first has room for two.
  EXPECT_EQ(after[2].message.kind, Kind::kReserve);
  const std::vector<Told> again{after[2]};
  EXPECT_EQ(again[0].message.text, "1;cpu=1;2;cpu=1");
  EXPECT_NE(again[0].message.kept, asked[0].message.kept);
  Grant(asked[0]);  // Of before.
  EXPECT_EQ(State(group.result()), "");
  Grant(again[0]);
  EXPECT_EQ(State(group.result()), "value");
}

TEST_F(GroupsElsewhereTest, WhoHadNoRoomIsAskedAgainWhereNobodyElseHasAny) {
  const Call group = Reserve("STRICT_PACK;cpu=1;gpu=1");
  Receive(*second, {.kind = Kind::kNotReserved,
                    .kept = Messages(Kind::kReserve).at(0).message.kept,
                    .text = "cpu=1"});
  std::vector<Told> again;
  for (int i = 0; i < 3 && again.empty(); ++i) {
    ASSERT_TRUE(machine.next_deadline());
    machine.SetTime(*machine.next_deadline());
    machine.Run();
    again = Messages(Kind::kReserve);
  }
  ASSERT_EQ(again.size(), 1);
  Grant(again[0]);
  EXPECT_EQ(State(group.result()), "value");
}

TEST_F(GroupsElsewhereTest, ANodeThatComesIsAskedHoweverLongTheGroupHasWaited) {
  const Call group = Reserve("PACK;cpu=2");
  const auto refuse = [this](const Told& asked) {
    Receive(*machine.FindPeer(asked.to),
            {.kind = Kind::kNotReserved, .kept = asked.message.kept, .text = "cpu=1"});
  };
  // Both are asked again and again, in vain.
  for (int i = 0; i < 100; ++i) {
    for (const Told& asked : Messages(Kind::kReserve)) refuse(asked);
    machine.SetTime(*machine.next_deadline());
    machine.Run();
  }
  const Peer& third = machine.AddPeer(NodeId{Id{.high = 1, .low = 12}}, 1, Resources(2, 0));
  machine.Run();
  std::set<PeerIndex> asked;
  for (int i = 0; i < 6 && !asked.contains(third.index); ++i) {
    for (const Told& one : Messages(Kind::kReserve)) {
      asked.insert(one.to);
      one.to == third.index ? Grant(one) : refuse(one);
    }
    machine.SetTime(machine.next_deadline().value_or(0));
    machine.Run();
  }
  EXPECT_TRUE(asked.contains(third.index));
  EXPECT_EQ(State(group.result()), "value");
}

TEST_F(GroupsElsewhereTest, WhatCanNeverBeIsRefused) {
  EXPECT_EQ(State(Reserve("STRICT_SPREAD;cpu=1;cpu=1;cpu=1;cpu=1").result()), "exception");
  EXPECT_EQ(State(Reserve("STRICT_PACK;cpu=2;cpu=1").result()), "exception");
  EXPECT_EQ(State(Reserve("PACK;gpu=2").result()), "exception");
  EXPECT_TRUE(Messages(Kind::kReserve).empty());
  Reserve("STRICT_PACK;cpu=1;cpu=1");
  EXPECT_EQ(Messages(Kind::kReserve).at(0).message.text, "0;cpu=1;1;cpu=1");
}

TEST_F(GroupsElsewhereTest, BundlesOfANodeThatDiesArePlacedAnew) {
  const Call group = Reserve("SPREAD;cpu=1;cpu=1");
  Grant(Messages(Kind::kReserve).at(0));
  const Call inside = CallIn(group, "cpu=1 @1");
  Receive(*first, {.kind = Kind::kLend,
                   .loan = 4,
                   .scheduling = Messages(Kind::kWant).at(0).message.scheduling});
  Begin(*NodeMachine::FindBorrowed(*first, 4));
  told.clear();
  Die(*first);
  EXPECT_EQ(State(group.result()), "value");
  EXPECT_EQ(State(inside.result()), "");
  const std::vector<Told> asked = Messages(Kind::kReserve);
  ASSERT_EQ(asked.size(), 1);
  EXPECT_EQ(asked[0].to, second->index);
  EXPECT_EQ(asked[0].message.text, "1;cpu=1");
  EXPECT_TRUE(Messages(Kind::kWant).empty());  // It has no bundle yet.
  Grant(asked[0]);
  const Told wants = Messages(Kind::kWant).at(0);
  EXPECT_EQ(wants.message.scheduling, "@2 1 cpu=1");
  Receive(*second, {.kind = Kind::kLend, .loan = 6, .scheduling = wants.message.scheduling});
  Finish(Begin(*NodeMachine::FindBorrowed(*second, 6)));
  EXPECT_EQ(State(inside.result()), "value");
  told.clear();
  Forget(inside.result());
  Forget(group.result());
  const std::vector<Told> released = Messages(Kind::kRelease);
  ASSERT_EQ(released.size(), 1);
  EXPECT_EQ(released[0].to, second->index);
  EXPECT_EQ(released[0].message.kept, 2);
  ExpectNothingLeft();
}

TEST_F(GroupsElsewhereTest, WhoHasNoRoomForALostBundleIsAskedAgain) {
  const Call group = Reserve("SPREAD;cpu=1;cpu=1");
  Grant(Messages(Kind::kReserve).at(0));
  told.clear();
  Die(*first);
  Receive(*second, {.kind = Kind::kNotReserved,
                    .kept = Messages(Kind::kReserve).at(0).message.kept,
                    .text = "cpu=0"});
  std::vector<Told> again;
  for (int i = 0; i < 3 && again.empty(); ++i) {
    ASSERT_TRUE(machine.next_deadline());
    told.clear();
    machine.SetTime(*machine.next_deadline());
    machine.Run();
    again = Messages(Kind::kReserve);
  }
  ASSERT_EQ(again.size(), 1);
  // It is forgotten before that one has answered.
  Forget(group.result());
  EXPECT_EQ(Messages(Kind::kRelease).at(0).message.kept, again[0].message.kept);
  Grant(again[0]);
  ExpectNothingLeft();
}

TEST_F(GroupsElsewhereTest, AGroupEndsWhereItsBundlesHaveNoPlaceTogether) {
  const Call here = Reserve("STRICT_PACK;cpu=1");
  const Call group = Reserve("PACK;cpu=1;cpu=1");
  const Told asked = Messages(Kind::kReserve).at(0);
  EXPECT_EQ(asked.message.text, "0;cpu=1;1;cpu=1");
  Grant(asked);
  const Call inside = CallIn(group, "cpu=1");
  Forget(here.result());
  machine.PeerDied(*second, {.kind = FailureKind::kNodeDied, .text = "it is gone"});
  Die(*first);
  // There is no place for both, but for one of them, which is not to be had alone.
  EXPECT_EQ(State(group.result()), "node died");
  EXPECT_EQ(State(inside.result()), "node died");
  const Call small = Reserve("SPREAD;cpu=1;cpu=1");
  EXPECT_EQ(State(small.result()), "exception");
  for (const Call& call : {inside, group, small}) Forget(call.result());
  ExpectNothingLeft();
}

TEST_F(GroupsElsewhereTest, CallsOfALostBundleAreDoneWhereItComes) {
  const Call here = Reserve("STRICT_PACK;cpu=1");
  const Call group = Reserve("SPREAD;cpu=1");
  Grant(Messages(Kind::kReserve).at(0));
  const Call inside = CallIn(group, "cpu=1 @0");
  Receive(*second, {.kind = Kind::kNotReserved, .kept = 99, .text = "cpu=0"});
  Die(*first);
  EXPECT_TRUE(Messages(Kind::kReserve).empty());  // The second has none, as it says.
  Forget(here.result());
  ASSERT_TRUE(machine.next_deadline());
  machine.SetTime(*machine.next_deadline());
  machine.Run();
  Finish(Begin());
  EXPECT_EQ(State(inside.result()), "value");
  Forget(inside.result());
  EXPECT_EQ(FreeCpus(), 0);
  Forget(group.result());
  EXPECT_EQ(FreeCpus(), 1);
  ExpectNothingLeft();
}

TEST_F(GroupsElsewhereTest, AGroupEndsWhereNoNodeHasRoomForALostBundle) {
  const Call group = Reserve("SPREAD;gpu=1;cpu=1");
  const std::vector<Told> asked = Messages(Kind::kReserve);
  for (const Told& one : asked) Grant(one);
  ASSERT_EQ(State(group.result()), "value");
  const Call inside = CallIn(group, "gpu=1 @0");
  Die(*second);
  EXPECT_EQ(State(group.result()), "node died");
  EXPECT_EQ(State(inside.result()), "node died");
  EXPECT_EQ(FreeCpus(), 1);
  // One that was not there yet is placed on others.
  told.clear();
  const Call other = Reserve("SPREAD;cpu=1;cpu=1");
  const Told again = Messages(Kind::kReserve).at(0);
  EXPECT_EQ(again.to, first->index);
  Grant(again);
  EXPECT_EQ(State(other.result()), "value");
}

TEST_F(GroupsElsewhereTest, ANodeLendsFromBundlesThatItHasForAnother) {
  Receive(*first, {.kind = Kind::kReserve, .kept = 3, .text = "1;cpu=1"});
  EXPECT_EQ(Messages(Kind::kReserved).at(0).message.kept, 3);
  EXPECT_EQ(FreeCpus(), 0);
  Receive(*second, {.kind = Kind::kReserve, .kept = 3, .text = "0;cpu=1"});
  EXPECT_EQ(Messages(Kind::kNotReserved).at(0).message.text, "cpu=0");
  Receive(*first, {.kind = Kind::kWant, .count = 1, .scheduling = "@3 0 cpu=1"});
  EXPECT_TRUE(Messages(Kind::kLend).empty());  // It has another bundle.
  Receive(*first, {.kind = Kind::kWant, .count = 2, .scheduling = "@3 1 cpu=1"});
  const std::vector<Told> lent = Messages(Kind::kLend);
  ASSERT_EQ(lent.size(), 1);
  // The group may go before the worker is back.
  Receive(*first, {.kind = Kind::kRelease, .kept = 3});
  EXPECT_EQ(FreeCpus(), 1);
  Receive(*first, {.kind = Kind::kGiveBack, .clean = true, .loan = lent[0].message.loan});
  EXPECT_EQ(FreeCpus(), 1);
  EXPECT_EQ(machine.scheduler().total(), Resources(1, 0));
}

TEST_F(GroupsElsewhereTest, WhatAPeerSaysIsReadWithCare) {
  for (const char* const text : {"x", "0", "0;cpu=", "99999999999;cpu=1", "1;cpu=1;", ";;;"}) {
    Receive(*first, {.kind = Kind::kReserve, .kept = 8, .text = text});
    Receive(*first, {.kind = Kind::kRelease, .kept = 8});
    EXPECT_EQ(machine.scheduler().total(), Resources(1, 0)) << text;
  }
  for (const char* const text : {"@", "@x", "@9 0 cpu=1", "@1", "@1 z"}) {
    Receive(*first, {.kind = Kind::kWant, .count = 1, .scheduling = text});
    Receive(*first, {.kind = Kind::kLend, .loan = 77, .scheduling = text});
  }
  EXPECT_TRUE(Messages(Kind::kLend).empty());
}

}  // namespace
}  // namespace menger
