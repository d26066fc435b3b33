#include "menger/runtime/net/peer_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/net/random_changes_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;

Payload BytesOf(std::string_view text) {
  return Payload::Copy(std::as_bytes(std::span(text.data(), text.size())));
}

Payload SomeCall() {
  SpecBuilder builder({.task = TaskId{Id{.low = 1}}, .parent = TaskId{Id{.low = 2}}}, 0, {}, "",
                      "call", 0);
  return Payload::Copy(builder.Finish()->bytes());
}

std::string TextOf(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes().data()), payload.size()};
}

PeerMessage FullMessage() {
  PeerMessage message{.kind = PeerMessage::Kind::kLost,
                      .clean = true,
                      .count = 7,
                      .loan = 8,
                      .kept = 9,
                      .source_epoch = 10,
                      .source_name = 11,
                      .bytes = std::uint64_t{1} << 40,
                      .scheduling = "cpu=1",
                      .text = std::string("0;\0cpu", 6),
                      .begun = {1, 2, ~std::uint64_t{0}}};
  message.object = ObjectId{Id{.high = 12, .low = 13}};
  message.value = ObjectValue::Inline(BytesOf("a value"));
  message.value.extent.bytes = 7;
  message.references = {{ObjectId{Id{.high = 14, .low = 15}}, NodeId{Id{.high = 16}}, 17}, {}};
  message.call = BytesOf("a call");
  message.source.high = 3;
  message.source.low = 4;
  message.cause = {.kind = FailureKind::kNodeDied,
                   .code = ErrorCode::kUnavailable,
                   .type = "std::out_of_range",
                   .text = "no 7",
                   .task = "f",
                   .worker = "worker 3",
                   .value = "bytes",
                   .final = true};
  return message;
}

void ExpectSame(const PeerMessage& a, const PeerMessage& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.clean, b.clean);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.loan, b.loan);
  EXPECT_EQ(a.kept, b.kept);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.source_epoch, b.source_epoch);
  EXPECT_EQ(a.source_name, b.source_name);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.scheduling, b.scheduling);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.cause.ToString(), b.cause.ToString());
  EXPECT_EQ(a.cause.code, b.cause.code);
  EXPECT_EQ(a.cause.value, b.cause.value);
  EXPECT_EQ(a.cause.final, b.cause.final);
  EXPECT_EQ(a.begun, b.begun);
  EXPECT_EQ(a.object, b.object);
  EXPECT_EQ(a.value.kind, b.value.kind);
  EXPECT_EQ(a.value.extent.bytes, b.value.extent.bytes);
  EXPECT_EQ(TextOf(a.value.payload), TextOf(b.value.payload));
  ASSERT_EQ(a.references.size(), b.references.size());
  for (std::size_t i = 0; i < a.references.size(); ++i) {
    EXPECT_EQ(a.references[i].object, b.references[i].object);
    EXPECT_EQ(a.references[i].node, b.references[i].node);
    EXPECT_EQ(a.references[i].epoch, b.references[i].epoch);
  }
  EXPECT_EQ(TextOf(a.call), TextOf(b.call));
}

using Packet = PeerLink<PeerMessage>::Packet;

TEST(PeerCodecTest, MessagesAndPacketsComeBackAsTheyWere) {
  ExpectSame(DecodePeerMessage(EncodePeerMessage(FullMessage())), FullMessage());
  ExpectSame(DecodePeerMessage(EncodePeerMessage({})), {});
  for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(PeerMessage::Kind::kLetGo);
       ++kind) {
    PeerMessage message{.kind = static_cast<PeerMessage::Kind>(kind)};
    if (message.kind == PeerMessage::Kind::kCall) message.call = SomeCall();
    ExpectSame(DecodePeerMessage(EncodePeerMessage(message)), message);
  }
  const Packet packet{1, 2, 3, 4, 5, FullMessage()};
  const Packet read = DecodePacket<PeerMessage>(EncodePacket<PeerMessage>(packet));
  EXPECT_EQ(read.from, 1U);
  EXPECT_EQ(read.to, 2U);
  EXPECT_EQ(read.number, 3U);
  EXPECT_EQ(read.arrived, 4U);
  EXPECT_EQ(read.bytes, 5U);
  ExpectSame(read.letter, packet.letter);
  EXPECT_EQ(EncodePacket<PeerMessage>({1, 2, 0, 4}).size(), kPacketHeadBytes);
  EXPECT_EQ(DecodePacket<PeerMessage>(EncodePacket<PeerMessage>({1, 2, 0, 4})).arrived, 4U);
}

std::string WhyNot(std::span<const std::byte> bytes) {
  try {
    (void)DecodePacket<PeerMessage>(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

TEST(PeerCodecTest, APacketThatIsCutAnywhereIsRefused) {
  const std::vector<std::byte> bytes = EncodePacket<PeerMessage>({1, 2, 3, 4, 5, FullMessage()});
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    // In a buffer of its own, so that AddressSanitizer sees who reads on.
    const std::vector<std::byte> part(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_THAT(WhyNot(part), HasSubstr("a packet of a peer")) << cut;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  EXPECT_THAT(WhyNot(longer), HasSubstr("1 bytes behind its end"));
}

TEST(PeerCodecTest, WhatIsWrongIsNamed) {
  const std::vector<std::byte> right = EncodePacket<PeerMessage>({1, 2, 3, 4, 5, {}});
  const auto changed = [&right](std::size_t at, int value) {
    std::vector<std::byte> bytes = right;
    bytes[kPacketHeadBytes + at] = static_cast<std::byte>(value);
    return WhyNot(bytes);
  };
  EXPECT_THAT(changed(0, 200), HasSubstr("200 as 'kind'"));
  EXPECT_THAT(changed(1, 2), HasSubstr("2 as 'clean'"));
  // Behind kind, clean and count lie 16 + 16 + 24 bytes, then the first text's length.
  EXPECT_THAT(changed(6 + 56 + 3, 255), HasSubstr("'scheduling'"));
  // Behind `begun` lie an id, a value (1 + 8 + 4), references (4) and a call (4).
  const std::size_t begun = right.size() - 4 - (16 + 13 + 4 + 4);
  std::vector<std::byte> many = right;
  for (std::size_t i = begun; i < begun + 4; ++i) many[i] = std::byte{255};
  EXPECT_THAT(WhyNot(many), HasSubstr("4294967295 elements in 'begun'"));
  EXPECT_THAT(changed(begun - kPacketHeadBytes + 20, 2), HasSubstr("a value of kind 2"));
  EXPECT_THAT(changed(begun - kPacketHeadBytes + 20, 6), HasSubstr("6 as 'value.kind'"));
  EXPECT_THAT(changed(right.size() - kPacketHeadBytes - 8, 1), HasSubstr("in 'references'"));
  EXPECT_THAT(changed(right.size() - kPacketHeadBytes - 4, 1), HasSubstr("in 'call'"));
  const auto call = static_cast<int>(PeerMessage::Kind::kCall);
  EXPECT_THAT(changed(0, call), HasSubstr("a call that is none"));
}

TEST(PeerCodecTest, RandomChangesAreReadOrRefused) {
  const auto right = EncodePacket<PeerMessage>({1, 2, 3, 4, 5, FullMessage()});
  EXPECT_GT(CountRefusedChanges(11, right, WhyNot), 0);
}

}  // namespace
}  // namespace menger
