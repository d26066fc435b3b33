// Who waits is served in the order of coming; queues keep what they promise; nobody waits for a
// call that has a great deal to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "menger/replay/table.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::HasSubstr;
using testing_tables::Chunks;
using testing_tables::ErrorText;
using testing_tables::InsertAll;
using testing_tables::kChunkBytes;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

TableOptions Queue(int size) {
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  options.rate_limiter = RateLimiterOptions::Queue(size);
  options.times_sampled_max = 1;
  return options;
}

// Until `ready`; the test fails where it does not come.
template <typename Ready>
void Until(Ready ready) {
  const Deadline deadline = Soon();
  while (!ready() && !deadline.expired()) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(ready());
}

// ---- First come, first served

TEST(TableFairnessTest, WritersThatWaitAreServedInTheOrderOfComing) {
  constexpr int kWriters = 40;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(Queue(1), chunks.store());
  InsertAll(table, {OneRow(chunk, 0, /*priority=*/1000)});
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] { InsertAll(table, {OneRow(chunk, i % 8, i)}); });
    Until([&] { return table.info().inserts_waiting == i + 1; });
  }
  Sample sample;
  for (int i = -1; i < kWriters; ++i) {
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
    EXPECT_EQ(sample.items()[0].priority, i < 0 ? 1000 : i);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(table.info().inserts_waiting, 0);
}

TEST(TableFairnessTest, ReadersThatWaitAreServedInTheOrderOfComing) {
  constexpr int kReaders = 20;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(Queue(100), chunks.store());
  std::vector<double> priorities(kReaders);
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      Sample sample;
      table.SampleInto({.count = 1 + i % 3, .deadline = Soon()}, sample);
      EXPECT_EQ(sample.size(), 1 + i % 3);
      priorities[i] = sample.items()[0].priority;
    });
    Until([&] { return table.info().samples_waiting == i + 1; });
  }
  for (int i = 0; i < 2 * kReaders; ++i) InsertAll(table, {OneRow(chunk, i % 8, i)});
  for (std::thread& reader : readers) reader.join();
  int next = 0;
  for (int i = 0; i < kReaders; next += 1 + i++ % 3) EXPECT_EQ(priorities[i], next) << i;
}

// Each writer of many gets its share, whoever is awake when a place becomes free.
TEST(TableFairnessTest, ManyWritersOfAQueueOfOneAllMakeProgress) {
  constexpr int kWriters = 64;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(Queue(1), chunks.store());
  std::atomic<bool> stop = false;
  std::vector<std::int64_t> taken(kWriters);
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      const std::vector<ItemDraft> draft = {OneRow(chunk, 0)};
      while (!stop) {
        std::vector<ItemKey> keys;
        try {
          table.Insert(draft, Soon(), &keys);
        } catch (const Error&) {
        }
        taken[i] += std::ssize(keys);
      }
    });
  }
  Until([&] { return table.info().inserts_waiting >= kWriters - 1; });
  Sample sample;
  for (int i = 0; i < 100 * kWriters; ++i) {
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
  }
  stop = true;
  table.Close();
  for (std::thread& writer : writers) writer.join();
  // A writer's next call may come after others have come twice, on a busy machine; never so often.
  const auto [least, most] = std::ranges::minmax(taken);
  EXPECT_GE(least, 50);
  EXPECT_LE(most, 200);
}

TEST(TableFairnessTest, AnAttemptOvertakesNobody) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(Queue(2), chunks.store());
  const std::vector<ItemDraft> drafts(3, OneRow(chunk, 0));
  std::vector<ItemKey> keys;
  EXPECT_EQ(table.TryInsert(drafts, &keys), 2);
  EXPECT_EQ(keys.size(), 2U);
  EXPECT_EQ(table.TryInsert(drafts), 0);
  Sample sample;
  EXPECT_EQ(table.TrySample({.count = 5, .deadline = Soon()}, sample), 2);
  EXPECT_EQ(sample.size(), 2);
  EXPECT_EQ(table.TrySample({.count = 5, .deadline = Soon()}, sample), 0);

  // One waits for three places of two: nobody gets the second.
  std::thread writer([&] { InsertAll(table, drafts); });
  Until([&] { return table.info().inserts_waiting == 1; });
  EXPECT_EQ(table.TryInsert(drafts), 0);
  EXPECT_EQ(table.TrySample({.count = 1, .deadline = Soon()}, sample), 1);
  writer.join();
  EXPECT_EQ(table.info().items, 2);
  EXPECT_EQ(table.TrySample({.count = 5, .deadline = Soon()}, sample), 2);

  std::thread reader([&] {
    Sample mine;
    table.SampleInto({.count = 2, .deadline = Soon()}, mine);
  });
  Until([&] { return table.info().samples_waiting == 1; });
  EXPECT_EQ(table.TryInsert({drafts.data(), 1}), 1);
  EXPECT_EQ(table.TrySample({.count = 1, .deadline = Soon()}, sample), 0);  // The reader's.
  EXPECT_EQ(table.TryInsert({drafts.data(), 1}), 1);
  reader.join();
  EXPECT_EQ(table.info().samples, 7);
}

