#include "menger/replay/replay_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/memory_need.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_tables::ErrorText;
using testing_tables::SmallItems;
using testing_tables::SmallTable;
using testing_tables::Soon;

TableOptions Named(const char* name) {
  TableOptions options = SmallTable();
  options.name = name;
  options.bytes_max = 80'000;
  return options;
}

TEST(ReplayStoreTest, TablesAreFoundByName) {
  ReplayStore store({.tables = {Named("actors"), Named("queue")}});
  EXPECT_EQ(store.tables(), 2);
  EXPECT_EQ(&store.table("queue"), &store.table(1));
  EXPECT_EQ(ErrorText(ErrorCode::kNotFound, [&] { store.table("quee"); }),
            "there is no replay table 'quee' (did you mean 'queue'?)");
}

TEST(ReplayStoreTest, WithoutABoundItHoldsWhatItsTablesMayAndAnEighthMore) {
  EXPECT_EQ(ReplayStore({.tables = {Named("a"), Named("b")}}).chunks().bytes_max(), 180'000U);
  EXPECT_EQ(ReplayStore({.tables = {Named("a")}, .bytes_max = 70'000}).chunks().bytes_max(),
            70'000U);
}

TEST(ReplayStoreTest, BoundsBeyondTheMemoryAreRefusedAndOnesThatFollowAreLowered) {
  const auto limit = static_cast<std::size_t>(MemoryLimit());
  const auto error = [](const ReplayStoreOptions& options) {
    return ErrorText(ErrorCode::kInvalidArgument, [&] { const ReplayStore store(options); });
  };
  TableOptions table = Named("a");
  table.bytes_max = limit + 1;
  const std::string available = MemoryText(static_cast<double>(limit));
  EXPECT_THAT(error({.tables = {table}}),
              AllOf(HasSubstr("table 'a': bytes_max = " + std::to_string(limit + 1)),
                    HasSubstr("this process can have " + available)));
  // The chunks would fit; their items do not.
  table.bytes_max = limit / 2;
  table.items_max = static_cast<std::int64_t>(limit / 64);
  EXPECT_THAT(error({.tables = {table}}),
              AllOf(HasSubstr("items_max = " + std::to_string(limit / 64) + ", at " +
                              std::to_string(table.ItemBytes()) + " bytes an item"),
                    HasSubstr("this process can have " + available)));
  table = Named("a");
  EXPECT_THAT(error({.tables = {table}, .bytes_max = limit + 1}),
              AllOf(HasSubstr("the replay store's bytes_max is " + std::to_string(limit + 1)),
                    HasSubstr(available)));

  table.bytes_max = limit - 1'000'000;
  testing::internal::CaptureStderr();
  const ReplayStore lowered({.tables = {table}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("it gets the " + available));
  EXPECT_EQ(lowered.chunks().bytes_max(), limit);
}

// Against what the allocator says. Its own headers and the rounding of arrays are the rest.
TEST(ReplayStoreTest, MetadataOfItemsAreAsManyBytesAsIsSaid) {
  if (std::string(MENGER_SANITIZER) != "") GTEST_SKIP() << "another allocator";
  constexpr int kItems = 200'000;
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  for (int kind = 0; kind <= static_cast<int>(SelectorKind::kPrioritised); ++kind) {
    SCOPED_TRACE(kind);
    TableOptions options = Named("a");
    options.sampler.kind = options.remover.kind = static_cast<SelectorKind>(kind);
    options.items_max = kItems;
    testing_tables::Chunks chunks;
    const ItemDraft draft = testing_tables::OneRow(chunks.New(), 0);
    const double before = in_use();
    Table table(options, chunks.store());
    for (int i = 0; i < kItems; ++i) table.Insert({&draft, 1}, Soon());
    const std::vector<ItemKey> keys = [&] {
      std::vector<ItemKey> all;
      for (std::uint32_t i = 0; i < kItems; ++i) all.push_back({.number = i + 1U, .slot = i});
      return all;
    }();
    const double own = static_cast<double>(keys.capacity()) * sizeof(ItemKey);
    table.Delete(keys);  // Free places are remembered, too.
    const double need = in_use() - before - own;
    const auto said = static_cast<double>(table.info().metadata_bytes);
    EXPECT_EQ(said, static_cast<double>(kItems * options.ItemBytes()));
    EXPECT_LT(need, said * 1.05);
    EXPECT_GT(need, said * 0.6);
  }
}

// Fails with a bound that counts tables only: a table of one chunk, and every writer holds three.
TEST(ReplayStoreTest, ThereIsRoomForAsManyWritersAsWereNamed) {
  constexpr int kWriters = 50;
  const WriterOptions options{
      .chunk_steps = 8, .history = 16, .room_wait_max = std::chrono::seconds(0)};
  const std::size_t each = WriterBytesMax(SmallItems().steps, options, /*flush_steps=*/1);
  EXPECT_EQ(each, 4 * testing_tables::kChunkBytes);
  TableOptions table = Named("small");
  table.bytes_max = testing_tables::kChunkBytes;
  const auto write = [&](std::size_t writer_bytes) {
    ReplayStore store({.tables = {table}, .writer_bytes = writer_bytes});
    std::vector<std::unique_ptr<TrajectoryWriter>> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.push_back(store.NewWriter(SmallItems().steps, options));
    }
    for (std::int64_t value = 0; value < 100; ++value) {
      const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
      for (const auto& writer : writers) {
        const std::int64_t step = writer->Append({&leaf, 1}, 0);
        writer->Add(store.table(0), 1.0, std::vector<StepRange>(2, {.first = step, .count = 1}));
        writer->Flush(Soon());
      }
    }
  };
  EXPECT_NO_THROW(write(kWriters * each));
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { write(0); }), HasSubstr("has no room"));
}

TEST(ReplayStoreTest, OptionsThatCannotWorkAreRefusedByName) {
  EXPECT_EQ(ErrorText(ErrorCode::kInvalidArgument, [] { ReplayStore({}); }),
            "a replay store has no table");
  EXPECT_EQ(ErrorText(ErrorCode::kInvalidArgument,
                      [] {
                        ReplayStore({.tables = {Named("a"), Named("b"), Named("a")}});
                      }),
            "a replay store has two tables named 'a'");
  TableOptions bad = Named("bad");
  bad.items_max = 0;
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { ReplayStore({.tables = {bad}}); }),
              HasSubstr("table 'bad': items_max is 0"));
}

