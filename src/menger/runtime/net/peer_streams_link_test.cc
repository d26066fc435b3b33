// What two nodes' machines tell each other, over real streams that break.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/net/linked_node_testing.h"
#include "menger/runtime/testing/node_world.h"

namespace menger {
namespace {

PeerMessage LetterNumber(int number) {
  return {.kind = number % 2 == 0 ? PeerMessage::Kind::kWant : PeerMessage::Kind::kLend,
          .count = static_cast<std::uint32_t>(number),
          .loan = static_cast<LoanNumber>(number),
          .scheduling = "cpu=1",
          .text = std::string(static_cast<std::size_t>(number % 300), 'x')};
}

void ExpectLetters(const std::vector<PeerMessage>& letters, int count) {
  ASSERT_EQ(letters.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const PeerMessage& letter = letters[static_cast<std::size_t>(i)];
    ASSERT_EQ(letter.count, static_cast<std::uint32_t>(i));
    ASSERT_EQ(letter.kind, LetterNumber(i).kind);
    ASSERT_EQ(letter.text, LetterNumber(i).text);
  }
}

TEST(PeerStreamsLinkTest, LettersArriveInOrderAndOnceThoughStreamsBreak) {
  LinkedNode a(1, 2);
  LinkedNode b(2, 1);
  const std::string address = a.service().Listen("127.0.0.1:0", a);
  constexpr int kLetters = 3000;
  constexpr int kCuts = 6;
  const auto deadline = Deadline::After(kStreamPatience);
  b.service().Connect(address, PeerLane::kControl, b);
  ASSERT_TRUE(a.WaitStream(true) && b.WaitStream(true));
  int sent = 0;
  int cuts = 0;
  while (a.letters().size() < kLetters || b.letters().size() < kLetters) {
    ASSERT_FALSE(deadline.expired());
    for (int i = 0; i < 20 && sent < kLetters; ++i, ++sent) {
      a.Send(LetterNumber(sent));
      b.Send(LetterNumber(sent));
    }
    a.SendOutgoing();
    b.SendOutgoing();
    if (cuts < kCuts && sent >= (cuts + 1) * kLetters / (kCuts + 1)) {
      // With letters under way.
      ASSERT_NO_FATAL_FAILURE(OpenAnew(cuts % 2 == 0 ? a : b, a, b, address));
      ++cuts;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cuts, kCuts);
  ExpectLetters(a.letters(), kLetters);
  ExpectLetters(b.letters(), kLetters);
}

// A node's machine of which the other nodes are reached over streams. The test drives it.
class MachineOverStreams final : public World {
 public:
  MachineOverStreams(std::uint64_t own, std::uint64_t other, int workers)
      : World({.resources = Resources(workers, 0), .workers = workers, .wait_here_max = 2e6}),
        way(own, other),
        peer(machine.AddPeer(OptionsOfNode(other).own.node, other * 10, Resources(2, 0))) {
    machine.StartWorkers();
  }

  bool Recall(Worker& worker, const Task& task) override {
    return worker.lender == 0 && World::Recall(worker, task);
  }
  void TellPeer(const Peer&, const PeerMessage& message) override { way.Send(message); }

  void Step() {
    machine.SetTime(now += 10'000'000);
    for (const PeerMessage& message : way.TakeLetters()) machine.Receive(peer, message);
    machine.Run();
    way.SendOutgoing();
  }

  LinkedNode way;
  Peer& peer;
  std::int64_t now = 0;
};

// Both go on until it is so; false if that takes too long.
template <typename Condition>
bool StepUntil(MachineOverStreams& a, MachineOverStreams& b, Condition condition) {
  const auto deadline = Deadline::After(kStreamPatience);
  for (; !condition(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (deadline.expired()) return false;
    a.Step();
    b.Step();
  }
  return true;
}

TEST(PeerStreamsLinkTest, MachinesLendEachOtherWorkersThoughStreamsBreak) {
  MachineOverStreams borrower(1, 2, 0);
  MachineOverStreams lender(2, 1, 1);
  const std::string address = borrower.way.service().Listen("127.0.0.1:0", borrower.way);
  lender.way.service().Connect(address, PeerLane::kControl, lender.way);
  ASSERT_TRUE(borrower.way.WaitStream(true) && lender.way.WaitStream(true));
  const auto cut = [&](MachineOverStreams& cutter) {
    OpenAnew(cutter.way, borrower.way, lender.way, address);
  };
  for (int round = 0; round < 5; ++round) {
    const World::Call call = borrower.Submit();
    borrower.way.SendOutgoing();  // It wants a worker;
    ASSERT_NO_FATAL_FAILURE(cut(round % 2 == 0 ? borrower : lender));
    ASSERT_TRUE(StepUntil(borrower, lender, [&] { return !borrower.peer.borrowed.empty(); }));
    EXPECT_EQ(lender.peer.lent.size(), 1U);
    EXPECT_EQ(borrower.peer.borrowed.size(), 1U);
    Worker& worker = *borrower.peer.borrowed.begin()->second;
    borrower.Finish(borrower.Begin(worker));
    EXPECT_EQ(borrower.State(call.result()), "value");
    borrower.Forget(call.result());
    borrower.Step();  // and needs it no longer.
    ASSERT_NO_FATAL_FAILURE(cut(round % 2 == 0 ? lender : borrower));
    ASSERT_TRUE(StepUntil(borrower, lender, [&] { return lender.peer.lent.empty(); }));
    EXPECT_TRUE(borrower.peer.borrowed.empty());
  }
  borrower.ExpectNothingLeft();
  lender.ExpectNothingLeft();
}

}  // namespace
}  // namespace menger
