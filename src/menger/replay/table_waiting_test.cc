// Calls that wait: for the rate limiter, for priorities, for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "menger/base/later_testing.h"
#include "menger/replay/table.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using std::chrono_literals::operator""ms;
using testing::HasSubstr;
using testing_tables::Chunks;
using testing_tables::ErrorText;
using testing_tables::InsertAll;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

TableOptions QueueOf(int size) {
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  options.rate_limiter = RateLimiterOptions::Queue(size);
  options.times_sampled_max = 1;
  return options;
}

TEST(TableWaitingTest, AFullQueueTakesWhatFitsAndSaysWhatItWaitsFor) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(QueueOf(2), chunks.store());
  const std::vector<ItemDraft> drafts = {OneRow(chunk, 0), OneRow(chunk, 1), OneRow(chunk, 2)};
  std::vector<ItemKey> keys;
  EXPECT_EQ(ErrorText(ErrorCode::kDeadlineExceeded, [&] { table.Insert(drafts, Now(), &keys); }),
            "table 'small': item 3 of 3 could not be inserted in time: rate limiter (1 sample an "
            "insert, min size 1, d in [0, 2]): d is 2 and would be 3; 1 more sample or 2 more "
            "deletions let inserting go on");
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_EQ(table.info().items, 2);
}

TEST(TableWaitingTest, DeadlinesAreKept) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(QueueOf(1), chunks.store());
  Sample sample;
  const Stopwatch watch;
  {
    MuchLater insert([&] { InsertAll(table, {OneRow(chunk, 2)}); });
    EXPECT_THROW(table.SampleInto({.count = 1, .deadline = Deadline::After(30ms)}, sample), Error);
    EXPECT_GE(watch.seconds(), 0.030);
    EXPECT_FALSE(insert.came());
  }
  InsertAll(table, {OneRow(chunk, 0)});
  const std::vector<ItemDraft> draft = {OneRow(chunk, 1)};
  MuchLater taken([&] { table.SampleInto({.count = 1, .deadline = Soon()}, sample); });
  EXPECT_THROW(table.Insert(draft, Deadline::After(30ms)), Error);
  EXPECT_GE(watch.seconds(), 0.060);
  EXPECT_FALSE(taken.came());
}

TEST(TableWaitingTest, AnInsertWaitsForASampleAndASampleForAnInsert) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(QueueOf(1), chunks.store());
  constexpr int kItems = 300;
  std::thread writer([&] {
    for (int i = 0; i < kItems; ++i) InsertAll(table, {OneRow(chunk, i % 8)});
  });
  Sample sample;
  for (std::uint64_t i = 1; i <= kItems; ++i) {
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
    EXPECT_EQ(sample.items()[0].key.number, i);
  }
  writer.join();
}

// A call that waits in its middle has told others what it did before.
TEST(TableWaitingTest, ALongInsertLetsReadersTakeItsBeginning) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(QueueOf(3), chunks.store());
  std::thread reader([&] {
    Sample sample;
    for (int taken = 0; taken < 100; taken += 2) {
      table.SampleInto({.count = 2, .deadline = Soon()}, sample);
    }
  });
  InsertAll(table, std::vector<ItemDraft>(100, OneRow(chunk, 0)));
  reader.join();
  EXPECT_EQ(table.info().samples, 100);
  EXPECT_EQ(table.info().items, 0);
}

TEST(TableWaitingTest, ASampleWaitsForAllItsItems) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.rate_limiter = RateLimiterOptions::MinSize(5);
  Table table(options, chunks.store());
  std::atomic<bool> done = false;
  std::thread reader([&] {
    Sample sample;
    table.SampleInto({.count = 3, .deadline = Soon()}, sample);
    done = true;
    EXPECT_EQ(sample.size(), 3);
    EXPECT_EQ(sample.table_items(), 5);
  });
  for (int i = 0; i < 4; ++i) InsertAll(table, {OneRow(chunk, i)});
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(done);
  InsertAll(table, {OneRow(chunk, 4)});
  reader.join();
}

// The rest of a batch that ran out of items comes as they are inserted.
TEST(TableWaitingTest, ABatchThatRanOutOfItemsWaitsForTheRest) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.times_sampled_max = 1;
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  std::thread writer([&] {
    for (int i = 2; i < 6; ++i) {
      std::this_thread::sleep_for(1ms);
      InsertAll(table, {OneRow(chunk, i)});
    }
  });
  Sample sample;
  table.SampleInto({.count = 6, .deadline = Soon()}, sample);
  EXPECT_EQ(sample.size(), 6);
  writer.join();
}

