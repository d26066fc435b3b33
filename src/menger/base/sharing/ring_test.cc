#include "menger/base/sharing/ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/sharing/segment.h"

namespace menger {
namespace {

using namespace std::chrono_literals;

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Zeroed memory that child processes share.
class Ring {
 public:
  explicit Ring(std::size_t capacity, std::size_t near_bytes = kRingNearBytes)
      : bytes_(RingBytes(capacity)),
        memory_("ring_test", (bytes_ + kPage - 1) / kPage * kPage),
        writer(bytes(), near_bytes),
        reader(bytes()) {}

  std::span<std::byte> bytes() { return memory_.bytes().first(bytes_); }
  RingWords& words() { return *reinterpret_cast<RingWords*>(memory_.bytes().data()); }

  bool Write(const std::string& text, RingEntryKind kind = RingEntryKind::kPlain) {
    const std::span<std::byte> room = writer.Reserve(text.size(), kind);
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), text.data(), text.size());
    return true;
  }

 private:
  static constexpr std::size_t kPage = 4096;

  const std::size_t bytes_;
  WritableSegment memory_;

 public:
  RingWriter writer;
  RingReader reader;
};

TEST(RingTest, EntriesAreSeenOncePublishedAndInOrder) {
  Ring ring(1024);
  EXPECT_TRUE(ring.Write("one"));
  EXPECT_TRUE(ring.Write(""));
  EXPECT_FALSE(ring.reader.Next());
  ring.writer.Publish();
  const RingEntry one = ring.reader.Next();
  EXPECT_EQ(TextOf(one.bytes), "one");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.bytes.data()) % 16, 0u);
  const RingEntry empty = ring.reader.Next();
  EXPECT_TRUE(empty);
  EXPECT_EQ(empty.bytes.size(), 0u);
  EXPECT_FALSE(ring.reader.Next());
}

TEST(RingTest, TheLargestEntryFitsAnEmptyRingWhereverItBegins) {
  Ring ring(1024);
  for (int round = 0; round < 100; ++round) {
    for (const std::size_t size : {std::size_t{16}, ring.writer.max_bytes()}) {
      ASSERT_TRUE(ring.Write(std::string(size, static_cast<char>(round))));
      ring.writer.Publish();
      ASSERT_EQ(TextOf(ring.reader.Next().bytes), std::string(size, static_cast<char>(round)));
      ring.reader.Release();
    }
  }
  EXPECT_THROW(ring.writer.Reserve(257), Error);
}

TEST(RingTest, SizesAndAlignmentsThatNoRingHasAreRefused) {
  EXPECT_THROW(RingBytes(1000), Error);
  EXPECT_THROW(RingBytes(512), Error);
  Ring ring(2048);
  EXPECT_THROW(RingReader(ring.bytes().first(2048)), Error);
  EXPECT_THROW(RingReader(ring.bytes().first(0)), Error);
  EXPECT_THROW(RingReader(ring.bytes().subspan(16, RingBytes(1024))), Error);
}

// Random operations on a ring and on a queue of strings.
TEST(RingTest, BehavesAsAQueueThatHoldsItsCapacity) {
  struct Item {
    std::string text;
    bool claimable = false;
    bool recalled = false;
    RingPosition position = 0;
  };
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::size_t capacity = 1024U << random() % 4;
    // Half of the rings begin again whenever they can.
    const bool begins_again = seed % 2 == 1;
    Ring ring(capacity, begins_again ? 64 : kRingNearBytes);
    std::deque<Item> reserved, published, read;  // Read but not released.
    for (int step = 0; step < 5000; ++step) {
      switch (random() % 6) {
        case 0:
        case 1: {
          Item item{.text = std::string(random() % (capacity / 4 + 1), 'a' + random() % 26),
                    .claimable = random() % 2 == 0};
          const bool has_room = ring.writer.HasRoomFor(item.text.size());
          if (ring.Write(item.text,
                         item.claimable ? RingEntryKind::kClaimable : RingEntryKind::kPlain)) {
            EXPECT_TRUE(has_room);
            item.position = ring.writer.last();
            reserved.push_back(item);
          } else {
            EXPECT_FALSE(has_room);
            // Full means that it is: with padding of at most one entry.
            std::size_t held = 0;
            for (const auto* items : {&reserved, &published, &read}) {
              for (const Item& each : *items) held += 16 + (each.text.size() + 15) / 16 * 16;
            }
            if (begins_again) {
              EXPECT_GT(held, 0U);
            } else {
              EXPECT_GT(held + 3 * (capacity / 4 + 32), capacity);
            }
          }
          break;
        }
        case 2:
          ring.writer.Publish();
          published.insert(published.end(), reserved.begin(), reserved.end());
          reserved.clear();
          break;
        case 3: {
          while (!published.empty() && published.front().recalled) {
            read.push_back(published.front());
            published.pop_front();
          }
          const RingEntry entry = ring.reader.Next();
          ASSERT_EQ(static_cast<bool>(entry), !published.empty());
          if (!entry) break;
          ASSERT_EQ(TextOf(entry.bytes), published.front().text);
          ASSERT_EQ(entry.kind == RingEntryKind::kClaimable, published.front().claimable);
          EXPECT_EQ(ring.reader.TryClaim(entry), published.front().claimable);
          EXPECT_FALSE(ring.reader.TryClaim(entry));
          read.push_back(published.front());
          published.pop_front();
          break;
        }
        case 4:
          ring.reader.Release();
          for (const Item& item : read) EXPECT_FALSE(ring.writer.TryRecall(item.position));
          read.clear();
          break;
        case 5:
          if (published.empty()) break;
          Item& item = published[random() % published.size()];
          EXPECT_EQ(ring.writer.TryRecall(item.position), item.claimable && !item.recalled);
          item.recalled = item.recalled || item.claimable;
          break;
      }
    }
  }
}

