#include "menger/runtime/lineage_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/file_testing.h"
#include "menger/base/random.h"
#include "menger/runtime/embedded_store.h"
#include "menger/runtime/faulty_store.h"
#include "menger/runtime/lineage_segment.h"
#include "menger/runtime/store_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;
using testing_files::Folder;
using testing_stores::Contents;
using testing_stores::Soon;

constexpr std::uint64_t kBuild = 0xabc;
const std::string kPrefix = "node/";

Id IdOf(std::uint64_t number) { return {.high = 1, .low = number}; }

// A specification is a text here, and the log keeps it by where it lies.
struct Call {
  std::string text;
  std::uint64_t number = 0;
  LineageEntry entry = 0;
};

class Calls {
 public:
  explicit Calls(LineageLog& log) : log_(log) {}

  Call& Add(std::string text) {
    alive_.push_back(std::make_unique<Call>());
    Call& call = *alive_.back();
    call.text = std::move(text);
    call.number = ++last_;
    call.entry = log_.Append(IdOf(call.number), std::as_bytes(std::span<const char>(call.text)));
    return call;
  }
  void Forget(std::size_t index) {
    log_.Forget(alive_[index]->entry);
    alive_[index]->text.assign(alive_[index]->text.size(), '!');  // Not to be read any more.
    std::swap(alive_[index], alive_.back());
    alive_.pop_back();
  }
  const std::vector<std::unique_ptr<Call>>& alive() const { return alive_; }

 private:
  LineageLog& log_;
  std::uint64_t last_ = 0;
  std::vector<std::unique_ptr<Call>> alive_;
};

std::map<std::uint64_t, std::string> Loaded(ControlStore& store, std::uint64_t build = kBuild) {
  std::map<std::uint64_t, std::string> loaded;
  LoadLineage(store, kPrefix, build, Soon(), [&](const Id& id, std::span<const std::byte> bytes) {
    EXPECT_EQ(id.high, 1u);
    EXPECT_TRUE(
        loaded
            .emplace(id.low, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
            .second);
  });
  return loaded;
}

TEST(LineageLogTest, WhatIsAliveAtTheFlushCanBeLoaded) {
  EmbeddedStore store;
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  Calls calls(log);
  for (const char* text : {"a", "b", "", "d"}) calls.Add(text);
  calls.Forget(1);
  EXPECT_TRUE(Contents(store, StoreTable::kLineage).empty());
  EXPECT_EQ(log.durable(), 0u);
  log.Flush();
  EXPECT_EQ(log.durable(), 4u);
  EXPECT_EQ(Loaded(store), (std::map<std::uint64_t, std::string>{{1, "a"}, {3, ""}, {4, "d"}}));
}

TEST(LineageLogTest, WhatIsForgottenBeforeTheFlushIsNeverWritten) {
  EmbeddedStore store;
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  Calls calls(log);
  for (int i = 0; i < 100; ++i) {
    calls.Add("text");
    calls.Forget(0);
    log.Flush();
    EXPECT_EQ(log.durable(), log.appended());
  }
  EXPECT_EQ(log.counts().written_bytes, 0u);
  EXPECT_TRUE(Contents(store, StoreTable::kLineage).empty());
}

TEST(LineageLogTest, ASegmentGoesWithItsLastAndTheRestOfASparseOneMoves) {
  EmbeddedStore store;
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  Calls calls(log);
  for (int i = 0; i < 10; ++i) calls.Add(std::string(100, static_cast<char>('a' + i)));
  log.Flush();
  const auto before = Contents(store, StoreTable::kLineage);
  for (int i = 0; i < 4; ++i) calls.Forget(0);
  log.Flush();
  EXPECT_EQ(Contents(store, StoreTable::kLineage), before);  // More than half is alive.
  for (int i = 0; i < 2; ++i) calls.Forget(0);
  log.Flush();
  log.Poll();
  const auto moved = Contents(store, StoreTable::kLineage);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_NE(moved.begin()->first, before.begin()->first);
  EXPECT_EQ(Loaded(store).size(), 4u);
  while (!calls.alive().empty()) calls.Forget(0);
  log.Flush();
  EXPECT_TRUE(Contents(store, StoreTable::kLineage).empty());
  EXPECT_EQ(log.counts().segments, 0u);
  EXPECT_EQ(log.counts().stored_bytes, 0u);
}

TEST(LineageLogTest, AnotherBuildsSpecificationsAreRefused) {
  EmbeddedStore store;
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  Calls calls(log);
  calls.Add("a");
  log.Flush();
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { Loaded(store, 0xdef); }),
              HasSubstr("lineage 'node/0000000000000001': its specifications are of build "
                        "0000000000000abc"));
}