// Each item may be drawn once on average.
TableOptions OneDrawAnItem() {
  TableOptions options = SmallTable();
  options.rate_limiter = {.samples_per_insert = 1, .min_size = 1, .min_diff = 0};
  return options;
}

TEST(TableWaitingTest, AWholeBatchIsDrawnAtOnceOrNotAtAll) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(OneDrawAnItem(), chunks.store());
  InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  Sample sample;
  const auto draw = [&](const Deadline& deadline) {
    table.SampleInto({.count = 3, .whole = true, .deadline = deadline}, sample);
  };
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { draw(Now()); }),
              HasSubstr("3 items could not be sampled"));
  EXPECT_EQ(table.TrySample({.count = 3, .whole = true, .deadline = Now()}, sample), 0);
  EXPECT_EQ(table.info().samples, 0);
  std::thread reader([&] { draw(Soon()); });
  std::this_thread::sleep_for(1ms);
  InsertAll(table, {OneRow(chunk, 2)});
  reader.join();
  EXPECT_EQ(sample.size(), 3);
  EXPECT_EQ(table.info().samples, 3);
}

TEST(TableWaitingTest, WhoWantsAWholeBatchIsServedBeforeWhoCameLaterForLess) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(OneDrawAnItem(), chunks.store());
  InsertAll(table, {OneRow(chunk, 0)});
  Sample whole, single;
  std::thread first(
      [&] { table.SampleInto({.count = 3, .whole = true, .deadline = Soon()}, whole); });
  std::this_thread::sleep_for(5ms);
  std::thread second([&] { table.SampleInto({.count = 1, .deadline = Soon()}, single); });
  for (int i = 1; i < 4; ++i) {
    std::this_thread::sleep_for(1ms);
    InsertAll(table, {OneRow(chunk, i)});
  }
  first.join();
  second.join();
  EXPECT_EQ(whole.size(), 3);
  EXPECT_EQ(single.size(), 1);
}

TEST(TableWaitingTest, ADeletionLetsAnInsertGoOnBelowTheMinimumSize) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.rate_limiter = {.samples_per_insert = 5, .min_size = 2, .min_diff = 0, .max_diff = 5};
  Table table(options, chunks.store());
  const std::vector<ItemKey> keys = InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  std::thread writer([&] { InsertAll(table, {OneRow(chunk, 2)}); });
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(table.info().inserts, 2);
  table.Delete(keys);
  writer.join();
  EXPECT_EQ(table.info().items, 1);
}

TEST(TableWaitingTest, APriorityAboveZeroEndsTheWaitOfSamplerAndRemover) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kPrioritised;
  options.remover.kind = SelectorKind::kPrioritised;
  options.items_max = 2;
  Table table(options, chunks.store());
  const std::vector<ItemKey> keys =
      InsertAll(table, {OneRow(chunk, 0, 0.0), OneRow(chunk, 1, 0.0)});
  Sample sample;
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded,
                        [&] { table.SampleInto({.count = 1, .deadline = Now()}, sample); }),
              HasSubstr("the priorities of all 2 items are 0 to its sampler prioritised(1)"));
  const std::vector<ItemDraft> draft = {OneRow(chunk, 2)};
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { table.Insert(draft, Now()); }),
              HasSubstr("the priorities of all 2 items are 0 to its remover prioritised(1)"));
  EXPECT_EQ(table.info().items, 2);

  std::thread reader([&] { table.SampleInto({.count = 1, .deadline = Soon()}, sample); });
  std::thread writer([&] { table.Insert(draft, Soon()); });
  std::this_thread::sleep_for(2ms);
  table.UpdatePriorities(std::vector<PriorityUpdate>{{keys[1], 1.0}});
  reader.join();
  writer.join();
  EXPECT_EQ(table.Delete(std::vector<ItemKey>{keys[1]}).stale, 1);  // It made room.
}