// The whole way of a step: written once, seen by items of two tables.
TEST(ReplayStoreTest, WritersFillTablesThatShareTheirChunks) {
  ReplayStore store({.tables = {Named("a"), Named("b")}});
  const std::unique_ptr<TrajectoryWriter> writer = store.NewWriter(SmallItems().steps, {});
  for (std::int64_t value = 0; value < 10; ++value) {
    const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
    const std::int64_t step = writer->Append(std::vector<const std::byte*>{leaf}, /*version=*/7);
    const std::vector<StepRange> columns = {{.first = step, .count = 1},
                                            {.first = step, .count = 1}};
    writer->Add(store.table("a"), /*priority=*/1.0, columns);
    writer->Add(store.table("b"), /*priority=*/1.0, columns);
  }
  writer->Flush(Soon());
  EXPECT_EQ(store.table("a").info().items, 10);
  EXPECT_EQ(store.table("b").info().items, 10);
  EXPECT_EQ(store.chunks().chunks(), 1U);
  Sample sample;
  store.table("b").SampleInto({.count = 20, .deadline = Soon()}, sample);
  for (int i = 0; i < sample.size(); ++i) {
    EXPECT_EQ(sample.items()[i].versions, (VersionRange{7, 7}));
    const Slice& slice = sample.slices(i, 0)[0];
    EXPECT_EQ(slice.offset + 1U, sample.items()[i].key.number);
  }
}

TEST(ReplayStoreTest, CloseEndsTheWaitsOfAllTables) {
  ReplayStore store({.tables = {Named("a"), Named("b")}});
  store.Close();
  Sample sample;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        ErrorText(ErrorCode::kCancelled,
                  [&] { store.table(i).SampleInto({.count = 1, .deadline = Soon()}, sample); }),
        HasSubstr("is closed"));
  }
}

}  // namespace
}  // namespace menger
