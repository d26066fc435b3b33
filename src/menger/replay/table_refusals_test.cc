// What a table refuses to give out, because it is too old, and to take, because it cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/random.h"
#include "menger/base/version_distance.h"
#include "menger/replay/table.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_tables::Chunks;
using testing_tables::ErrorText;
using testing_tables::InsertAll;
using testing_tables::kChunkBytes;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallTable;
using testing_tables::Soon;

// ---- Staleness

TEST(TableRefusalsTest, ItemsThatAreTooOldAreRemovedAndNeverGivenOut) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  for (const int times_sampled_max : {0, 1000}) {
    TableOptions options = SmallTable();
    options.times_sampled_max = times_sampled_max;
    Table table(options, chunks.store());
    for (std::uint64_t version = 0; version < 10; ++version) {
      InsertAll(table, {OneRow(chunk, 0, 1.0, {version, version + 5})});
    }
    Sample sample;
    table.SampleInto({.count = 200, .deadline = Soon(), .version = 9, .staleness_max = 3}, sample);
    ASSERT_EQ(sample.size(), 200);
    for (const SampledItem& item : sample.items()) EXPECT_GE(item.versions.first, 6U);
    EXPECT_EQ(table.info().dropped_stale, 6);
    EXPECT_EQ(table.info().items, 4);
    EXPECT_EQ(table.info().deletes, 6);
    EXPECT_EQ(table.info().samples, 200);
    // A reader that is behind the writers takes all that there are.
    table.SampleInto({.count = 10, .deadline = Soon(), .version = 2, .staleness_max = 0}, sample);
    EXPECT_EQ(table.info().items, 4);
  }
}

TEST(TableRefusalsTest, ATableOfNothingButOldItemsIsEmptiedAndWaitsForNewOnes) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(SmallTable(), chunks.store());
  for (int i = 0; i < 8; ++i) InsertAll(table, {OneRow(chunk, i, 1.0, {1, 1})});
  Sample sample;
  const SampleRequest request{.count = 4, .deadline = Now(), .version = 9, .staleness_max = 1};
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { table.SampleInto(request, sample); }),
              HasSubstr("0 of 1 items are there"));
  EXPECT_EQ(table.info().dropped_stale, 8);
  EXPECT_EQ(table.info().samples, 0);
}

TEST(TableRefusalsTest, NoDrawOfAMillionIsStalerThanAskedFor) {
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  TableOptions options = SmallTable();
  options.sampler.kind = SelectorKind::kPrioritised;
  Table table(options, chunks.store());
  Random random = Random::FromSeed(22);
  Sample sample;
  std::int64_t draws = 0;
  for (std::uint64_t version = 0; draws < 1'000'000; ++version) {
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t first = version - std::min<std::uint64_t>(version, random.Integers(0, 4));
      InsertAll(table, {OneRow(chunk, i % 8, random.Double() + 0.1, {first, version})});
    }
    InsertAll(table, {OneRow(chunk, 0, 1.0, {version, version})});
    table.SampleInto({.count = 256, .deadline = Soon(), .version = version, .staleness_max = 1},
                     sample);
    for (const SampledItem& item : sample.items()) {
      ASSERT_GE(item.versions.first + 1, version);
    }
    draws += sample.size();
  }
  EXPECT_GT(table.info().dropped_stale, 0);
}

// The learner was restarted from its checkpoint of version 100, after version 103 had acted: the
// numbers of its second life begin again at 100.
TEST(TableRefusalsTest, ARestartedLearnerTakesItemsOfItsFormerLifeByTheirNumbers) {
  constexpr std::uint64_t kSecondLife = std::uint64_t{1} << kVersionNumberBits;
  Chunks chunks;
  const ChunkId chunk = chunks.New();
  Table table(SmallTable(), chunks.store());
  for (const std::uint64_t version : {90, 97, 100, 103}) {
    InsertAll(table, {OneRow(chunk, 0, 1.0, {version, version})});
  }
  Sample sample;
  const auto draw = [&](std::uint64_t number, std::uint64_t staleness_max) {
    table.SampleInto({.count = 200,
                      .deadline = Soon(),
                      .version = kSecondLife + number,
                      .staleness_max = staleness_max},
                     sample);
    return table.info().items;
  };
  EXPECT_EQ(draw(100, 5), 3);  // 90 is too old.
  InsertAll(table, {OneRow(chunk, 0, 1.0, {kSecondLife + 101, kSecondLife + 101})});
  EXPECT_EQ(draw(101, 2), 3);  // 97 is; 103 is 2 ahead.
  EXPECT_EQ(draw(106, 5), 2);  // 100 is.
  EXPECT_EQ(table.info().dropped_stale, 3);
}

// ---- Bad input

