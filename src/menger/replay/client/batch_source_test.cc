#include "menger/replay/client/batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "menger/replay/client/local_replay.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

using namespace testing_tables;  // NOLINT(google-build-using-namespace)

// A table of eight items, item i showing the number i.
class BatchSourceTest : public testing::TestWithParam<bool> {
 protected:
  BatchSourceTest() {
    const ChunkLayout layout(SmallItems().steps, kChunkRows);
    const ChunkId chunk = chunks_.New();
    for (std::int64_t row = 0; row < kChunkRows; ++row) {
      std::memcpy(chunks_.store().Data(chunk, sizeof(row) * row), &row, sizeof(row));
    }
    std::vector<ItemDraft> drafts;
    for (int row = 0; row < kChunkRows; ++row) drafts.push_back(OneRow(chunk, row));
    keys_ = InsertAll(table_, drafts);
    chunks_.Drop(chunk);
  }

  static SampleRequest Of(int count) { return {.count = count, .deadline = Soon()}; }

  // The number that each item of a batch shows.
  static std::vector<std::int64_t> Numbers(const ReplayBatch& batch) {
    const auto* const data = batch.column<std::int64_t>(1);
    return {data, data + batch.size()};
  }

  Chunks chunks_;
  Table table_{SmallTable(), chunks_.store()};
  std::vector<ItemKey> keys_;
};

TEST_P(BatchSourceTest, BatchesAreThoseOfTheTableDrawnInTheSameOrder) {
  BatchSource source(LocalReplay::SamplerOf(table_), {.items_max = 32, .in_turn = GetParam()});
  source.Draw(Of(32));
  for (int i = 0; i < 50; ++i) {
    const ReplayBatch batch = source.Take(Soon());
    const std::vector<std::int64_t> numbers = Numbers(batch);
    source.Draw(Of(1 + i % 32));
    ASSERT_EQ(numbers.size(), i == 0 ? 32 : 1 + (i - 1) % 32);
    EXPECT_EQ(numbers, Numbers(batch));  // What is gathered meanwhile is another side's.
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      EXPECT_EQ(keys_[numbers[k]], batch.items[k].key);
    }
  }
}

TEST_P(BatchSourceTest, BatchesLieWhereTheirReaderWantsThem) {
  std::vector<std::pair<const std::byte*, std::size_t>> given;
  const auto allocate = [&](std::size_t bytes) {
    std::unique_ptr<Memory> memory = AllocatePlainMemory(bytes);
    given.emplace_back(memory->data(), bytes);
    return memory;
  };
  BatchSource source(LocalReplay::SamplerOf(table_),
                     {.items_max = 32, .in_turn = GetParam(), .allocate = allocate});
  for (int i = 0; i < 3; ++i) {
    source.Draw(Of(32));
    for (const BatchColumn& column : source.Take(Soon()).columns) {
      EXPECT_TRUE(std::ranges::any_of(given, [&](const auto& memory) {
        return column.data >= memory.first && column.data < memory.first + memory.second;
      }));
    }
  }
  EXPECT_EQ(given.size(), 2);  // One that is learned from, one that is gathered meanwhile.
}

TEST_P(BatchSourceTest, OneBatchIsDrawnAtATime) {
  BatchSource source(LocalReplay::SamplerOf(table_), {.items_max = 4, .in_turn = GetParam()});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { source.Take(Soon()); }),
              testing::HasSubstr("Draw comes before Take"));
  source.Draw(Of(4));
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { source.Draw(Of(4)); }),
              testing::HasSubstr("Take comes before Draw"));
  source.Take(Soon());
}

TEST_P(BatchSourceTest, WhatCannotBeGatheredIsSaidByTakeAndTheNextBatchIsGood) {
  BatchSource source(LocalReplay::SamplerOf(table_), {.items_max = 4, .in_turn = GetParam()});
  source.Draw(Of(5));
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { source.Take(Soon()); }),
              testing::HasSubstr("5 items for a batch of at most 4"));
  source.Draw(Of(3));
  EXPECT_EQ(source.Take(Soon()).items.size(), 3);
}

TEST_P(BatchSourceTest, ReleaseGivesBackWhatWasTaken) {
  BatchSource source(LocalReplay::SamplerOf(table_), {.items_max = 4, .in_turn = GetParam()});
  source.Draw(Of(4));
  const ReplayBatch batch = source.Take(Soon());
  const std::vector<std::int64_t> numbers = Numbers(batch);
  table_.Delete(keys_);
  EXPECT_EQ(chunks_.store().chunks(), 1);
  source.Release();
  EXPECT_EQ(chunks_.store().chunks(), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, BatchSourceTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "InTurn" : "Ahead"; });

}  // namespace
}  // namespace menger