// An item that could not be placed after all leaves no trace.
TEST(TableWaitingTest, AnInsertThatFindsNoBytesGivesItsChunksBack) {
  Chunks chunks;
  const ChunkId a = chunks.New();
  const ChunkId b = chunks.New();
  TableOptions options = SmallTable();
  options.remover.kind = SelectorKind::kPrioritised;
  options.bytes_max = testing_tables::kChunkBytes;
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(a, 0, 0.0)});
  const std::vector<ItemDraft> draft = {OneRow(b, 0)};
  EXPECT_THROW(table.Insert(draft, Now()), Error);
  EXPECT_EQ(table.info().items, 1);
  EXPECT_EQ(table.info().bytes, testing_tables::kChunkBytes);
  chunks.Drop(b);
  EXPECT_EQ(chunks.store().chunks(), 1U);
}

TEST(TableWaitingTest, CloseEndsAllWaitsNowAndToCome) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(QueueOf(1), chunks.store());
  Table empty(QueueOf(1), chunks.store());
  InsertAll(table, {OneRow(chunk, 0)});
  std::thread writer([&] {
    EXPECT_EQ(ErrorText(ErrorCode::kCancelled, [&] { InsertAll(table, {OneRow(chunk, 1)}); }),
              "table 'small' is closed");
  });
  std::thread reader([&] {
    Sample sample;
    EXPECT_EQ(ErrorText(ErrorCode::kCancelled,
                        [&] { empty.SampleInto({.count = 1, .deadline = Soon()}, sample); }),
              "table 'small' is closed");
  });
  std::this_thread::sleep_for(5ms);
  table.Close();
  empty.Close();
  writer.join();
  reader.join();
  Sample sample;
  EXPECT_EQ(ErrorText(ErrorCode::kCancelled,
                      [&] { table.SampleInto({.count = 1, .deadline = Soon()}, sample); }),
            "table 'small' is closed");
}

// Writers, readers that update what they drew, and deleters, over chunks that come and go.
void Stress(int threads, int rounds) {
  Chunks chunks(std::size_t{1} << 20);
  TableOptions options = SmallTable();
  options.sampler = {.kind = SelectorKind::kPrioritised, .exponent = 0.6};
  options.items_max = 200;
  options.bytes_max = 40 * testing_tables::kChunkBytes;
  options.rate_limiter = RateLimiterOptions::SampleToInsertRatio(2, 10, 500);
  Table table(options, chunks.store());
  std::atomic<std::int64_t> inserted = 0;
  std::atomic<std::int64_t> sampled = 0;
  const auto write = [&](int seed) {
    Random random = Random::FromSeed(seed);
    for (int i = 0; i < rounds; ++i) {
      const ChunkId chunk = chunks.New();
      std::vector<ItemDraft> drafts;
      for (int row = 0; row < 8; ++row) drafts.push_back(OneRow(chunk, row, random.Double() + 0.1));
      inserted += std::ssize(InsertAll(table, drafts));
      chunks.Drop(chunk);
    }
  };
  const auto read = [&](int seed) {
    Random random = Random::FromSeed(seed);
    Sample sample;
    for (int i = 0; i < rounds; ++i) {
      table.SampleInto({.count = 16, .deadline = Soon()}, sample);
      sampled += sample.size();
      std::vector<PriorityUpdate> updates;
      for (const SampledItem& item : sample.items()) updates.push_back({item.key, random.Double()});
      table.UpdatePriorities(updates);
      EXPECT_EQ(sample.slices(0, 0)[0].length, 1);
      if (i % 50 == 0) table.Delete(std::vector<ItemKey>{sample.items()[0].key});
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(write, 2 * i);
    workers.emplace_back(read, 2 * i + 1);
  }
  for (std::thread& worker : workers) worker.join();

  const TableInfo info = table.info();
  EXPECT_EQ(inserted, std::int64_t{threads} * rounds * 8);
  EXPECT_EQ(sampled, std::int64_t{threads} * rounds * 16);
  EXPECT_EQ(info.inserts, inserted);
  EXPECT_EQ(info.samples, sampled);
  EXPECT_EQ(info.items, info.inserts - info.deletes);
  EXPECT_LE(info.items, options.items_max);
  EXPECT_EQ(info.bytes, chunks.store().bytes_used());
}

TEST(TableWaitingTest, WritersAndReadersOnManyThreadsLoseNothing) {
  for (const int threads : {1, 2, 8}) {
    SCOPED_TRACE(threads);
    Stress(threads, /*rounds=*/300);
  }
}

}  // namespace
}  // namespace menger
