#include "menger/runtime/node/peer_link.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

using Link = PeerLink<int>;
constexpr std::int64_t kResend = 10;

std::vector<int> Deliver(Link& link, const std::vector<Link::Packet>& packets) {
  std::vector<int> letters;
  for (const Link::Packet& packet : packets) link.Arrived(packet, letters);
  return letters;
}

TEST(PeerLinkTest, LettersArriveInOrderAndOnceOverAWayThatLosesDoublesAndReorders) {
  Random random = Random::FromSeed(7);
  const auto one_in = [&random](int count) { return random.Integers(0, count) == 0; };
  Link a(3, 5, kResend);
  Link b(5, 3, kResend);
  std::vector<std::pair<bool, Link::Packet>> flying;  // To b?
  std::vector<int> at_a;
  std::vector<int> at_b;
  constexpr int kLetters = 300;
  int sent = 0;
  for (std::int64_t now = 0; sent < kLetters || at_a.size() < kLetters || at_b.size() < kLetters;
       ++now) {
    ASSERT_LT(now, 1'000'000);
    if (sent < kLetters && one_in(2)) {
      a.Send(sent);
      b.Send(-sent);
      ++sent;
    }
    for (Link::Packet& packet : a.Outgoing(now)) flying.emplace_back(true, std::move(packet));
    for (Link::Packet& packet : b.Outgoing(now)) flying.emplace_back(false, std::move(packet));
    for (int i = 0; i < 20 && !flying.empty(); ++i) {
      const auto at =
          static_cast<std::size_t>(random.Integers(0, static_cast<std::int64_t>(flying.size())));
      const auto [to_b, packet] = flying[at];
      if (!one_in(4)) (to_b ? b : a).Arrived(packet, to_b ? at_b : at_a);
      if (!one_in(5)) flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (int i = 0; i < kLetters; ++i) {
    ASSERT_EQ(at_b[static_cast<std::size_t>(i)], i);
    ASSERT_EQ(at_a[static_cast<std::size_t>(i)], -i);
  }
}

TEST(PeerLinkTest, WhatArrivesIsAcknowledgedWithTheNextLetterOrAfterAWhile) {
  Link a(3, 5, kResend);
  Link b(5, 3, kResend, Link::kWindowBytes, /*acknowledge_after=*/4);
  a.Send(1);
  EXPECT_EQ(Deliver(b, a.Outgoing(0)), std::vector{1});
  EXPECT_TRUE(b.Outgoing(1).empty());
  b.Send(2);
  EXPECT_EQ(Deliver(a, b.Outgoing(2)), std::vector{2});
  EXPECT_TRUE(a.all_arrived());
  EXPECT_TRUE(b.Outgoing(9).empty());
  a.Send(3);
  Deliver(b, a.Outgoing(3));
  EXPECT_TRUE(b.Outgoing(3).empty());
  EXPECT_TRUE(b.Outgoing(6).empty());
  Deliver(a, b.Outgoing(7));
  EXPECT_TRUE(a.all_arrived());
  EXPECT_TRUE(b.Outgoing(99).empty());
}

TEST(PeerLinkTest, AQuarterOfTheWindowIsAcknowledgedAtOnce) {
  Link a(3, 5, kResend);
  Link b(5, 3, kResend, Link::kWindowBytes, /*acknowledge_after=*/4);
  for (std::size_t i = 0; i + 1 < Link::kWindow / 4; ++i) a.Send(1);
  Deliver(b, a.Outgoing(0));
  EXPECT_TRUE(b.Outgoing(0).empty());
  a.Send(1);
  Deliver(b, a.Outgoing(0));
  EXPECT_EQ(b.Outgoing(0).size(), 1U);
  a.Send(1, Link::kWindowBytes / 4);
  Deliver(b, a.Outgoing(0));
  EXPECT_EQ(b.Outgoing(0).size(), 1U);
  // And what may have been lost, which the other end sends again.
  a.Send(1);
  Deliver(b, a.Outgoing(0));
  b.SendAgain();
  EXPECT_EQ(b.Outgoing(0).size(), 1U);
}

TEST(PeerLinkTest, WhatIsOfAnotherLifeIsIgnored) {
  Link before(1, 1, kResend);
  Link now(2, 1, kResend);
  Link peer(1, 2, kResend);
  before.Send(1);
  now.Send(2);
  EXPECT_TRUE(Deliver(peer, before.Outgoing(0)).empty());
  EXPECT_EQ(Deliver(peer, now.Outgoing(0)), std::vector<int>{2});
}

TEST(PeerLinkTest, WhatIsNotAcknowledgedIsSentAgainAndOnlyThat) {
  Link a(1, 1, kResend);
  Link b(1, 1, kResend);
  a.Send(1);
  EXPECT_EQ(a.Outgoing(0).size(), 1);  // Lost.
  a.Send(2);
  EXPECT_EQ(Deliver(b, a.Outgoing(1)), std::vector<int>{});
  EXPECT_EQ(a.Outgoing(9).size(), 0);
  EXPECT_EQ(Deliver(b, a.Outgoing(10)), (std::vector<int>{1, 2}));
  Deliver(a, b.Outgoing(10));
  EXPECT_EQ(a.Outgoing(100).size(), 0);
  EXPECT_EQ(b.Outgoing(100).size(), 0);
}

TEST(PeerLinkTest, NoMoreBytesAreUnderWayThanTheWindowHas) {
  constexpr std::uint64_t kWindowBytes = 100;
  Link a(1, 1, kResend, kWindowBytes);
  Link b(1, 1, kResend, kWindowBytes);
  for (int i = 0; i < 6; ++i) a.Send(i, 40);
  const std::vector<Link::Packet> first = a.Outgoing(0);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[1].bytes, 40);
  EXPECT_EQ(a.Outgoing(1).size(), 0);
  EXPECT_EQ(Deliver(b, {first[0]}), std::vector<int>{0});
  Deliver(a, b.Outgoing(1));
  EXPECT_EQ(Deliver(b, a.Outgoing(1)), std::vector<int>{});  // The third; the second is missing.
  EXPECT_EQ(Deliver(b, {first[1]}), (std::vector<int>{1, 2}));
  // A letter that is larger than the window goes alone.
  Link c(1, 1, kResend, kWindowBytes);
  Link d(1, 1, kResend, kWindowBytes);
  c.Send(7, 1000);
  c.Send(8, 1);
  const std::vector<Link::Packet> large = c.Outgoing(0);
  ASSERT_EQ(large.size(), 1);
  EXPECT_EQ(Deliver(d, large), std::vector<int>{7});
}

TEST(PeerLinkTest, WhoSendsMoreThanTheWindowHasIsNotKept) {
  Link b(1, 1, kResend, 100);
  std::vector<Link::Packet> packets;
  for (std::uint64_t i = 2; i < 10; ++i) packets.push_back({1, 1, i, 0, 60, static_cast<int>(i)});
  EXPECT_EQ(Deliver(b, packets), std::vector<int>{});
  EXPECT_EQ(Deliver(b, {{1, 1, 1, 0, 60, 1}}), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace menger
