#include "menger/runtime/control/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using State = NodeLease::State;
using End = NodeLease::End;

constexpr std::int64_t kSecond = 1'000'000'000;

// A store whose clock and failures a test decides; what it loses nobody is told.
class MembershipTest : public testing::Test {
 protected:
  struct Node {
    Membership membership;
    bool cut = false;
  };

  Node& Start(std::uint64_t id, const std::string& name = "") {
    const NodeRecord self{.id = NodeId{Id{.high = 7, .low = id}},
                          .name = name,
                          .address = "10.0.0.1:7000",
                          .resources = Resources(2, 1)};
    nodes_.push_back(std::make_unique<Node>(Node{Membership(self, {})}));
    Pass(0);
    return *nodes_.back();
  }

  void Pass(std::int64_t nanoseconds) {
    for (const std::int64_t end = now_ + nanoseconds;;) {
      for (const auto& node : nodes_) Go(*node);
      if (now_ >= end) return;
      now_ = std::min(end, now_ + kSecond / 10);
    }
  }

  void Go(Node& node) {
    for (;;) {
      std::vector<StoreAsk> asks = node.membership.Next(now_);
      if (asks.empty() || node.cut) return;
      for (StoreAsk& ask : asks) {
        if (ask.batch.empty()) {
          node.membership.Read(ask.number,
                               RunScan(store_, ask.table, "", ask.after, ask.limit, Soon()), now_);
        } else {
          node.membership.Answered(ask.number, RunBatch(store_, std::move(ask.batch), Soon()),
                                   now_);
        }
      }
    }
  }
  static Deadline Soon() { return testing_stores::Soon(); }

  static std::vector<std::string> Changes(Node& node) {
    std::vector<std::string> changes;
    for (const NodeChange& change : node.membership.TakeChanges()) {
      const char* const kind = change.kind == NodeChange::Kind::kMet       ? "met"
                               : change.kind == NodeChange::Kind::kChanged ? "changed"
                                                                           : "died";
      changes.push_back(fmt::format("{} {}", kind, change.node.id.low));
    }
    return changes;
  }

