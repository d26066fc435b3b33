#include "menger/replay/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_tables::Chunks;
using testing_tables::ErrorText;
using testing_tables::InsertAll;
using testing_tables::kChunkBytes;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

std::vector<std::uint64_t> Numbers(const Sample& sample) {
  std::vector<std::uint64_t> numbers;
  for (const SampledItem& item : sample.items()) numbers.push_back(item.key.number);
  return numbers;
}

TEST(TableTest, ASampleShowsItsItemsAsTheyWereInserted) {
  Chunks chunks;
  const ChunkId a = chunks.New();
  const ChunkId b = chunks.New();
  Table table(SmallTable(), chunks.store());
  const Slice end_of_a{.chunk = a, .offset = 6, .length = 2};
  const Slice begin_of_b{.chunk = b, .offset = 0, .length = 1};
  const std::vector<ItemKey> keys = InsertAll(table, {{.priority = 2.5,
                                                       .versions = {3, 4},
                                                       .slices = {end_of_a, begin_of_b, begin_of_b},
                                                       .slice_counts = {2, 1}}});
  ASSERT_EQ(keys.size(), 1U);
  Sample sample;
  table.SampleInto({.count = 2, .deadline = Soon()}, sample);
  ASSERT_EQ(sample.size(), 2);
  EXPECT_EQ(sample.table_items(), 1);
  for (int i = 0; i < 2; ++i) {
    const SampledItem& item = sample.items()[i];
    EXPECT_EQ(item.key, keys[0]);
    EXPECT_EQ(item.priority, 2.5);
    EXPECT_EQ(item.probability, 1.0);
    EXPECT_EQ(item.times_sampled, i + 1);
    EXPECT_EQ(item.versions, (VersionRange{3, 4}));
    EXPECT_THAT(sample.slices(i, 0), ElementsAre(end_of_a, begin_of_b));
    EXPECT_THAT(sample.slices(i, 1), ElementsAre(begin_of_b));
  }
}

TEST(TableTest, BeyondTheItemBoundTheRemoverChoosesAmongTheOlderItems) {
  // Of the items of priorities 5, 3, 4, then 1: what is left in a table of three.
  const std::map<SelectorKind, std::vector<std::uint64_t>> left = {
      {SelectorKind::kFifo, {2, 3, 4}},
      {SelectorKind::kLifo, {1, 2, 4}},
      {SelectorKind::kMinHeap, {1, 3, 4}},  // Not 4 itself, which is the lowest of all.
      {SelectorKind::kMaxHeap, {2, 3, 4}},
  };
  for (const auto& [kind, expected] : left) {
    Chunks chunks;
    const ChunkId chunk = chunks.New();
    TableOptions options = SmallTable();
    options.items_max = 3;
    options.remover.kind = kind;
    options.sampler.kind = SelectorKind::kFifo;
    options.times_sampled_max = 1;
    Table table(options, chunks.store());
    InsertAll(table, {OneRow(chunk, 0, 5), OneRow(chunk, 1, 3), OneRow(chunk, 2, 4)});
    EXPECT_EQ(table.info().evicted, 0);
    InsertAll(table, {OneRow(chunk, 3, 1)});
    EXPECT_EQ(table.info().evicted, 1);
    EXPECT_EQ(table.info().items, 3);
    Sample sample;
    table.SampleInto({.count = 3, .deadline = Soon()}, sample);
    EXPECT_EQ(Numbers(sample), expected) << ToString({.kind = kind});
  }
}

TEST(TableTest, BytesAreThoseOfChunksHoweverManyItemsShareThem) {
  Chunks chunks;
  const ChunkId a = chunks.New();
  const ChunkId b = chunks.New();
  Table table(SmallTable(), chunks.store());
  const std::vector<ItemKey> keys =
      InsertAll(table, {OneRow(a, 0), OneRow(a, 1), OneRow(b, 0), OneRow(b, 1)});
  EXPECT_EQ(table.info().bytes, 2 * kChunkBytes);
  chunks.Drop(a);
  chunks.Drop(b);
  table.Delete(std::vector<ItemKey>{keys[0], keys[2]});
  EXPECT_EQ(table.info().bytes, 2 * kChunkBytes);
  EXPECT_EQ(chunks.store().chunks(), 2U);
  table.Delete(std::vector<ItemKey>{keys[1]});
  EXPECT_EQ(table.info().bytes, kChunkBytes);
  EXPECT_EQ(chunks.store().chunks(), 1U);
}

TEST(TableTest, TheByteBoundIsNeverCrossedAndEvictsNoMoreThanItMust) {
  Chunks chunks;
  TableOptions options = SmallTable();
  options.bytes_max = 3 * kChunkBytes;
  Table table(options, chunks.store());
  for (int i = 0; i < 10; ++i) {
    const ChunkId chunk = chunks.New();
    for (int row = 0; row < 4; ++row) {
      InsertAll(table, {OneRow(chunk, row)});
      ASSERT_LE(table.info().bytes, options.bytes_max);
    }
    chunks.Drop(chunk);
  }
  EXPECT_EQ(table.info().items, 12);  // Of the last three chunks.
  EXPECT_EQ(table.info().evicted, 28);
  EXPECT_EQ(chunks.store().chunks(), 3U);
}

