// Items of open tables come back, whatever rows they lie in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "menger/replay/column_writer.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/open_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing_files::Folder;

class OpenTablesTest : public testing::TestWithParam<Durability> {
 protected:
  void Open() {
    keeper_.reset();
    store_.reset();
    TableOptions queue = OpenTable();
    queue.times_sampled_max = 1;
    store_ = std::make_unique<ReplayStore>(
        ReplayStoreOptions{.tables = {queue}, .bytes_max = std::size_t{1} << 20});
    keeper_ = std::make_unique<ReplayKeeper>(
        *store_, DurabilityOptions{.kind = GetParam(),
                                   .folder = folder_.path(),
                                   .loss_max = std::chrono::milliseconds(200)});
  }

  // Items of two columns of rows of different sizes.
  void Write(int first, int count) {
    ColumnWriter writer({}, store_->chunks());
    writer.SetColumn(0, {.row_bytes = 100, .chunk_rows = 3, .history = 2});
    writer.SetColumn(1, {.row_bytes = 7, .chunk_rows = 5, .history = 1});
    for (int i = 0; i < count; ++i) {
      writer.Append(0, i, BytesOf(std::string(100, static_cast<char>('a' + first + i))));
      writer.Append(1, i, BytesOf(std::string(7, static_cast<char>('A' + first + i))));
      const std::vector<RowRange> ranges = {{.first = i, .count = 1, .column = 1},
                                            {.first = i, .count = 1, .column = 0}};
      writer.Add(store_->table(0), 1.0, ranges);
    }
    writer.Flush(Soon());
  }
  static std::string Item(int i) {
    return std::string(7, static_cast<char>('A' + i)) +
           std::string(100, static_cast<char>('a' + i));
  }
  void Keep() {
    if (GetParam() == Durability::kJournal) {
      keeper_->Sync(Soon());
    } else {
      keeper_->Checkpoint(Soon());
    }
  }

  const Folder folder_;
  std::unique_ptr<ReplayStore> store_;
  std::unique_ptr<ReplayKeeper> keeper_;
};

TEST_P(OpenTablesTest, ItemsComeBackAndGoOn) {
  Open();
  Write(0, 7);
  EXPECT_THAT(DrawTexts(store_->table(0), 2), ElementsAre(Item(0), Item(1)));
  Keep();
  Open();
  EXPECT_EQ(store_->table(0).info().items, 5);
  Write(7, 2);
  Keep();
  Open();
  EXPECT_THAT(DrawTexts(store_->table(0), 7),
              ElementsAre(Item(2), Item(3), Item(4), Item(5), Item(6), Item(7), Item(8)));
}

TEST_P(OpenTablesTest, WhatWasResetStaysAway) {
  Open();
  Write(0, 3);
  Keep();
  store_->table(0).Reset();
  Write(5, 1);
  Keep();
  Open();
  EXPECT_THAT(DrawTexts(store_->table(0), 1), ElementsAre(Item(5)));
  EXPECT_EQ(store_->table(0).info().items, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, OpenTablesTest,
                         testing::Values(Durability::kCheckpoint, Durability::kJournal),
                         [](const auto& info) { return std::string(ToString(info.param)); });

}  // namespace
}  // namespace menger
