#include "menger/runtime/driver/line_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "menger/runtime/net/printed_line.h"

namespace menger {
namespace {

using testing::ElementsAre;

using Queue = LineQueue<PrintedLine>;

const std::size_t kLine = Queue::BytesOf({.text = "0"});

// Their texts, or "+3" for three that were left out.
std::vector<std::string> TextsOf(const std::vector<PrintedLine>& lines) {
  std::vector<std::string> texts;
  for (const PrintedLine& line : lines) {
    texts.push_back(line.left_out > 0 ? "+" + std::to_string(line.left_out) : line.text);
  }
  return texts;
}

TEST(LineQueueTest, LinesComeInOrderAndNoMoreThanAskedFor) {
  Queue queue(10 * kLine);
  for (const char* text : {"1", "2", "3"}) queue.Add({.text = text});
  EXPECT_THAT(TextsOf(queue.Take(2 * kLine)), ElementsAre("1", "2"));
  EXPECT_THAT(TextsOf(queue.Take(1)), ElementsAre("3"));
  EXPECT_TRUE(queue.empty());
  EXPECT_THAT(TextsOf(queue.Take(1)), ElementsAre());
}

TEST(LineQueueTest, WhatFindsNoRoomIsCountedUntilAllHasGone) {
  Queue queue(2 * kLine);
  for (const char* text : {"1", "2", "3", "4"}) queue.Add({.text = text});
  EXPECT_EQ(queue.bytes(), 2 * kLine);
  EXPECT_THAT(TextsOf(queue.Take(kLine)), ElementsAre("1"));
  queue.Add({.text = "5"});  // There is room, but the order would be lost.
  queue.Add({.left_out = 10});
  EXPECT_THAT(TextsOf(queue.Take(kLine)), ElementsAre("2", "+13"));
  queue.Add({.text = "6"});
  EXPECT_THAT(TextsOf(queue.Take(kLine)), ElementsAre("6"));
}

TEST(LineQueueTest, ALineThatIsLargerThanAllRoomComesAlone) {
  Queue queue(kLine);
  queue.Add({.text = std::string(100, 'x')});
  queue.Add({.text = "1"});
  EXPECT_THAT(TextsOf(queue.Take(kLine)), ElementsAre(std::string(100, 'x'), "+1"));
  EXPECT_EQ(queue.bytes(), 0U);
}

}  // namespace
}  // namespace menger