// ---- Batches and limiters

// Whatever the ratio, its buffer and the batch, reader and writer both come to their end.
TEST(TableFairnessTest, NoBatchIsTooLargeForALimiter) {
  for (const double ratio : {0.5, 1.0, 4.0, 7.3}) {
    for (const double buffer : {8.0, 16.0, 50.0}) {
      for (const int batch : {1, 7, 31, 32, 33, 100}) {
        SCOPED_TRACE(testing::Message() << ratio << " " << buffer << " " << batch);
        Chunks chunks;
        const ChunkId chunk = chunks.New();
        TableOptions options = SmallTable();
        options.rate_limiter = RateLimiterOptions::SampleToInsertRatio(ratio, 20, buffer);
        Table table(options, chunks.store());
        const int batches = 400 / batch + 1;
        std::thread writer([&] {
          const auto inserts = static_cast<int>(batches * batch / ratio) + 30;
          const std::vector<ItemDraft> draft = {OneRow(chunk, 0)};
          try {
            for (int i = 0; i < inserts; ++i) table.Insert(draft, Soon());
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
          }
        });
        Sample sample;
        for (int i = 0; i < batches; ++i) {
          ASSERT_NO_THROW(table.SampleInto({.count = batch, .deadline = Soon()}, sample));
          ASSERT_EQ(sample.size(), batch);
        }
        table.Close();
        writer.join();
      }
    }
  }
}

// Writers that only try never wait, so that nobody is seen to be held up by them.
TEST(TableFairnessTest, ABatchIsDrawnInPartsForWritersThatOnlyTry) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.rate_limiter = RateLimiterOptions::SampleToInsertRatio(4, 100, 16);
  Table table(options, chunks.store());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    const std::vector<ItemDraft> draft = {OneRow(chunk, 0)};
    while (!done) {
      if (table.TryInsert(draft) == 0) std::this_thread::yield();
    }
  });
  Sample sample;
  for (int i = 0; i < 50; ++i) {
    table.SampleInto({.count = 31, .deadline = Soon()}, sample);
    EXPECT_EQ(sample.size(), 31);
  }
  done = true;
  writer.join();
}

TEST(TableFairnessTest, EveryDrawAsksTheLimiter) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.rate_limiter = RateLimiterOptions::MinSize(100);
  options.times_sampled_max = 1;
  Table table(options, chunks.store());
  InsertAll(table, std::vector<ItemDraft>(100, OneRow(chunk, 0)));
  Sample sample;
  table.SampleInto({.count = 32, .deadline = Now()}, sample);
  EXPECT_EQ(sample.size(), 1);
  EXPECT_EQ(table.info().items, 99);
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded,
                        [&] { table.SampleInto({.count = 32, .deadline = Now()}, sample); }),
              HasSubstr("99 of 100 items are there"));
}

// Of any limiter, batches and deletions: once everybody waits, the limiter does not allow what the
// first of them waits for. A call that was not woken would be found here.
void WaitInVain(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  Random random = Random::FromSeed(seed);
  TableOptions options = SmallTable();
  const double ratio = std::vector{0.3, 1.0, 2.0, 5.5}[random.Integers(0, 4)];
  options.rate_limiter = RateLimiterOptions::SampleToInsertRatio(
      ratio, random.Integers(1, 30), std::max(1.0, ratio) * random.Uniform(1, 4));
  options.items_max = random.Integers(30, 200);
  options.sampler.kind = SelectorKind::kFifo;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(options, chunks.store());
  std::atomic<int> alive = 0;
  const auto until_closed = [&](auto call) {
    ++alive;
    return std::thread(
        [&alive, call, own = Random::FromSeed(random.Integers(0, 1 << 30))]() mutable {
          try {
            for (int i = 0; i < 100; ++i) call(own);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
          }
          --alive;
        });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(until_closed([&](Random& own) {
      InsertAll(table, std::vector<ItemDraft>(own.Integers(1, 9), OneRow(chunk, 0)));
    }));
    threads.push_back(until_closed([&](Random& own) {
      Sample sample;
      const int count = static_cast<int>(own.Integers(1, 40));
      table.SampleInto({.count = count, .deadline = Soon()}, sample);
      EXPECT_EQ(sample.size(), count);
      if (own.Integers(0, 5) == 0) table.Delete(std::vector<ItemKey>{sample.items()[0].key});
    }));
  }
  const auto waits_in_vain = [&](const TableInfo& info) {
    RateLimiter limiter(options.rate_limiter);
    limiter.Inserted(info.inserts);
    limiter.Sampled(info.samples);
    limiter.Deleted(info.deletes);
    if (info.inserts_waiting > 0 && limiter.CanInsert(1)) return true;
    return info.samples_waiting > 0 && limiter.CanSample(info.inserts_waiting > 0 ? 1 : 40);
  };
  // Who was just called still stands in its queue: only what stays so for long is in vain.
  const Deadline deadline = Deadline::After(10s);
  TableInfo info = table.info();
  while (info.inserts_waiting + info.samples_waiting < alive || waits_in_vain(info)) {
    if (deadline.expired()) break;
    std::this_thread::sleep_for(1ms);
    info = table.info();
  }
  EXPECT_FALSE(waits_in_vain(info)) << info.inserts << " inserts, " << info.samples << " samples";
  table.Close();
  for (std::thread& thread : threads) thread.join();
}