TEST(LineageLogTest, OtherPrefixesAreOtherLogs) {
  EmbeddedStore store;
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  LineageLog other(store, {.prefix = "other/", .build = kBuild});
  Calls calls(log);
  Calls others(other);
  calls.Add("a");
  others.Add("b");
  log.Flush();
  other.Flush();
  EXPECT_EQ(Loaded(store), (std::map<std::uint64_t, std::string>{{1, "a"}}));
}

TEST(LineageSegmentTest, NoDamagedSegmentIsRead) {
  LineageSegmentWriter writer(kBuild);
  writer.Add(IdOf(1), std::as_bytes(std::span("specification")));
  const std::string value = std::move(writer).Finish();
  const auto read = [](std::string_view text) {
    return ErrorText(ErrorCode::kDataLoss,
                     [&] { ReadLineageSegment(text, kBuild, [](const auto&, auto) {}); });
  };
  EXPECT_EQ(read(value), "nothing was thrown");
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string damaged = value;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_NE(read(damaged), "nothing was thrown") << i;
    EXPECT_NE(read(value.substr(0, i)), "nothing was thrown") << i;
  }
}

// Whatever the store does, what is said to be durable can be loaded, and in the end the store holds
// what is alive and at most as much again.
TEST(LineageLogTest, NothingDurableIsLostWithAFaultyStore) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random = Random::FromSeed(seed);
    EmbeddedStore inner;
    FaultyStore store(inner, {.seed = seed, .fails = 0.2, .is_doubtful = 0.2});
    LineageLog log(store, {.prefix = kPrefix, .build = kBuild, .segment_bytes = 500});
    Calls calls(log);
    for (int step = 0; step < 2000; ++step) {
      const std::int64_t what = random.Integers(0, 10);
      if (what < 5) {
        calls.Add(std::string(static_cast<std::size_t>(random.Integers(0, 100)), 'x'));
      } else if (what < 9) {
        if (calls.alive().empty()) continue;
        calls.Forget(static_cast<std::size_t>(random.Integers(0, std::ssize(calls.alive()))));
      } else if (random.Integers(0, 3) == 0) {
        log.Flush();
      } else {
        for (int i = 0; i < 10; ++i) store.Advance();
        log.Poll();
      }
      if (step % 50 != 0) continue;
      const auto loaded = Loaded(inner);
      for (const auto& call : calls.alive()) {
        if (call->number > log.durable()) continue;
        ASSERT_EQ(loaded.at(call->number), call->text) << seed;
      }
    }
    for (int i = 0; i < 100; ++i) {
      log.Flush();
      while (store.Advance()) continue;
    }
    log.Poll();
    EXPECT_EQ(log.durable(), log.appended());
    std::uint64_t bytes = 0;
    for (const auto& call : calls.alive()) bytes += 24 + call->text.size();
    std::uint64_t stored = 0;
    for (const auto& [key, value] : Contents(inner, StoreTable::kLineage)) stored += value.size();
    EXPECT_EQ(stored, log.counts().stored_bytes);
    EXPECT_LE(stored, 2 * bytes + 32 * log.counts().segments) << seed;
    EXPECT_EQ(log.counts().alive, calls.alive().size());
    EXPECT_EQ(log.counts().unwritten, 0u);
  }
}

TEST(LineageLogTest, AMillionShortLivesKeepMemoryAndStoreFlat) {
  const Folder folder;
  EmbeddedStore store({.log = StoreLogOptions{.folder = folder / "store",
                                              .sync_every = std::chrono::seconds(1),
                                              .file_bytes_min = 2'000'000}});
  LineageLog log(store, {.prefix = kPrefix, .build = kBuild});
  const std::string text(160, 's');
  const auto bytes = std::as_bytes(std::span<const char>(text));
  constexpr std::size_t kAlive = 1000;
  std::deque<LineageEntry> alive;
  std::uint64_t most_stored = 0;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    alive.push_back(log.Append(IdOf(i), bytes));
    if (alive.size() > kAlive) {
      log.Forget(alive.front());
      alive.pop_front();
    }
    if (i % 5000 == 0) log.Flush();
    most_stored = std::max(most_stored, log.counts().stored_bytes);
  }
  // Four flushes at the most are being written, of which each writes what is alive.
  EXPECT_LE(most_stored, 6 * kAlive * 200);
  EXPECT_LE(log.counts().written_bytes, 200 * kAlive * 200);
  std::uint64_t file_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "store")) {
    file_bytes += entry.path().extension() == ".log" ? entry.file_size() : 0;
  }
  // Begun anew when it has passed 4 MiB; by how much depends on how far the log's thread is behind.
  EXPECT_LE(file_bytes, 2u * (4 << 20));
}

}  // namespace
}  // namespace menger