  std::int64_t now_ = 1000 * kSecond;
  EmbeddedStore store_{{.now = [this] { return now_; }}};
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(MembershipTest, NodesMeetWithWhatTheySayOfThemselves) {
  Node& one = Start(1);
  Node& two = Start(2);
  EXPECT_TRUE(one.membership.own().Lives(now_));
  Pass(4 * kSecond);
  EXPECT_THAT(Changes(one), ElementsAre("met 2"));
  EXPECT_THAT(Changes(two), ElementsAre("met 1"));
  const auto& nodes = one.membership.others().nodes();
  ASSERT_THAT(nodes, SizeIs(1));
  const NodeRecord& record = nodes.begin()->second;
  EXPECT_EQ(record.epoch, two.membership.own().self().epoch);
  EXPECT_EQ(record.address, "10.0.0.1:7000");
  EXPECT_EQ(record.resources, Resources(2, 1));
}

TEST_F(MembershipTest, WhoDoesNotReachTheStoreIsOverBeforeItsLease) {
  Node& node = Start(1);
  node.cut = true;
  Pass(9 * kSecond - 1);
  EXPECT_TRUE(node.membership.own().Lives(now_));
  Pass(1);
  EXPECT_FALSE(node.membership.own().Lives(now_));
  EXPECT_EQ(node.membership.own().state(), State::kOver);
  EXPECT_EQ(node.membership.own().end(), End::kLeaseOver);
  // The store answers again: too late.
  node.cut = false;
  Pass(30 * kSecond);
  EXPECT_EQ(node.membership.own().state(), State::kOver);
}

TEST_F(MembershipTest, ALeaseIsCountedFromBeforeItWasRenewed) {
  Node& node = Start(1);
  node.cut = true;
  now_ += 4 * kSecond;
  std::vector<StoreAsk> asks = node.membership.Next(now_);
  const std::int64_t asked_at = now_;
  ASSERT_EQ(asks.at(0).batch.at(0).kind, StoreOperation::Kind::kRenew);
  std::vector<StoreResult> results = RunBatch(store_, std::move(asks[0].batch), Soon());
  now_ += kSecond;  // So long the answer takes.
  node.membership.Answered(asks[0].number, results, now_);
  EXPECT_TRUE(node.membership.own().Lives(asked_at + 9 * kSecond - 1));
  EXPECT_FALSE(node.membership.own().Lives(asked_at + 9 * kSecond));
}

TEST_F(MembershipTest, TheDeadAreKnownAndLeaveNothing) {
  Node& one = Start(1);
  Node& two = Start(2);
  Pass(20 * kSecond);
  Changes(one);
  two.cut = true;
  Pass(10 * kSecond);
  EXPECT_THAT(Changes(one), IsEmpty());
  Pass(12 * kSecond);
  EXPECT_THAT(Changes(one), ElementsAre("died 2"));
  EXPECT_THAT(testing_stores::Contents(store_, StoreTable::kNodes), SizeIs(1));
}

TEST_F(MembershipTest, SuspicionKillsNobody) {
  Node& one = Start(1);
  Start(2);
  Pass(20 * kSecond);
  Changes(one);
  for (int i = 0; i < 100; ++i) {
    one.membership.Hint(now_);
    Pass(kSecond / 10);
  }
  EXPECT_THAT(Changes(one), IsEmpty());
}

TEST_F(MembershipTest, WhoLeavesSaysSoBeforeAndGivesAllBack) {
  Node& one = Start(1);
  Node& two = Start(2, "two");
  Pass(20 * kSecond);
  Changes(one);
  two.membership.Drain(now_);
  Pass(4 * kSecond);
  EXPECT_THAT(Changes(one), ElementsAre("changed 2"));
  EXPECT_TRUE(two.membership.own().Lives(now_));
  const LeaseEpoch lease = two.membership.own().self().epoch;
  two.membership.Leave(now_);
  EXPECT_FALSE(two.membership.own().Lives(now_));
  Pass(0);
  EXPECT_EQ(two.membership.own().end(), End::kLeft);
  EXPECT_THAT(testing_stores::Contents(store_, StoreTable::kNodes), SizeIs(1));
  EXPECT_THAT(testing_stores::Contents(store_, StoreTable::kNames), IsEmpty());
  EXPECT_FALSE(testing_stores::Do(store_, StoreOperation::Renew(lease, Soon().remaining())).done());
}

TEST_F(MembershipTest, ANameIsFreeOnceItsHolderIsOver) {
  Node& one = Start(1, "name");
  Node& two = Start(2, "name");
  Pass(30 * kSecond);
  EXPECT_TRUE(one.membership.own().Lives(now_));
  EXPECT_EQ(two.membership.own().state(), State::kJoining);
  one.cut = true;
  for (int i = 0; i < 120; ++i) {
    Pass(kSecond / 10);
    EXPECT_FALSE(one.membership.own().Lives(now_) && two.membership.own().Lives(now_));
  }
  EXPECT_TRUE(two.membership.own().Lives(now_));
}

TEST_F(MembershipTest, OfTwoAtOneAddressTheYoungerIsFound) {
  Node& one = Start(1);
  Start(3);
  Node& two = Start(2);
  Pass(4 * kSecond);
  const NodeRecord* const found = one.membership.others().FindAt("10.0.0.1:7000");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, two.membership.own().self().id);
  EXPECT_EQ(one.membership.others().FindAt("10.0.0.2:7000"), nullptr);
}

TEST(NodeRecordTest, WhatIsNoRecordIsNone) {
  const NodeRecord record{.id = NodeId{Id{.high = 1, .low = 2}}, .epoch = 3, .name = "a"};
  const std::string key = KeyOf(record.id);
  ASSERT_TRUE(DecodeNodeRecord(key, Encode(record)));
  EXPECT_EQ(DecodeNodeRecord(key, Encode(record))->id, record.id);
  EXPECT_FALSE(DecodeNodeRecord(key, "{}"));
  EXPECT_FALSE(DecodeNodeRecord(key, "no json"));
  EXPECT_FALSE(DecodeNodeRecord("1/2", Encode(record)));
  EXPECT_FALSE(DecodeNodeRecord(key, R"({"epoch":1,"name":"","address":"","state":"up",)"
                                     R"("resources":{"cpu":-5}})"));
}

}  // namespace
}  // namespace menger