void PassOne(Ring& ring, const std::string& text) {
  ASSERT_TRUE(ring.Write(text));
  ring.writer.Publish();
  ASSERT_EQ(TextOf(ring.reader.Next().bytes), text);
  ring.reader.Release();
}

std::size_t ResidentBytes(std::span<std::byte> bytes) {
  constexpr std::size_t kPage = 4096;
  std::vector<unsigned char> resident((bytes.size() + kPage - 1) / kPage);
  EXPECT_EQ(mincore(bytes.data(), bytes.size(), resident.data()), 0);
  return kPage *
         static_cast<std::size_t>(std::count_if(resident.begin(), resident.end(),
                                                [](unsigned char page) { return page & 1; }));
}

TEST(RingTest, OneThatRunsEmptyUsesTheSamePagesAgain) {
  Ring ring(std::size_t{1} << 20);
  for (int i = 0; i < 20'000; ++i) PassOne(ring, std::string(200, 'x'));
  EXPECT_LE(ResidentBytes(ring.bytes()), kRingNearBytes + 4 * 4096);
}

TEST(RingTest, WhatABurstTookIsGivenBackWhenNothingIsWritten) {
  Ring ring(std::size_t{1} << 20);
  int written = 0;
  while (ring.Write(std::string(1000, 'x'))) ++written;
  ring.writer.Publish();
  EXPECT_GT(written, 1000);
  ring.writer.GiveMemoryBack();
  ring.writer.GiveMemoryBack();
  for (; written > 0; --written)
    ASSERT_EQ(TextOf(ring.reader.Next().bytes), std::string(1000, 'x'));
  ring.reader.Release();
  EXPECT_GT(ResidentBytes(ring.bytes()), 1'000'000U);
  ring.writer.GiveMemoryBack();
  EXPECT_LE(ResidentBytes(ring.bytes()), kRingNearBytes + 2 * 4096);
  for (int i = 0; i < 2000; ++i) PassOne(ring, std::to_string(i));
}

TEST(RingTest, RoomIsGivenBackUpToAnEntry) {
  Ring ring(1024);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ring.Write(std::string(200, 'x')));
  ASSERT_FALSE(ring.Write(std::string(200, 'x')));
  ring.writer.Publish();
  const RingEntry first = ring.reader.Next();
  const RingEntry second = ring.reader.Next();
  EXPECT_EQ(ring.writer.ReadReleased(), 0u);
  ring.reader.ReleaseThrough(first);
  EXPECT_EQ(ring.writer.ReadReleased(), second.position);
  EXPECT_EQ(TextOf(second.bytes), std::string(200, 'x'));
}

// The number of the entry, repeated: a torn entry would show.
void FillWith(std::span<std::byte> bytes, std::uint32_t number) {
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) std::memcpy(&bytes[i], &number, 4);
}
bool IsFilledWith(std::span<const std::byte> bytes, std::uint32_t number) {
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    if (std::memcmp(&bytes[i], &number, 4) != 0) return false;
  }
  return true;
}

void WriteEntries(RingWriter& writer, std::uint32_t count) {
  std::mt19937 random(1);
  for (std::uint32_t number = 0; number < count; ++number) {
    const std::size_t size = random() % 500;
    std::span<std::byte> room = writer.Reserve(size);
    while (room.data() == nullptr) {
      writer.Publish();
      std::this_thread::yield();
      room = writer.Reserve(size);
    }
    FillWith(room, number);
    if (random() % 8 == 0) writer.Publish();
  }
  writer.Publish();
}

// Returns how many entries were as they should be, in order.
std::uint32_t ReadEntries(RingReader& reader, std::uint32_t count) {
  std::mt19937 random(2);
  const Deadline deadline = Deadline::After(60s);
  std::uint32_t number = 0;
  while (number < count && !deadline.expired()) {
    const RingEntry entry = reader.Next();
    if (!entry) {
      reader.Release();
      std::this_thread::yield();
      continue;
    }
    if (!IsFilledWith(entry.bytes, number)) return number;
    ++number;
    if (random() % 8 == 0) reader.Release();
  }
  return number;
}