// The oldest item shares its chunk with the new one: evicting it gives nothing back, so the next
// has to go too; the new one itself stays.
TEST(TableTest, AnItemThatSharesAChunkWithTheEvictedKeepsIt) {
  Chunks chunks;
  const ChunkId a = chunks.New();
  const ChunkId b = chunks.New();
  const ChunkId c = chunks.New();
  TableOptions options = SmallTable();
  options.bytes_max = 2 * kChunkBytes;
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(a, 0), OneRow(b, 0)});
  const Slice of_a{.chunk = a, .offset = 1, .length = 1};
  const Slice of_c{.chunk = c, .offset = 0, .length = 1};
  InsertAll(table, {{.slices = {of_a, of_c, of_c}, .slice_counts = {2, 1}}});
  EXPECT_EQ(table.info().items, 1);
  EXPECT_EQ(table.info().bytes, 2 * kChunkBytes);
  Sample sample;
  table.SampleInto({.count = 1, .deadline = Soon()}, sample);
  EXPECT_THAT(Numbers(sample), ElementsAre(3));
}

TEST(TableTest, ASampleKeepsItsChunksWhenTheTableDropsThem) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Sample sample;
  Table table(SmallTable(), chunks.store());
  const std::vector<ItemKey> keys = InsertAll(table, {OneRow(chunk, 0)});
  chunks.Drop(chunk);
  table.SampleInto({.count = 3, .deadline = Soon()}, sample);
  table.Delete(keys);
  EXPECT_EQ(chunks.store().chunks(), 1U);
  sample.Release();
  EXPECT_EQ(chunks.store().chunks(), 0U);
}

TEST(TableTest, ATableThatGoesGivesAllChunksBack) {
  Chunks chunks;
  {
    Table table(SmallTable(), chunks.store());
    for (int i = 0; i < 5; ++i) {
      const ChunkId chunk = chunks.New();
      InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
      chunks.Drop(chunk);
    }
    EXPECT_EQ(chunks.store().chunks(), 5U);
  }
  EXPECT_EQ(chunks.store().chunks(), 0U);
}

TEST(TableTest, ItemsGoWhenTheyWereSampledSoOften) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kFifo;
  options.times_sampled_max = 2;
  Table table(options, chunks.store());
  InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1), OneRow(chunk, 2)});
  Sample sample;
  table.SampleInto({.count = 5, .deadline = Soon()}, sample);
  EXPECT_THAT(Numbers(sample), ElementsAre(1, 1, 2, 2, 3));
  EXPECT_EQ(table.info().items, 1);
  EXPECT_EQ(table.info().deletes, 2);
  // One draw is left: a call for two gives it at its deadline, the next one nothing.
  table.SampleInto({.count = 2, .deadline = Now()}, sample);
  EXPECT_THAT(Numbers(sample), ElementsAre(3));
  EXPECT_EQ(ErrorText(ErrorCode::kDeadlineExceeded,
                      [&] { table.SampleInto({.count = 2, .deadline = Now()}, sample); }),
            "table 'small': 2 items could not be sampled in time: rate limiter (1 sample an "
            "insert, min size 1): 0 of 1 items are there, d is -3 and would be -4; 1 more insert "
            "lets sampling go on");
  EXPECT_EQ(sample.size(), 0);
}

