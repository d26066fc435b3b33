#include "menger/replay/column_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "menger/replay/open_testing.h"
#include "menger/replay/replay_store.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;

// A store with an open queue, and a writer of two columns: of three and of one byte, in chunks of
// two and of four rows.
class ColumnWriterTest : public testing::Test {
 protected:
  ColumnWriterTest() { Open({}); }

  void Open(const ColumnWriterOptions& options) {
    writer_.reset();
    writer_ = std::make_unique<ColumnWriter>(options, store_.chunks());
    writer_->SetColumn(0, {.row_bytes = 3, .chunk_rows = 2, .history = 3});
    writer_->SetColumn(1, {.row_bytes = 1, .chunk_rows = 4, .history = 6});
  }
  void Append(std::uint32_t column, std::int64_t row, std::string_view text) {
    writer_->Append(column, row, BytesOf(text));
  }
  void Add(const std::vector<RowRange>& ranges, std::uint64_t sequence = 0) {
    writer_->Add(table(), 1.0, ranges, sequence);
  }
  std::string WhyNot(const std::vector<RowRange>& ranges) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { Add(ranges); });
  }
  Table& table() { return store_.table(0); }

  static ReplayStoreOptions Tables() {
    TableOptions queue = OpenTable();
    queue.times_sampled_max = 1;
    return {.tables = {queue, SmallTable()}, .bytes_max = std::size_t{1} << 20};
  }
  ReplayStore store_{Tables()};
  std::unique_ptr<ColumnWriter> writer_;
};

TEST_F(ColumnWriterTest, AnItemHasRangesOfAnyColumnsAcrossTheEndsOfChunks) {
  Append(0, 0, "abc");
  Append(0, 1, "def");
  Append(0, 2, "ghi");
  for (int i = 0; i < 6; ++i) Append(1, i, std::to_string(i));
  Add({{.first = 1, .count = 2, .column = 0},
       {.first = 2, .count = 4, .column = 1},
       {.first = 0, .count = 1, .column = 0},
       {.first = 2, .count = 1, .column = 1}});
  Add({{.first = 2, .count = 1, .column = 0}});
  EXPECT_EQ(writer_->pending(), 2);
  writer_->Flush(Soon());
  EXPECT_EQ(writer_->pending(), 0);
  EXPECT_THAT(DrawTexts(table(), 2), ElementsAre("defghi2345abc2", "ghi"));
}

TEST_F(ColumnWriterTest, RowsOfTheHistoryCanBeHadAndNoOthers) {
  for (int i = 0; i < 9; ++i) Append(1, i, std::to_string(i));
  Add({{.first = 4, .count = 5, .column = 1}});
  writer_->Flush(Soon());
  for (int i = 9; i < 11; ++i) Append(1, i, "x");  // The first chunk has rows 0 to 3.
  EXPECT_EQ(WhyNot({{.first = 3, .count = 3, .column = 1}}),
            "an item shows 3 rows from row 3 on of column 1, of which 4 .. 10 can be had: its "
            "history is 6");
  EXPECT_THAT(DrawTexts(table(), 1), ElementsAre("45678"));
}

TEST_F(ColumnWriterTest, RowsThatAreLeftOutBeginAChunk) {
  Append(1, 3, "a");
  Append(1, 7, "b");
  Append(1, 8, "c");
  Add({{.first = 7, .count = 2, .column = 1}, {.first = 3, .count = 1, .column = 1}});
  EXPECT_THAT(WhyNot({{.first = 3, .count = 2, .column = 1}}), HasSubstr("2 rows from row 3"));
  EXPECT_THAT(WhyNot({{.first = 5, .count = 1, .column = 1}}), HasSubstr("1 rows from row 5"));
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { Append(1, 8, "d"); }),
              HasSubstr("row 8 of column 1, whose next is 9"));
  writer_->Flush(Soon());
  EXPECT_THAT(DrawTexts(table(), 1), ElementsAre("bca"));
}

TEST_F(ColumnWriterTest, WhatCannotBeAnItemIsRefusedAndNothingIsAdded) {
  Append(0, 0, "abc");
  EXPECT_THAT(WhyNot({}), HasSubstr("has 0 slices"));
  EXPECT_THAT(WhyNot({{.first = 0, .count = 0, .column = 0}}), HasSubstr("0 rows from row 0"));
  EXPECT_THAT(WhyNot({{.first = 0, .count = 2, .column = 0}}), HasSubstr("2 rows from row 0"));
  EXPECT_THAT(WhyNot({{.first = -1, .count = 1, .column = 0}}), HasSubstr("from row -1"));
  EXPECT_THAT(
      WhyNot(
          {{.first = std::numeric_limits<std::int64_t>::max(), .count = 0xffffffff, .column = 0}}),
      HasSubstr("4294967295 rows"));
  EXPECT_EQ(WhyNot({{.first = 0, .count = 1, .column = 7}}), "there is no column 7");
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                        [&] {
                          const RowRange range{.first = 0, .count = 1, .column = 0};
                          writer_->Add(store_.table(1), 1.0, {&range, 1});
                        }),
              HasSubstr("table 'small' has items of steps"));
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { Append(0, 1, "ab"); }),
              HasSubstr("a row of 2 bytes for column 0, whose rows have 3"));
  EXPECT_EQ(writer_->pending(), 0);
}

