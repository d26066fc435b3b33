#include "menger/runtime/driver/guest_output.h"

#include <gtest/gtest.h>

#include <string>

namespace menger {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr WorkerIndex kWorker = 3;
constexpr ProgramIndex kProgram = 1;

std::size_t BytesOf(const GuestOutput::Batch& batch) {
  std::size_t bytes = 0;
  for (const PrintedLine& line : batch.lines) bytes += LineQueue<PrintedLine>::BytesOf(line);
  return bytes;
}

class GuestOutputTest : public testing::Test {
 protected:
  GuestOutputTest() { output_.Begin(kWorker, kProgram); }

  const GuestOutput::Options options_;
  GuestOutput output_;
};

TEST_F(GuestOutputTest, LinesAreThoseOfGuestsAndSayWhoHasPrintedThem) {
  EXPECT_EQ(output_.Add(kWorker + 1, 7, "of the node's own"), GuestOutput::Added::kNoGuest);
  EXPECT_FALSE(output_.waits());
  EXPECT_EQ(output_.Add(kWorker, 7, "first"), GuestOutput::Added::kFirst);
  EXPECT_EQ(output_.Add(kWorker, 7, "second"), GuestOutput::Added::kKept);
  EXPECT_TRUE(output_.waits());
  EXPECT_TRUE(output_.Take(kProgram + 1, kSecond).lines.empty());
  const GuestOutput::Batch batch = output_.Take(kProgram, kSecond);
  ASSERT_EQ(batch.lines.size(), 2U);
  EXPECT_EQ(batch.lines[0].text, "first");
  EXPECT_EQ(batch.lines[1].worker, kWorker);
  EXPECT_EQ(batch.lines[1].process, 7U);
  EXPECT_FALSE(batch.last);
  EXPECT_FALSE(output_.waits());
}

TEST_F(GuestOutputTest, WhoPrintsWithoutEndIsBoundedInMemoryAndASecond) {
  const std::string text(1000, 'x');
  std::size_t bytes = 0;
  std::uint64_t left_out = 0;
  std::uint64_t lines = 0;
  // 64 MiB in a second.
  constexpr int kLines = 65'536;
  for (int i = 0; i < kLines; ++i) {
    output_.Add(kWorker, 7, text);
    const GuestOutput::Batch batch = output_.Take(kProgram, kSecond + i * (kSecond / kLines));
    EXPECT_LE(BytesOf(batch), options_.letter_bytes_max + 64);
    bytes += BytesOf(batch);
    for (const PrintedLine& line : batch.lines) {
      left_out += line.left_out;
      lines += line.left_out == 0 ? 1 : 0;
    }
  }
  // What it had saved up, a second's, and a letter that was begun with the last byte of these.
  EXPECT_LE(bytes,
            options_.waiting_bytes_max + options_.second_bytes_max + 2 * options_.letter_bytes_max);
  EXPECT_GT(left_out, lines);
  for (int i = 2; output_.waits(); ++i) {
    for (const PrintedLine& line : output_.Take(kProgram, i * kSecond).lines) {
      left_out += line.left_out;
      lines += line.left_out == 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(lines + left_out, static_cast<std::uint64_t>(kLines));
}

TEST_F(GuestOutputTest, AMarkIsToldWithTheLastLineBeforeIt) {
  const std::string text(4000, 'x');
  for (int i = 0; i < 30; ++i) output_.Add(kWorker, 7, text);
  output_.Mark(kProgram);
  EXPECT_FALSE(output_.Take(kProgram, kSecond).last);
  EXPECT_TRUE(output_.Take(kProgram, kSecond).last);  // There is no pause before it.
  output_.Mark(kProgram);
  const GuestOutput::Batch nothing = output_.Take(kProgram, kSecond);
  EXPECT_TRUE(nothing.lines.empty());
  EXPECT_TRUE(nothing.last);
  EXPECT_FALSE(output_.waits());
}

TEST_F(GuestOutputTest, LinesOfAProgramThatIsGoneAreNobodys) {
  output_.Add(kWorker, 7, "first");
  output_.Drop(kProgram);
  EXPECT_FALSE(output_.waits());
  EXPECT_EQ(output_.Add(kWorker, 7, "second"), GuestOutput::Added::kKept);
  EXPECT_FALSE(output_.waits());
  output_.End(kWorker);
  EXPECT_EQ(output_.Add(kWorker, 7, "third"), GuestOutput::Added::kNoGuest);
}

}  // namespace
}  // namespace menger