TEST(TableRefusalsTest, BadDraftsAreRefusedByNameAndLeaveTheTableAsItWas) {
  Chunks chunks;
  const ChunkId chunk = chunks.New(/*rows=*/5);
  const ChunkLayout other_layout(Spec({LeafSpec::Discrete("other", 3)}), 4);
  const ChunkId other = chunks.store().Allocate(other_layout);
  chunks.store().Publish(other, 4);
  TableOptions options = SmallTable();
  options.bytes_max = 2 * kChunkBytes;
  Table table(options, chunks.store());

  const Slice good{.chunk = chunk, .offset = 0, .length = 1};
  const auto stack_of = [&](const std::vector<Slice>& slices) {
    ItemDraft draft{.slices = slices, .slice_counts = {0, 1}};
    draft.slice_counts[0] = static_cast<std::uint16_t>(slices.size());
    draft.slices.push_back(good);
    return draft;
  };
  const auto slice = [](ChunkId id, int offset, int length) {
    return Slice{.chunk = id,
                 .offset = static_cast<std::uint16_t>(offset),
                 .length = static_cast<std::uint16_t>(length)};
  };
  const std::vector<std::pair<ItemDraft, std::string>> bad = {
      {OneRow(chunk, 0, -1.0), "priority is -1; it must be finite and at least 0"},
      {OneRow(chunk, 0, std::nan("")), "priority is nan"},
      {OneRow(chunk, 0, std::numeric_limits<double>::infinity()), "priority is inf"},
      {OneRow(chunk, 0, 1.0, {5, 4}), "versions are 5 to 4; they must be in order"},
      {OneRow(chunk, 5), "column 'stack' has 1 rows from row 5 of chunk 0, which has 5 rows"},
      {stack_of({slice(chunk, 4, 2)}), "column 'stack' has 2 rows from row 4 of chunk 0"},
      {stack_of({slice(chunk, 65535, 65535)}), "which has 5 rows"},
      {stack_of({slice(chunk, 0, 0)}), "column 'stack' has 0 rows from row 0"},
      {stack_of({}), "column 'stack' has 0 rows; it must have 1 to 4"},
      {stack_of({slice(chunk, 0, 5)}), "column 'stack' has 5 rows; it must have 1 to 4"},
      {stack_of({slice(chunk, 0, 2), slice(chunk, 0, 3)}), "column 'stack' has 5 rows"},
      {OneRow(other, 0), "lies in chunk 1, which has no steps of this table's"},
      {OneRow(12'345, 0), "lies in chunk 12345, which has no steps of this table's"},
      {{.slices = {good}, .slice_counts = {1}}, "it has 1 columns; the table has 2"},
      {{.slices = {good}, .slice_counts = {1, 1}},
       "column 'last' ends at slice 2, but there are 1"},
      {{.slices = {good, good, good}, .slice_counts = {1, 1}},
       "its columns have 2 slices together, but there are 3"},
      {stack_of({slice(chunk, 0, 1), slice(chunks.New(), 0, 1), slice(chunks.New(), 0, 1)}),
       "its chunks take 192 bytes; bytes_max is 128"},
  };
  for (const auto& [draft, text] : bad) {
    const std::vector<ItemDraft> drafts = {OneRow(chunk, 0), draft};
    std::vector<ItemKey> keys;
    EXPECT_THAT(
        ErrorText(ErrorCode::kInvalidArgument, [&] { table.Insert(drafts, Soon(), &keys); }),
        testing::AllOf(HasSubstr("table 'small': item 2 of 2: "), HasSubstr(text)));
    EXPECT_TRUE(keys.empty());
    EXPECT_EQ(table.info().inserts, 0);
    EXPECT_EQ(table.info().bytes, 0U);
  }
  // One that counts its chunks twice but needs only one is not too large.
  InsertAll(table, {stack_of({slice(chunk, 0, 1), slice(chunk, 2, 1), slice(chunk, 4, 1)})});
  EXPECT_EQ(table.info().bytes, kChunkBytes);
}

TEST(TableRefusalsTest, RequestsThatCanNeverBeMetAreRefusedAtOnce) {
  Chunks chunks;
  Table table(SmallTable(), chunks.store());
  Sample sample;
  for (const int count : {0, -1, 1'048'577}) {
    EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                          [&] { table.SampleInto({.count = count, .deadline = Soon()}, sample); }),
                HasSubstr("it must be 1 to 1048576"));
  }
}

TEST(TableRefusalsTest, OptionsThatCannotWorkAreRefusedByName) {
  const auto text = [](auto change) {
    TableOptions options = SmallTable();
    change(options);
    return ErrorText(ErrorCode::kInvalidArgument, [&] {
      Chunks chunks;
      Table table(options, chunks.store());
    });
  };
  EXPECT_EQ(text([](TableOptions& o) { o.name = ""; }), "a replay table has no name");
  EXPECT_THAT(text([](TableOptions& o) { o.items.columns.clear(); }),
              HasSubstr("table 'small': items: "));
  EXPECT_THAT(text([](TableOptions& o) { o.sampler.exponent = -1; }),
              HasSubstr("table 'small': sampler: exponent is -1"));
  EXPECT_THAT(text([](TableOptions& o) { o.remover.exponent = std::nan(""); }),
              HasSubstr("table 'small': remover: exponent is nan"));
  EXPECT_THAT(text([](TableOptions& o) { o.rate_limiter.samples_per_insert = 0; }),
              HasSubstr("table 'small': rate_limiter: samples_per_insert is 0"));
  EXPECT_THAT(text([](TableOptions& o) { o.rate_limiter.min_size = 1001; }),
              HasSubstr("table 'small': rate_limiter.min_size is 1001"));
  EXPECT_THAT(text([](TableOptions& o) { o.items_max = 0; }), HasSubstr("items_max is 0"));
  EXPECT_THAT(text([](TableOptions& o) { o.items_max = std::int64_t{1} << 32; }),
              HasSubstr("items_max is 4294967296"));
  EXPECT_THAT(text([](TableOptions& o) { o.bytes_max = 0; }), HasSubstr("bytes_max is 0"));
  const auto queue = [](TableOptions& o) {
    o.rate_limiter = RateLimiterOptions::Queue(50);
    o.times_sampled_max = 1;
    o.items_max = 49;
  };
  EXPECT_THAT(text(queue), HasSubstr("so items_max must be at least 50"));
  EXPECT_THAT(text([](TableOptions& o) { o.times_sampled_max = -1; }),
              HasSubstr("times_sampled_max is -1"));
}

}  // namespace
}  // namespace menger
