#include "menger/runtime/net/node_letter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "menger/runtime/net/peer_codec.h"
#include "menger/runtime/net/random_changes_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;

using Packet = PeerLink<SharedLetter>::Packet;

NodeLetter LinesLetter() {
  return {.kind = NodeLetter::Kind::kLines,
          .last = true,
          .lines = {{.loan = 1, .worker = 2, .process = 3, .text = "x is 5"},
                    {.worker = ~std::uint64_t{0}, .left_out = 17},
                    {.text = std::string(PrintedLine::kTextBytesMax, 'x')}}};
}

// As they are sent: the part behind the rest.
std::vector<std::byte> BytesOf(const NodeLetter& letter) {
  std::vector<std::byte> bytes =
      EncodePacket<SharedLetter>({1, 2, 3, 4, 5, std::make_shared<NodeLetter>(letter)});
  bytes.insert(bytes.end(), letter.part.bytes.begin(), letter.part.bytes.end());
  return bytes;
}

NodeLetter Again(const NodeLetter& letter) {
  const std::vector<std::byte> bytes = BytesOf(letter);
  NodeLetter read = *DecodePacket<SharedLetter>(bytes).letter;
  read.part = read.part.Kept();  // It lies in `bytes`.
  return read;
}

std::string WhyNot(std::span<const std::byte> bytes) {
  try {
    (void)DecodePacket<SharedLetter>(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

TEST(NodeLetterTest, LettersComeBackAsTheyWere) {
  const NodeLetter wish{.kind = NodeLetter::Kind::kPart,
                        .owner = NodeId{Id{.high = 1, .low = 2}},
                        .epoch = 3,
                        .pull = 4,
                        .name = 5,
                        .total = 6,
                        .part = Payload::Copy(std::vector(3, std::byte{7}))};
  EXPECT_EQ(Again(wish).owner, wish.owner);
  EXPECT_EQ(Again(wish).total, 6U);
  EXPECT_TRUE(std::ranges::equal(Again(wish).part.bytes, wish.part.bytes));
  EXPECT_EQ(Again({.kind = NodeLetter::Kind::kRecall, .loan = 8, .lease = 9}).lease, 9U);
  for (int kind = 0; kind <= static_cast<int>(NodeLetter::Kind::kShowLess); ++kind) {
    EXPECT_EQ(static_cast<int>(Again({.kind = static_cast<NodeLetter::Kind>(kind)}).kind), kind);
  }
}

TEST(NodeLetterTest, WhereAValueIsShownComesBackAsItWas) {
  const NodeLetter read = Again({.kind = NodeLetter::Kind::kShown,
                                 .pull = 1,
                                 .name = 2,
                                 .total = 3,
                                 .shown = {.process = 4, .descriptor = 5, .device = 6, .inode = 7},
                                 .offset = 8});
  EXPECT_EQ(std::tuple(read.pull, read.name, read.total, read.offset), std::tuple(1, 2, 3, 8));
  EXPECT_EQ(
      std::tuple(read.shown.process, read.shown.descriptor, read.shown.device, read.shown.inode),
      std::tuple(4, 5, 6, 7));
  EXPECT_EQ(Again({.kind = NodeLetter::Kind::kSend, .process = 9}).process, 9);
  EXPECT_EQ(Again({.kind = NodeLetter::Kind::kSeen, .name = 10}).name, 10);
}

TEST(NodeLetterTest, LinesComeBackAsTheyWere) {
  const NodeLetter written = LinesLetter();
  const NodeLetter read = Again(written);
  EXPECT_TRUE(read.last);
  ASSERT_EQ(read.lines.size(), written.lines.size());
  for (std::size_t i = 0; i < read.lines.size(); ++i) {
    EXPECT_EQ(read.lines[i].loan, written.lines[i].loan);
    EXPECT_EQ(read.lines[i].worker, written.lines[i].worker);
    EXPECT_EQ(read.lines[i].process, written.lines[i].process);
    EXPECT_EQ(read.lines[i].left_out, written.lines[i].left_out);
    EXPECT_EQ(read.lines[i].text, written.lines[i].text);
  }
  EXPECT_TRUE(Again({.kind = NodeLetter::Kind::kLines}).lines.empty());
}

TEST(NodeLetterTest, LinesThatAreCutOrTooLongAreRefused) {
  const std::vector<std::byte> bytes = BytesOf(LinesLetter());
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    // In a buffer of its own, so that AddressSanitizer sees who reads on.
    const std::vector<std::byte> part(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    EXPECT_THAT(WhyNot(part), HasSubstr("a packet of a peer")) << cut;
  }
  NodeLetter letter = LinesLetter();
  letter.lines[0].text.assign(PrintedLine::kTextBytesMax + 1, 'x');
  EXPECT_THAT(WhyNot(BytesOf(letter)), HasSubstr("a line of 4097 bytes; 4096 are the most"));
  // Behind kind and `last` the number of lines: nothing is made for lines that are not there.
  std::vector<std::byte> many = bytes;
  for (std::size_t i = 2; i < 6; ++i) many[kPacketHeadBytes + i] = std::byte{255};
  EXPECT_THAT(WhyNot(many), HasSubstr("4294967295 elements in 'lines'"));
  many[kPacketHeadBytes + 1] = std::byte{2};
  EXPECT_THAT(WhyNot(many), HasSubstr("2 as 'last'"));
}

TEST(NodeLetterTest, RandomChangesAreReadOrRefused) {
  NodeLetter letter = LinesLetter();
  letter.lines.pop_back();  // So that changes fall on what is not text, too.
  EXPECT_GT(CountRefusedChanges(12, BytesOf(letter), WhyNot), 0);
}

}  // namespace
}  // namespace menger
