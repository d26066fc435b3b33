#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "menger/replay/sample.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)

TEST(TableResetTest, ATableIsEmptyAndItsKeysNameNothingAnyMore) {
  Chunks chunks;
  Table table(SmallTable(), chunks.store());
  const ChunkId chunk = chunks.New();
  const std::vector<ItemKey> before = InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  table.Reset();
  EXPECT_EQ(table.info().items, 0);
  EXPECT_EQ(table.info().bytes, 0U);
  const std::vector<ItemKey> after = InsertAll(table, {OneRow(chunk, 2), OneRow(chunk, 3)});
  const Found found = table.Delete(before);
  EXPECT_EQ(found.found, 0);
  EXPECT_EQ(found.stale, 2);
  EXPECT_EQ(table.Delete(after).found, 2);
  chunks.Drop(chunk);
}

// Two samples an insert within a window of two: both sides are where a new table's are.
TEST(TableResetTest, TheLimiterBeginsAnew) {
  TableOptions options = SmallTable();
  options.rate_limiter = RateLimiterOptions::SampleToInsertRatio(2, 3, 2);
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table used(options, chunks.store());
  InsertAll(used, {OneRow(chunk, 0), OneRow(chunk, 1), OneRow(chunk, 2)});
  Sample sample;
  used.SampleInto({.count = 2, .deadline = Soon()}, sample);
  sample.Release();
  EXPECT_FALSE(used.CanSample(1));
  used.Reset();
  Table fresh(options, chunks.store());
  for (int i = 0; i < 5; ++i) {
    for (int count = 1; count < 6; ++count) {
      EXPECT_EQ(used.CanInsert(count), fresh.CanInsert(count)) << i << ", " << count;
      EXPECT_EQ(used.CanSample(count), fresh.CanSample(count)) << i << ", " << count;
    }
    if (!fresh.CanInsert(1)) break;
    InsertAll(used, {OneRow(chunk, i)});
    InsertAll(fresh, {OneRow(chunk, i)});
  }
  EXPECT_FALSE(fresh.CanInsert(1));
  chunks.Drop(chunk);
}

TEST(TableResetTest, WhoWaitsToInsertGoesOn) {
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  options.times_sampled_max = 1;
  options.rate_limiter = RateLimiterOptions::Queue(1);
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(chunk, 0)});
  std::thread waiting([&] { InsertAll(table, {OneRow(chunk, 1)}); });
  while (table.info().inserts_waiting == 0) std::this_thread::yield();
  table.Reset();
  waiting.join();
  EXPECT_EQ(table.info().items, 1);
  chunks.Drop(chunk);
}

TEST(TableResetTest, ItemsThatWereSampledAreCountedOnce) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  Sample sample;
  table.SampleInto({.count = 5, .deadline = Soon()}, sample);
  sample.Release();
  EXPECT_EQ(table.info().items_sampled, 1);
  table.Reset();
  EXPECT_EQ(table.info().items_sampled, 0);
  chunks.Drop(chunk);
}

}  // namespace
}  // namespace menger
