#include "menger/runtime/net/frame_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/runtime/net/frame_queue.h"

namespace menger {
namespace {

std::span<const std::byte> ViewOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// All that is in the queue, as it is written.
std::string Drain(FrameQueue& queue) {
  std::string written;
  for (;;) {
    const auto pieces = queue.Next();
    if (pieces.empty()) return written;
    for (const auto piece : pieces) {
      written.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    queue.Written();
  }
}

TEST(FrameBufferTest, FramesComeOutHoweverTheyCameIn) {
  Random random = Random::FromSeed(5);
  for (int round = 0; round < 30; ++round) {
    FrameQueue queue(std::size_t{100} << 20);
    std::vector<std::string> frames;
    std::string written;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t size =
          random.Integers(0, 8) == 0 ? random.Integers(1, 700'000) : random.Integers(1, 300);
      std::string frame(static_cast<std::size_t>(size), static_cast<char>('a' + i % 26));
      const std::size_t head = frame.size() / 3;
      ASSERT_NE(queue.Add(ViewOf(frame.substr(0, head)), Payload::Copy(ViewOf(frame.substr(head)))),
                FrameQueue::Added::kRefused);
      frames.push_back(std::move(frame));
      if (random.Integers(0, 5) == 0) written += Drain(queue);
      if (queue.AddBeat() == FrameQueue::Added::kFirst) written += Drain(queue);
    }
    written += Drain(queue);

    FrameBuffer buffer(std::size_t{1} << 20);
    std::vector<std::string> read;
    for (std::size_t at = 0; at < written.size();) {
      const std::span<std::byte> room = buffer.Room();
      ASSERT_FALSE(room.empty());
      const std::size_t came = std::min(
          {room.size(), written.size() - at,
           static_cast<std::size_t>(random.Integers(1, round % 2 == 0 ? 50'000 : 900'000))});
      std::memcpy(room.data(), written.data() + at, came);
      at += came;
      for (const auto frame : buffer.Came(came)) {
        read.emplace_back(reinterpret_cast<const char*>(frame.data()), frame.size());
      }
      EXPECT_LT(buffer.capacity(), 2'000'000U);
    }
    ASSERT_TRUE(read == frames);
  }
}

TEST(FrameBufferTest, WhatIsPromisedTakesNoMemoryBeforeItComes) {
  FrameBuffer buffer(std::size_t{1} << 30);
  const FrameHead head = FrameHead::For(std::size_t{1} << 30);
  std::memcpy(buffer.Room().data(), &head, sizeof head);
  EXPECT_TRUE(buffer.Came(sizeof head).empty());
  (void)buffer.Room();
  EXPECT_LE(buffer.capacity(), std::size_t{512} << 10);
}

TEST(FrameBufferTest, ItShrinksWhenNoLongFrameComesAnyMore) {
  FrameBuffer buffer(std::size_t{4} << 20);
  const auto take = [&buffer](std::size_t bytes) {
    std::string frame(sizeof(FrameHead) + bytes, 'x');
    const FrameHead head = FrameHead::For(bytes);
    std::memcpy(frame.data(), &head, sizeof head);
    for (std::size_t at = 0; at < frame.size();) {
      const auto room = buffer.Room();
      const std::size_t came = std::min(room.size(), frame.size() - at);
      std::memcpy(room.data(), frame.data() + at, came);
      at += came;
      buffer.Came(came);
    }
  };
  take(10);
  const std::size_t usual = buffer.capacity();
  take(std::size_t{3} << 20);
  EXPECT_GT(buffer.capacity(), usual);
  for (int i = 0; i < 100; ++i) take(10);
  EXPECT_EQ(buffer.capacity(), usual);
}

TEST(FrameQueueTest, ItRefusesWhatItHasNoRoomForAndSaysWhenThereIsSome) {
  FrameQueue queue(1000);
  const std::string frame(300, 'x');
  EXPECT_EQ(queue.Add(ViewOf(frame), {}), FrameQueue::Added::kFirst);
  EXPECT_EQ(queue.Add(ViewOf(frame), {}), FrameQueue::Added::kYes);
  EXPECT_EQ(queue.Add(ViewOf(frame), {}), FrameQueue::Added::kYes);
  EXPECT_EQ(queue.Add(ViewOf(frame), {}), FrameQueue::Added::kRefused);
  EXPECT_EQ(queue.Next().size(), 1U);  // Small ones are one piece.
  EXPECT_TRUE(queue.Written());
  EXPECT_FALSE(queue.Written());
  EXPECT_EQ(queue.AddBeat(), FrameQueue::Added::kYes);
  EXPECT_EQ(queue.AddBeat(), FrameQueue::Added::kRefused);  // There is something already.
  queue.Close();
  EXPECT_TRUE(queue.Next().empty());
  EXPECT_EQ(queue.Add(ViewOf(frame), {}), FrameQueue::Added::kRefused);
}

}  // namespace
}  // namespace menger
