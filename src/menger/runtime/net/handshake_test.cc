#include "menger/runtime/net/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "menger/base/random.h"

namespace menger {
namespace {

using testing::HasSubstr;

Nonce NonceOf(int seed) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(seed));
  return nonce;
}

NodeLife LifeOf(std::uint64_t node) {
  NodeLife life;
  life.node.high = node;
  life.epoch = node + 1;
  return life;
}

Handshake::Options OptionsOf(Handshake::Side side, std::string token = "token",
                             std::vector<std::byte> binding = {}) {
  return {.side = side,
          .own = LifeOf(side == Handshake::Side::kConnector ? 1 : 2),
          .lane = PeerLane::kBulk,
          .token = std::move(token),
          .binding = std::move(binding)};
}

// What one has said to the other.
std::vector<std::byte> Pass(Handshake& from, Handshake& to) {
  std::vector<std::byte> said = from.TakeOutgoing();
  for (std::size_t at = 0; at < said.size() && to.wanted() > 0;) {
    const std::size_t wanted = to.wanted();
    to.Take(std::span(said).subspan(at, wanted));
    at += wanted;
  }
  return said;
}

TEST(HandshakeTest, EachEndKnowsTheOther) {
  Handshake connector(OptionsOf(Handshake::Side::kConnector), NonceOf(1));
  Handshake acceptor(OptionsOf(Handshake::Side::kAcceptor), NonceOf(2));
  std::string said;
  while (!connector.done() || !acceptor.done()) {
    for (const auto& bytes : {Pass(connector, acceptor), Pass(acceptor, connector)}) {
      said.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  EXPECT_EQ(acceptor.peer().node, LifeOf(1).node);
  EXPECT_EQ(acceptor.peer().epoch, 2U);
  EXPECT_EQ(acceptor.lane(), PeerLane::kBulk);
  EXPECT_EQ(connector.peer().node, LifeOf(2).node);
  EXPECT_EQ(said.find("token"), std::string::npos);
}

TEST(HandshakeTest, AProofIsOfOneConnection) {
  // Whoever listened in has the proof of a connection; the next one has other nonces.
  Handshake connector(OptionsOf(Handshake::Side::kConnector), NonceOf(1));
  Handshake acceptor(OptionsOf(Handshake::Side::kAcceptor), NonceOf(2));
  const std::vector<std::byte> hello = Pass(connector, acceptor);
  Pass(acceptor, connector);
  const std::vector<std::byte> proof = connector.TakeOutgoing();
  Handshake next(OptionsOf(Handshake::Side::kAcceptor), NonceOf(3));
  next.Take(std::span(hello).first(next.wanted()));
  next.Take(std::span(hello).last(next.wanted()));
  try {
    next.Take(proof);
    FAIL() << "it was welcome";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  }
  acceptor.Take(proof);
  EXPECT_TRUE(acceptor.done());
}

TEST(HandshakeTest, AProofIsOfOneTlsConnection) {
  Handshake connector(OptionsOf(Handshake::Side::kConnector, "t", {std::byte{1}}), NonceOf(1));
  Handshake acceptor(OptionsOf(Handshake::Side::kAcceptor, "t", {std::byte{2}}), NonceOf(2));
  Pass(connector, acceptor);
  Pass(acceptor, connector);
  EXPECT_THROW(Pass(connector, acceptor), Error);
  EXPECT_THROW(Pass(acceptor, connector), Error);
}

TEST(HandshakeTest, AnAcceptorThatDoesNotKnowTheTokenIsFoundOut) {
  Handshake connector(OptionsOf(Handshake::Side::kConnector), NonceOf(1));
  Handshake acceptor(OptionsOf(Handshake::Side::kAcceptor), NonceOf(2));
  Pass(connector, acceptor);
  Pass(acceptor, connector);
  (void)connector.TakeOutgoing();
  const std::vector<std::byte> welcome(connector.wanted());
  try {
    connector.Take(welcome);
    FAIL() << "it was believed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not know the cluster token"));
  }
}

TEST(HandshakeTest, EveryChangeOfAByteIsRefused) {
  Handshake sample(OptionsOf(Handshake::Side::kConnector), NonceOf(1));
  const std::size_t bytes = sample.TakeOutgoing().size();
  for (std::size_t changed = 0; changed < bytes; ++changed) {
    Handshake connector(OptionsOf(Handshake::Side::kConnector), NonceOf(1));
    Handshake acceptor(OptionsOf(Handshake::Side::kAcceptor), NonceOf(2));
    std::vector<std::byte> hello = connector.TakeOutgoing();
    hello[changed] ^= std::byte{1};
    const auto greet = [&] {
      acceptor.Take(std::span(hello).first(acceptor.wanted()));
      acceptor.Take(std::span(hello).last(acceptor.wanted()));
      Pass(acceptor, connector);
      Pass(connector, acceptor);
    };
    EXPECT_THROW(greet(), Error) << changed;
    EXPECT_FALSE(acceptor.done());
    // It says so, and what it says is understood.
    EXPECT_THROW(Pass(acceptor, connector), Error) << changed;
  }
}

TEST(HandshakeTest, WhateverIsSaidIsAnErrorAndNoMore) {
  Random random = Random::FromSeed(3);
  for (int i = 0; i < 2000; ++i) {
    const auto side = i % 2 == 0 ? Handshake::Side::kConnector : Handshake::Side::kAcceptor;
    Handshake handshake(OptionsOf(side), NonceOf(1));
    Handshake other(
        OptionsOf(i % 2 == 0 ? Handshake::Side::kAcceptor : Handshake::Side::kConnector),
        NonceOf(2));
    std::vector<std::byte> said = other.TakeOutgoing();
    said.resize(200);
    for (int n = 0; n < 1 + i % 5; ++n) {
      said[static_cast<std::size_t>(random.Integers(0, 200))] =
          static_cast<std::byte>(random.Integers(0, 256));
    }
    std::size_t at = 0;
    try {
      while (handshake.wanted() > 0 && at + handshake.wanted() <= said.size()) {
        const std::size_t wanted = handshake.wanted();
        handshake.Take(std::span(said).subspan(at, wanted));
        at += wanted;
      }
    } catch (const Error&) {
    }
    EXPECT_FALSE(handshake.done());
  }
}

TEST(TokenProofTest, IsHmacSha256OfRoleZeroAndWhatWasSaid) {
  const auto rest = std::as_bytes(std::span(std::string_view("b")));
  const TokenProof a = ProveToken("Jefe", "a", std::vector<std::span<const std::byte>>{rest});
  // From Python's: python3 -c "import hmac; print(hmac.new(b'Jefe', b'a\0b',
  // 'sha256').hexdigest())"
  std::string text;
  for (const std::byte byte : a) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  EXPECT_EQ(text, "abe96d286949754c65051de08d3f8b1b5d35c314af100829f50c13954d98b7ea");
  EXPECT_TRUE(SameProof(a, a));
  TokenProof b = a;
  b.back() ^= std::byte{128};
  EXPECT_FALSE(SameProof(a, b));
  EXPECT_FALSE(SameProof(a, std::span(a).first(31)));
}

}  // namespace
}  // namespace menger
