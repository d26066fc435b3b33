#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "menger/runtime/testing/lending_world.h"

// What a node lends to several who want more than there is.
namespace menger {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kBegin = 1'000 * kMillisecond;

// The first driver has all CPUs, and wants more; the second comes later.
class SharesWorld : public LendingWorld {
 public:
  explicit SharesWorld(double cpus) : LendingWorld(cpus) {
    RunAt(0);
    machine.SetProgram(*drivers[0], 1);
    machine.SetProgram(*drivers[1], 2);
    Want(0, 64);
    StartAll(1);
    first = Lent(0);
  }
  void RunAt(std::int64_t milliseconds) {
    machine.SetTime(kBegin + milliseconds * kMillisecond);
    machine.Run();
  }

  std::vector<LoanNumber> first;
};

TEST(NodeSharesTest, WhoComesLaterGetsHisShareOfWhatAnotherHas) {
  SharesWorld world(4);
  ASSERT_EQ(world.first.size(), 4);
  world.Want(1, 64);
  EXPECT_EQ(world.AskedBack(0).size(), 0);
  // It is time: but first he has somebody who can do it.
  world.RunAt(30);
  EXPECT_EQ(world.AskedBack(0).size(), 0);
  EXPECT_EQ(world.starting[2], 1);
  for (int time = 40; time <= 80; time += 40) {
    world.StartAll(2);
    world.RunAt(time);
    const std::vector<LoanNumber> asked = world.AskedBack(0);
    ASSERT_EQ(asked.size(), 1);
    world.GiveBack(0, asked[0]);
    EXPECT_EQ(world.Lent(1).size(), 1);
    EXPECT_EQ(world.Lent(0).size(), 0);
    world.RunAt(time + 30);
  }
  // Both have two now, for as long as they like.
  world.RunAt(10'000);
  EXPECT_EQ(world.AskedBack(0).size() + world.AskedBack(1).size(), 0);
}

TEST(NodeSharesTest, TheOddOneGoesRound) {
  SharesWorld world(1);
  ASSERT_EQ(world.first.size(), 1);
  world.Want(1, 64);
  world.RunAt(100);
  world.StartAll(2);
  world.RunAt(499);
  EXPECT_EQ(world.AskedBack(0).size(), 0);
  world.RunAt(500);
  EXPECT_EQ(world.AskedBack(0), world.first);
  world.GiveBack(0, world.first[0]);
  const std::vector<LoanNumber> second = world.Lent(1);
  ASSERT_EQ(second.size(), 1);
  world.RunAt(999);
  EXPECT_EQ(world.AskedBack(1).size(), 0);
  world.RunAt(1'000);
  EXPECT_EQ(world.AskedBack(1), second);
  world.GiveBack(1, second[0]);
  EXPECT_EQ(world.Lent(0).size(), 1);
}

TEST(NodeSharesTest, WhoNeedsSeveralCpusAtOnceGetsThem) {
  SharesWorld world(4);
  world.Want(1, 1, "cpu=3");
  world.RunAt(30);
  world.StartAll(2);
  std::vector<LoanNumber> lent;
  for (int time = 600; lent.empty() && time < 5'000; time += 10) {
    world.RunAt(time);
    for (const LoanNumber loan : world.AskedBack(0)) world.GiveBack(0, loan);
    lent = world.Lent(1);
  }
  EXPECT_EQ(lent.size(), 1);
}

TEST(NodeSharesTest, WhatActorsHaveStays) {
  SharesWorld world(2);
  for (const LoanNumber loan : world.first)
    world.Tell(0, {.kind = SharesWorld::Kind::kKeep, .loan = loan});
  world.Want(1, 64);
  world.RunAt(30);
  world.StartAll(2);
  world.RunAt(10'000);
  EXPECT_EQ(world.AskedBack(0).size(), 0);
}

TEST(NodeSharesTest, WhoWantsNoMoreLeavesTheOthersWhatTheyHave) {
  SharesWorld world(2);
  world.Want(1, 64);
  world.Want(1, 0);
  world.RunAt(10'000);
  EXPECT_EQ(world.AskedBack(0).size(), 0);
  EXPECT_EQ(world.machine.next_deadline(), std::nullopt);
}

TEST(NodeSharesTest, WhatIsFreeGoesToWhoHasTheFewest) {
  LendingWorld world(4);
  world.machine.SetProgram(*world.drivers[0], 1);
  world.machine.SetProgram(*world.drivers[1], 2);
  for (const ProgramIndex program : {1, 2}) {
    for (int i = 0; i < 4; ++i) world.machine.AddGuest(world.machine.NewWorkerIndex(), program);
  }
  // Those that he was lent before the other wanted some.
  world.machine.Receive(*world.drivers[0], {.kind = LendingWorld::Kind::kWant, .count = 8});
  world.machine.Receive(*world.drivers[1], {.kind = LendingWorld::Kind::kWant, .count = 8});
  world.machine.Run();
  EXPECT_EQ(world.Lent(0).size(), 2);
  EXPECT_EQ(world.Lent(1).size(), 2);
}

std::vector<std::uint32_t> SharersToldTo(LendingWorld& world, int driver) {
  std::vector<std::uint32_t> counts;
  for (const PeerMessage& message : std::exchange(world.told[world.drivers[driver]->index], {})) {
    if (message.kind == PeerMessage::Kind::kSharers) counts.push_back(message.count);
  }
  return counts;
}

TEST(NodeSharesTest, WhoReadHereHearHowManyTheyAre) {
  using Counts = std::vector<std::uint32_t>;
  LendingWorld world;
  world.machine.SetTime(kBegin);
  for (int i = 0; i < 2; ++i) world.machine.SetProgram(*world.drivers[i], i + 1);
  world.Want(0, 1);
  world.StartAll(1);
  EXPECT_EQ(SharersToldTo(world, 0), Counts{});
  world.Want(1, 1);
  world.StartAll(2);
  EXPECT_EQ(SharersToldTo(world, 0), Counts{2});
  world.machine.SetTime(kBegin + 500 * kMillisecond);
  world.GiveBack(1, world.drivers[1]->lent.begin()->first);
  EXPECT_EQ(SharersToldTo(world, 0), Counts{});  // He may come again at once.
  EXPECT_EQ(world.machine.next_deadline(), kBegin + 1000 * kMillisecond);
  world.machine.SetTime(kBegin + 1000 * kMillisecond);
  world.machine.Run();
  EXPECT_EQ(SharersToldTo(world, 0), Counts{1});
}

}  // namespace
}  // namespace menger