TEST_F(ColumnWriterTest, ChunksAreHeldForHistoriesAndWaitingItemsAlone) {
  const std::size_t before = store_.chunks().bytes_used();
  for (int i = 0; i < 100; ++i) Append(0, i, "abc");
  EXPECT_EQ(writer_->bytes(), 2 * 64U);  // Three rows lie in two chunks of a cache line.
  Add({{.first = 99, .count = 1, .column = 0}});
  for (int i = 100; i < 110; ++i) Append(0, i, "abc");
  EXPECT_EQ(writer_->bytes(), 7 * 64U);
  writer_->Flush(Soon());
  EXPECT_EQ(writer_->bytes(), 2 * 64U);
  writer_.reset();
  EXPECT_EQ(DrawTexts(table(), 1).size(), 1U);
  EXPECT_EQ(store_.chunks().bytes_used(), before);
}

TEST_F(ColumnWriterTest, AWriterWhoseItemsWaitHasABoundOfBytes) {
  Open({.bytes_max = 3 * 64});
  Append(0, 0, "abc");
  Add({{.first = 0, .count = 1, .column = 0}});
  for (int i = 1; i < 6; ++i) Append(0, i, "abc");
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { Append(0, 6, "abc"); }),
              HasSubstr("bytes_max is 192: 1 items wait"));
  writer_->Flush(Soon());
  EXPECT_NO_THROW(Append(0, 6, "abc"));
  Append(1, 0, "x");  // A chunk of its own.
  writer_->SetColumn(2, {.row_bytes = 1});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { Append(2, 0, "y"); }),
              HasSubstr("256 bytes of chunks for the histories of its columns alone"));
}

TEST_F(ColumnWriterTest, WhatATableDoesNotTakeInTimeIsKeptInItsOrder) {
  TableOptions queue = OpenTable();
  queue.times_sampled_max = 1;
  queue.rate_limiter = RateLimiterOptions::Queue(2);
  ReplayStore store({.tables = {queue}, .bytes_max = std::size_t{1} << 20});
  ColumnWriter writer({}, store.chunks());
  writer.SetColumn(0, {.row_bytes = 1, .chunk_rows = 4, .history = 4});
  for (int i = 0; i < 4; ++i) {
    writer.Append(0, i, BytesOf(std::to_string(i)));
    const RowRange range{.first = i, .count = 1, .column = 0};
    writer.Add(store.table(0), 1.0, {&range, 1});
  }
  EXPECT_THROW(writer.Flush(Now()), Error);
  EXPECT_EQ(writer.pending(), 2);
  EXPECT_THAT(DrawTexts(store.table(0), 2), ElementsAre("0", "1"));
  writer.Flush(Soon());
  EXPECT_THAT(DrawTexts(store.table(0), 2), ElementsAre("2", "3"));
}

TEST_F(ColumnWriterTest, ItemsOfAStreamThatComeAgainAreTakenOnce) {
  for (int life = 0; life < 2; ++life) {
    Open({.stream = 5});
    Append(1, 0, "a");
    Add({{.first = 0, .count = 1, .column = 1}}, 1);
    Add({{.first = 0, .count = 1, .column = 1}}, 2);
    writer_->Flush(Soon());
  }
  EXPECT_EQ(table().info().items, 2);
  EXPECT_EQ(table().info().repeated, 2);
}

TEST_F(ColumnWriterTest, OptionsThatCannotBeAreNamed) {
  const auto error_of = [&](const ColumnOptions& options) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { writer_->SetColumn(9, options); });
  };
  EXPECT_THAT(error_of({.row_bytes = 0}), HasSubstr("row_bytes of a column is 0"));
  EXPECT_THAT(error_of({.row_bytes = 1, .chunk_rows = 65536}), HasSubstr("chunk_rows"));
  EXPECT_THAT(error_of({.row_bytes = 1, .history = 0}), HasSubstr("history"));
  EXPECT_THAT(
      ErrorText(ErrorCode::kInvalidArgument, [&] { writer_->SetColumn(65536, {.row_bytes = 1}); }),
      HasSubstr("column 65536 of a writer that has up to 65536"));
}

TEST(OpenTableTest, ItemsThatAreNoneAreRefused) {
  Chunks chunks;
  Table table(OpenTable(), chunks.store());
  const ChunkLayout layout(ByteRows(2), 4);
  const ChunkId rows = chunks.store().Allocate(layout);
  chunks.store().Publish(rows, 3);
  const auto why = [&](const ItemDraft& draft) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { InsertAll(table, {draft}); });
  };
  EXPECT_THAT(why({.priority = 1.0, .slices = {}, .slice_counts = {0}}), HasSubstr("0 slices"));
  const ItemDraft good{.priority = 1.0, .slices = {{rows, 1, 2}}, .slice_counts = {1}};
  EXPECT_NO_THROW(InsertAll(table, {good}));
  ItemDraft bad = good;
  bad.slice_counts = {1, 1};
  EXPECT_THAT(why(bad), HasSubstr("one column"));
  bad = good;
  bad.slices[0].length = 3;
  EXPECT_THAT(why(bad), HasSubstr("3 rows from row 1"));
  bad.slices[0] = {.chunk = 77, .offset = 0, .length = 1};
  EXPECT_THAT(why(bad), HasSubstr("chunk 77, which has no rows of bytes"));
  bad.slices[0] = {.chunk = chunks.New(), .offset = 0, .length = 1};  // Steps of another table.
  EXPECT_THAT(why(bad), HasSubstr("no rows of bytes"));
  chunks.store().Release(rows);
}

}  // namespace
}  // namespace menger
