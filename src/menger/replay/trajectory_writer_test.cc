#include "menger/replay/trajectory_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/sample.h"
#include "menger/replay/trajectory_testing.h"

namespace menger {
namespace {

using namespace testing_trajectories;

ErrorCode CodeOf(auto function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST(TrajectoryWriterTest, AnItemOverChunkBordersIsGatheredWhole) {
  ChunkStore store({.bytes_max = 1 << 20});
  Table table(Options(), store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 3, .history = 10}, store);
  for (int step = 0; step < 10; ++step) EXPECT_EQ(Append(writer, 100 + step), step);
  const std::vector<StepRange> ranges = {
      {.first = 1, .count = 4}, {.first = 2, .count = 6}, {.first = 5, .count = 1}};
  writer.Add(table, 1.0, ranges);
  writer.Flush(Later());
  Sample sample;
  table.SampleInto({.deadline = Later()}, sample);
  const auto rows = [&](int column) {
    std::vector<int> lengths;
    for (const Slice& slice : sample.slices(0, column)) lengths.push_back(slice.length);
    return lengths;
  };
  EXPECT_EQ(rows(0), std::vector<int>({2, 2}));
  EXPECT_EQ(rows(1), std::vector<int>({1, 3, 2}));
  EXPECT_EQ(rows(2), std::vector<int>({1}));
  BatchGatherer gatherer(Items(), 1, 1);
  EXPECT_EQ(Gathered(gatherer.Gather(sample), 0), Expected(100, ranges));
}

TEST(TrajectoryWriterTest, VersionsAreTheOldestAndNewestOfTheStepsThatTheItemNames) {
  ChunkStore store({.bytes_max = 1 << 20});
  Table table(Options(), store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 2, .history = 6}, store);
  const std::vector<std::uint64_t> versions = {90, 91, 5, 6, 9, 8, 99, 7};
  for (const std::uint64_t version : versions) Append(writer, 0, version);
  // Steps 3, 4, 5 and 7: neither the 5 before nor the 99 between them.
  writer.Add(table, 1.0, std::vector<StepRange>{{3, 2}, {4, 2}, {7, 1}});
  writer.Flush(Later());
  Sample sample;
  table.SampleInto({.deadline = Later()}, sample);
  EXPECT_EQ(sample.items()[0].versions, (VersionRange{.first = 6, .last = 9}));
}

TEST(TrajectoryWriterTest, BadItemsAreRefusedAndChangeNothing) {
  ChunkStore store({.bytes_max = 1 << 20});
  Table table(Options(), store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 4, .history = 5, .pending_max = 2}, store);
  for (int step = 0; step < 12; ++step) Append(writer, step);
  const auto refused = [&](std::vector<StepRange> ranges, const std::string& words,
                           double priority = 1.0) {
    try {
      writer.Add(table, priority, ranges);
      ADD_FAILURE() << "not refused: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
    EXPECT_EQ(writer.pending(), 0);
  };
  const StepRange good{.first = 8, .count = 1};
  refused({{6, 1}, good, good},
          "shows steps 6 .. 6 in column 'observation', but 7 .. 11 can be had");
  refused({good, {10, 3}, good}, "shows steps 10 .. 12 in column 'numbers'");
  refused({good, {12, 1}, good}, "shows steps 12 .. 12");
  refused({good, good, {7, 5}}, "has 5 rows in column 'next'; it must be 1 to 4");
  refused({good, good, {7, 0}}, "has 0 rows in column 'next'");
  refused({good, good}, "an item of 2 columns for table 'experience', whose items have 3");
  refused({good, good, good}, "priority -1", -1.0);
  refused({good, good, good}, "priority nan", std::numeric_limits<double>::quiet_NaN());

  for (int i = 0; i < 2; ++i) writer.Add(table, 1.0, std::vector<StepRange>(3, good));
  EXPECT_EQ(CodeOf([&] { writer.Add(table, 1.0, std::vector<StepRange>(3, good)); }),
            ErrorCode::kUnavailable);
  writer.Flush(Later());
  EXPECT_EQ(table.info().items, 2);
  EXPECT_EQ(writer.pending(), 0);
}

TEST(TrajectoryWriterTest, TablesOfOtherStepsOrTooFewBytesAreRefused) {
  ChunkStore store({.bytes_max = 1 << 20});
  TableOptions options = Options();
  options.items.steps = Spec({LeafSpec::Scalar("number", DataType::kInt64),
                              LeafSpec::Box("frame", DataType::kUint8, {kFrame + 1}, {0}, {255})});
  Table other(options, store);
  options = Options();
  options.bytes_max = ChunkBytes(4);
  Table small(options, store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 4, .history = 8}, store);
  for (int step = 0; step < 8; ++step) Append(writer, step);
  try {
    writer.Add(other, 1.0, std::vector<StepRange>(3, {7, 1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "table 'experience' has items of other steps: leaf 1 is 'frame' uint8 (6,) there, "
                 "'frame' uint8 (5,) here");
  }
  EXPECT_EQ(CodeOf([&] {
              writer.Add(small, 1.0, std::vector<StepRange>(3, {3, 2}));
            }),
            ErrorCode::kInvalidArgument);
  writer.Add(small, 1.0, std::vector<StepRange>(3, {4, 4}));
  writer.Flush(Later());
  EXPECT_EQ(small.info().items, 1);
}

TEST(TrajectoryWriterTest, BadStepsAndOptionsAreRefused) {
  ChunkStore store({.bytes_max = 1 << 20});
  TrajectoryWriter writer(Steps(), {}, store);
  const std::int64_t number = 1;
  const std::byte* const leaf = reinterpret_cast<const std::byte*>(&number);
  EXPECT_EQ(CodeOf([&] { writer.Append(std::vector<const std::byte*>{leaf}, 0); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer.steps(), 0);
  for (const WriterOptions& options :
       {WriterOptions{.chunk_steps = 0}, WriterOptions{.chunk_steps = 65536},
        WriterOptions{.history = 0}, WriterOptions{.pending_max = 0}}) {
    EXPECT_EQ(CodeOf([&] { TrajectoryWriter(Steps(), options, store); }),
              ErrorCode::kInvalidArgument);
  }
}

TEST(TrajectoryWriterTest, WhatOneFlushCouldNotInsertTheNextOneDoesInOrder) {
  ChunkStore store({.bytes_max = 1 << 20});
  TableOptions options = Options();
  options.sampler.kind = SelectorKind::kFifo;
  options.rate_limiter = RateLimiterOptions::Queue(2);
  options.times_sampled_max = 1;
  Table table(options, store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 2, .history = 2}, store);
  for (int i = 0; i < 5; ++i) {
    Append(writer, i);
    writer.Add(table, 1.0 + i, std::vector<StepRange>(3, {i, 1}));
  }
  BatchGatherer gatherer(Items(), 1, 1);
  std::vector<double> order;
  Sample sample;
  for (const int left : {3, 1, 0}) {
    if (left > 0) {
      EXPECT_EQ(CodeOf([&] { writer.Flush(Briefly()); }), ErrorCode::kDeadlineExceeded);
    } else {
      writer.Flush(Later());
    }
    EXPECT_EQ(writer.pending(), left);
    while (table.info().items > 0) {
      table.SampleInto({.deadline = Later()}, sample);
      order.push_back(sample.items()[0].priority);
      // Steps that waited are whole although the history has long passed them.
      const auto step = static_cast<std::int64_t>(order.size()) - 1;
      EXPECT_EQ(Gathered(gatherer.Gather(sample), 0),
                Expected(0, std::vector<StepRange>(3, {step, 1})));
    }
  }
  EXPECT_EQ(order, std::vector<double>({1, 2, 3, 4, 5}));
}

TEST(TrajectoryWriterTest, AStreamWithoutItemsHoldsItsHistoryAndNoMore) {
  ChunkStore store({.bytes_max = 1 << 20});
  for (const auto& [chunk_steps, history] :
       {std::pair{1, 1}, {1, 7}, {4, 1}, {4, 8}, {4, 9}, {16, 3}}) {
    TrajectoryWriter writer(Steps(), {.chunk_steps = chunk_steps, .history = history}, store);
    for (int step = 0; step < 200; ++step) {
      Append(writer, step);
      const int oldest = std::max(0, step + 1 - history);
      ASSERT_EQ(store.chunks(), step / chunk_steps - oldest / chunk_steps + 1U);
    }
    EXPECT_LE(store.chunks_end(), 10U);
  }
  EXPECT_EQ(store.chunks(), 0U);
}

TEST(TrajectoryWriterTest, AFullStoreRefusesAStepAndTakesItWhenThereIsRoom) {
  ChunkStore store({.bytes_max = 3 * ChunkBytes(2)});
  auto table = std::make_unique<Table>(Options(), store);
  auto writer = std::make_unique<TrajectoryWriter>(
      Steps(),
      WriterOptions{.chunk_steps = 2, .history = 1, .room_wait_max = std::chrono::seconds(0)},
      store);
  for (int step = 0; step < 6; ++step) {
    Append(*writer, step);
    writer->Add(*table, 1.0, std::vector<StepRange>(3, {step, 1}));
    writer->Flush(Later());
  }
  EXPECT_EQ(store.chunks(), 3U);
  EXPECT_EQ(CodeOf([&] { Append(*writer, 6); }), ErrorCode::kUnavailable);
  EXPECT_EQ(writer->steps(), 6);

  Sample sample;
  table->SampleInto({.count = 200, .deadline = Later()}, sample);
  std::vector<ItemKey> keys;
  for (const SampledItem& item : sample.items()) {
    if (item.key.number <= 2) keys.push_back(item.key);  // The items of the first chunk.
  }
  table->Delete(keys);
  EXPECT_EQ(CodeOf([&] { Append(*writer, 6); }), ErrorCode::kUnavailable);  // The sample has it.
  sample.Release();
  EXPECT_EQ(Append(*writer, 6), 6);
  EXPECT_EQ(store.chunks(), 3U);

  table.reset();
  EXPECT_EQ(store.chunks(), 1U);
  writer.reset();
  EXPECT_EQ(store.chunks(), 0U);
}

// Here a sample that is gathered while the writer waits; as well a checkpoint that is written.
TEST(TrajectoryWriterTest, AFullStoreMakesAWriterWaitUntilOthersGiveRoom) {
  ChunkStore store({.bytes_max = 3 * ChunkBytes(2)});
  Table table(Options(), store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 2, .history = 1}, store);
  for (int step = 0; step < 6; ++step) {
    Append(writer, step);
    writer.Add(table, 1.0, std::vector<StepRange>(3, {step, 1}));
    writer.Flush(Later());
  }
  Sample sample;
  table.SampleInto({.count = 200, .deadline = Later()}, sample);
  std::vector<ItemKey> keys;
  for (const SampledItem& item : sample.items()) keys.push_back(item.key);
  table.Delete(keys);
  std::thread reader([&] {
    while (store.waiting() == 0) std::this_thread::yield();
    sample.Release();
  });
  EXPECT_EQ(Append(writer, 6), 6);
  reader.join();
}

// One stream's items wait for a reader; another stream, of another table, goes on.
TEST(TrajectoryWriterTest, AWriterWhoseItemsWaitDoesNotFillTheStore) {
  ChunkStore store({.bytes_max = 100 * ChunkBytes(2)});
  TableOptions waits = Options();
  waits.rate_limiter = RateLimiterOptions::Queue(1);
  Table blocked(waits, store);
  Table other(Options(), store);
  TrajectoryWriter stuck(Steps(), {.chunk_steps = 2, .history = 1, .bytes_max = 10 * ChunkBytes(2)},
                         store);
  TrajectoryWriter writer(Steps(), {.chunk_steps = 2, .history = 1}, store);
  int taken = 0;
  const auto append = [&] {
    for (; taken < 1000; ++taken) {
      Append(stuck, taken);
      stuck.Add(blocked, 1.0, std::vector<StepRange>(3, {taken, 1}));
    }
  };
  EXPECT_EQ(CodeOf(append), ErrorCode::kUnavailable);
  EXPECT_EQ(taken, 20);
  EXPECT_EQ(store.chunks(), 10U);
  for (int step = 0; step < 100; ++step) {
    Append(writer, step);
    writer.Add(other, 1.0, std::vector<StepRange>(3, {step, 1}));
    writer.Flush(Later());
  }
  EXPECT_EQ(other.info().items, 100);
}

}  // namespace
}  // namespace menger