constexpr std::uint32_t kEntries = 30'000;

TEST(RingTest, CarriesEntriesBetweenThreads) {
  Ring ring(4096);
  std::thread writer([&] { WriteEntries(ring.writer, kEntries); });
  EXPECT_EQ(ReadEntries(ring.reader, kEntries), kEntries);
  writer.join();
}

TEST(RingTest, CarriesEntriesBetweenProcesses) {
  Ring ring(4096);
  const pid_t child = fork();
  if (child == 0) _exit(ReadEntries(ring.reader, kEntries) == kEntries ? 0 : 1);
  ASSERT_GT(child, 0);
  WriteEntries(ring.writer, kEntries);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(RingTest, WhatAKilledWriterHadPublishedCanBeRead) {
  Ring ring(4096);
  const pid_t child = fork();
  if (child == 0) {
    ring.Write("published");
    ring.writer.Publish();
    ring.Write("not published");
    kill(getpid(), SIGKILL);
  }
  ASSERT_GT(child, 0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(TextOf(ring.reader.Next().bytes), "published");
  EXPECT_FALSE(ring.reader.Next());
}

TEST(RingTest, AnOfferedEntryIsEitherClaimedOrRecalledNeverBoth) {
  constexpr std::uint32_t kOffers = 20'000;
  Ring ring(4096);
  std::vector<char> claimed(kOffers), recalled(kOffers);
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::mt19937 random(3);
    for (;;) {
      const bool last = done.load();
      const RingEntry entry = ring.reader.Next();
      if (!entry && last) return;
      if (!entry) std::this_thread::yield();
      if (entry && random() % 4 == 0) std::this_thread::yield();
      if (entry && ring.reader.TryClaim(entry)) {
        std::uint32_t number = 0;
        std::memcpy(&number, entry.bytes.data(), sizeof number);
        claimed[number] = 1;
      }
      ring.reader.Release();
    }
  });
  std::mt19937 random(4);
  std::deque<std::pair<RingPosition, std::uint32_t>> offered;
  for (std::uint32_t number = 0; number < kOffers; ++number) {
    std::span<std::byte> room;
    while ((room = ring.writer.Reserve(sizeof number, RingEntryKind::kClaimable)).data() ==
           nullptr) {
      std::this_thread::yield();
    }
    std::memcpy(room.data(), &number, sizeof number);
    ring.writer.Publish();
    offered.emplace_back(ring.writer.last(), number);
    if (offered.size() > 4) offered.pop_front();
    const auto& [position, candidate] = offered[random() % offered.size()];
    if (random() % 2 == 0 && ring.writer.TryRecall(position)) recalled[candidate] = 1;
  }
  done = true;
  reader.join();
  for (std::uint32_t number = 0; number < kOffers; ++number) {
    ASSERT_EQ(claimed[number] + recalled[number], 1) << number;
  }
}

ErrorCode CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(RingTest, PositionsThatTheOtherEndCannotHaveAreDataLoss) {
  for (const std::uint64_t wild : {std::uint64_t{8}, std::uint64_t{2048}, ~std::uint64_t{15}}) {
    Ring ring(1024);
    ring.words().published = wild;
    EXPECT_EQ(CodeOf([&] { ring.reader.Next(); }), ErrorCode::kDataLoss);
    ring.words().released = wild;
    EXPECT_EQ(CodeOf([&] { ring.writer.ReadReleased(); }), ErrorCode::kDataLoss);
  }
  Ring ring(1024);
  for (int i = 0; i < 4; ++i) ring.Write("a");
  ring.writer.Publish();
  while (ring.reader.Next()) continue;
  ring.words().published = 16;  // Back.
  EXPECT_EQ(CodeOf([&] { ring.reader.Next(); }), ErrorCode::kDataLoss);
}

// A reader of a ring whose writer has lost its mind: bytes are flipped at random. Under
// AddressSanitizer each span that comes out is read to its end.
TEST(RingTest, AScribblingWriterNeverLeadsTheReaderAstray) {
  int refused = 0;
  unsigned sum = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    Ring ring(1024);
    try {
      for (int step = 0; step < 200; ++step) {
        if (ring.Write(std::string(random() % 200, 'x'))) ring.writer.Publish();
        if (random() % 16 == 0) {
          const std::span<std::byte> bytes = ring.bytes();
          const std::size_t at = random() % 2 == 0 ? random() % 8 : random() % bytes.size();
          bytes[at] ^= static_cast<std::byte>(1U << random() % 8);
        }
        while (const RingEntry entry = ring.reader.Next()) {
          ASSERT_GE(entry.bytes.data(), ring.bytes().data() + sizeof(RingWords));
          ASSERT_LE(entry.bytes.data() + entry.bytes.size(),
                    ring.bytes().data() + ring.bytes().size());
          for (const std::byte byte : entry.bytes) sum += static_cast<unsigned>(byte);
        }
        ring.reader.Release();
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDataLoss);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace menger