TEST(TableFairnessTest, NobodyWaitsForWhatTheLimiterAllows) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) WaitInVain(seed);
}

// ---- Queues

TEST(TableFairnessTest, AQueueTakesAsManyAfterItemsWentOtherwise) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(Queue(50), chunks.store());
  const std::vector<ItemDraft> old(50, OneRow(chunk, 0, 1.0, {1, 1}));
  const std::vector<ItemDraft> fresh(51, OneRow(chunk, 0, 1.0, {9, 9}));
  Sample sample;
  for (int round = 0; round < 3; ++round) {
    std::vector<ItemKey> keys;
    EXPECT_EQ(table.TryInsert(old, &keys), 50);
    const SampleRequest request{.count = 50, .deadline = Now(), .version = 9, .staleness_max = 2};
    EXPECT_THROW(table.SampleInto(request, sample), Error);  // All of them are too old.
    EXPECT_EQ(table.TryInsert(fresh, &keys), 50);
    EXPECT_EQ(table.Delete(std::span(keys).subspan(50, 30)).found, 30);
    EXPECT_EQ(table.TryInsert(fresh), 30);
    EXPECT_EQ(table.TrySample({.count = 100, .deadline = Now()}, sample), 50);
  }
  const TableInfo info = table.info();
  EXPECT_EQ(info.evicted, 0);
  EXPECT_EQ(info.dropped_stale, 150);
  EXPECT_EQ(info.samples, 150);
}

// Its bytes are fewer than its items would need: inserts wait, and nothing is lost.
TEST(TableFairnessTest, AQueueThatIsFullByItsBytesLosesNothing) {
  Chunks chunks;
  TableOptions options = Queue(50);
  options.bytes_max = 3 * kChunkBytes;
  Table table(options, chunks.store());
  const auto insert = [&](int value, const Deadline& deadline) {
    const ChunkId chunk = chunks.New();
    const std::vector<ItemDraft> draft = {OneRow(chunk, 0, value)};
    try {
      table.Insert(draft, deadline);
    } catch (...) {
      chunks.Drop(chunk);
      throw;
    }
    chunks.Drop(chunk);
  };
  for (int i = 0; i < 3; ++i) insert(i, Soon());
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { insert(3, Now()); }),
              HasSubstr("the table is full (3 items of items_max 1000, 192 bytes of bytes_max "
                        "192), and none of them goes before it was sampled 1 time"));
  std::thread writer([&] {
    for (int i = 3; i < 100; ++i) insert(i, Soon());
  });
  Sample sample;
  for (int i = 0; i < 100; ++i) {
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
    EXPECT_EQ(sample.items()[0].priority, i);
  }
  writer.join();
  EXPECT_EQ(table.info().evicted, 0);
}

// ---- Long calls

// Others come in while a call goes through a large table: they see it half emptied.
TEST(TableFairnessTest, ALongCallLetsOthersIn) {
  constexpr int kItems = 300'000;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.items_max = kItems;
  options.times_sampled_max = 1;
  options.sampler.kind = SelectorKind::kFifo;
  Table table(options, chunks.store());
  InsertAll(table, std::vector<ItemDraft>(kItems, OneRow(chunk, 0, 1.0, {1, 1})));
  std::atomic<bool> begun = false;
  std::atomic<bool> done = false;
  std::set<std::int64_t> seen;
  std::thread watcher([&] {
    begun = true;
    while (!done) seen.insert(table.info().items);
  });
  Until([&] { return begun.load(); });
  Sample sample;
  const SampleRequest request{.count = 1, .deadline = Soon(), .version = 9, .staleness_max = 2};
  std::thread closer([&] {
    Until([&] { return table.info().items == 0; });
    table.Close();
  });
  EXPECT_THROW(table.SampleInto(request, sample), Error);
  done = true;
  watcher.join();
  closer.join();
  seen.erase(kItems);
  seen.erase(0);
  EXPECT_GE(seen.size(), 3U);  // Of 18 pieces.
}

}  // namespace
}  // namespace menger