TEST(TableTest, StaleKeysAreCountedAndTouchNobodyElse) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kMaxHeap;
  Table table(options, chunks.store());
  const std::vector<ItemKey> old = InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  table.Delete(std::vector<ItemKey>{old[0]});
  const std::vector<ItemKey> now = InsertAll(table, {OneRow(chunk, 2)});
  EXPECT_EQ(now[0].slot, old[0].slot);  // The slot is used again, the number is not.
  EXPECT_NE(now[0].number, old[0].number);

  const std::vector<PriorityUpdate> updates = {
      {old[0], 9.0}, {now[0], 7.0}, {ItemKey{}, 9.0}, {{.number = 1, .slot = 99'999}, 9.0}};
  const Found updated = table.UpdatePriorities(updates);
  EXPECT_EQ(updated.found, 1);
  EXPECT_EQ(updated.stale, 3);
  Sample sample;
  table.SampleInto({.count = 1, .deadline = Soon()}, sample);
  EXPECT_EQ(sample.items()[0].key, now[0]);
  EXPECT_EQ(sample.items()[0].priority, 7.0);

  const Found deleted = table.Delete(std::vector<ItemKey>{old[0], old[1], old[1]});
  EXPECT_EQ(deleted.found, 1);
  EXPECT_EQ(deleted.stale, 2);
  EXPECT_EQ(table.info().stale_keys, 5);
}

TEST(TableTest, OfSeveralUpdatesOfOneItemTheLastCounts) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kPrioritised;
  Table table(options, chunks.store());
  const std::vector<ItemKey> keys = InsertAll(table, {OneRow(chunk, 0), OneRow(chunk, 1)});
  const std::vector<PriorityUpdate> updates = {{keys[0], 5.0}, {keys[1], 3.0}, {keys[0], 0.0}};
  EXPECT_EQ(table.UpdatePriorities(updates).found, 3);
  Sample sample;
  table.SampleInto({.count = 50, .deadline = Soon()}, sample);
  for (const SampledItem& item : sample.items()) {
    EXPECT_EQ(item.key, keys[1]);
    EXPECT_EQ(item.probability, 1.0);
  }
}

TEST(TableTest, APriorityThatMeansNothingChangesNothing) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(SmallTable(), chunks.store());
  const std::vector<ItemKey> keys = InsertAll(table, {OneRow(chunk, 0, 4.0), OneRow(chunk, 1)});
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<PriorityUpdate> updates = {{keys[0], 5.0}, {keys[1], bad}};
    EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { table.UpdatePriorities(updates); }),
                HasSubstr("table 'small': update of item 2: priority is "));
  }
  table.Delete(std::vector<ItemKey>{keys[1]});
  Sample sample;
  table.SampleInto({.count = 1, .deadline = Soon()}, sample);
  EXPECT_EQ(sample.items()[0].priority, 4.0);
}

TEST(TableTest, TheSameSeedAndOperationsGiveTheSameDraws) {
  std::vector<std::vector<std::uint64_t>> draws(2);
  for (std::vector<std::uint64_t>& drawn : draws) {
    Chunks chunks;
    const ChunkId chunk = chunks.New();
    TableOptions options = SmallTable();
    options.sampler = {.kind = SelectorKind::kPrioritised, .exponent = 0.6};
    options.remover.kind = SelectorKind::kUniform;
    options.items_max = 50;
    options.seed = 20;
    Table table(options, chunks.store());
    Random random = Random::FromSeed(21);
    Sample sample;
    for (int i = 0; i < 300; ++i) {
      InsertAll(table, {OneRow(chunk, i % 8, random.Double())});
      table.SampleInto({.count = 1 + i % 7, .deadline = Soon()}, sample);
      std::vector<PriorityUpdate> updates;
      for (const SampledItem& item : sample.items()) {
        drawn.push_back(item.key.number);
        updates.push_back({item.key, random.Double()});
      }
      table.UpdatePriorities(updates);
    }
  }
  EXPECT_EQ(draws[0], draws[1]);
}

// ---- Priorities

TEST(TableTest, AnItemWithoutAPriorityGetsTheHighestThatTheTableWasGiven) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kLifo;
  Table table(options, chunks.store());
  ItemDraft draft = OneRow(chunk, 0);
  draft.priority.reset();
  Sample sample;
  const auto priority_of_a_new_one = [&] {
    InsertAll(table, {draft});
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
    return sample.items()[0].priority;
  };
  EXPECT_EQ(priority_of_a_new_one(), 1.0);
  InsertAll(table, {OneRow(chunk, 0, 0.25)});
  EXPECT_EQ(priority_of_a_new_one(), 1.0);
  const ItemKey high = InsertAll(table, {OneRow(chunk, 0, 3.0)})[0];
  EXPECT_EQ(priority_of_a_new_one(), 3.0);
  table.UpdatePriorities(std::vector<PriorityUpdate>{{high, 7.5}});
  table.Delete({&high, 1});
  EXPECT_EQ(priority_of_a_new_one(), 7.5);
}

// ---- Keys

TEST(TableTest, AKeyOfAnotherLifeOrShardNamesNothing) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.shard = 3;
  Table table(options, chunks.store());
  const ItemKey key = InsertAll(table, {OneRow(chunk, 0)})[0];
  EXPECT_EQ(key, (ItemKey{.number = 1, .slot = 0, .life = 0, .shard = 3}));
  table.BeginLife(5);
  const ItemKey next = InsertAll(table, {OneRow(chunk, 1)})[0];
  EXPECT_EQ(next, (ItemKey{.number = 2, .slot = 1, .life = 5, .shard = 3}));
  for (ItemKey wrong : {key, next}) {
    wrong.life ^= 1;
    EXPECT_EQ(table.Delete({&wrong, 1}).stale, 1);
    wrong.life ^= 1;
    wrong.shard = 2;
    EXPECT_EQ(table.Delete({&wrong, 1}).stale, 1);
    wrong.shard = 3;
    EXPECT_EQ(table.Delete({&wrong, 1}).found, 1);
  }
  table.BeginLife(4);  // Never back.
  EXPECT_EQ(InsertAll(table, {OneRow(chunk, 0)})[0].life, 5U);
}

}  // namespace
}  // namespace menger
