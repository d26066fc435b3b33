#include "menger/replay/client/batch_gatherer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"

namespace menger {
namespace {

Spec Steps() {
  return Spec({LeafSpec::Scalar("flag", DataType::kUint8),
               LeafSpec::Box("frame", DataType::kInt32, {3}, {0}, {1})});
}

// Frames of up to four rows with zeros in front, flags of up to three with zeros behind.
ItemSpec Items() {
  return {
      .steps = Steps(),
      .columns = {{.name = "observation", .leaf = "frame", .rows = 4, .padding = Padding::kFront},
                  {.name = "flags", .leaf = "flag", .rows = 3, .padding = Padding::kBack}}};
}

// A chunk whose row r holds the flag and frame of number first + r.
ChunkId Filled(ChunkStore& store, const ChunkLayout& layout, int first) {
  const ChunkId chunk = store.Allocate(layout);
  for (int row = 0; row < layout.capacity(); ++row) {
    const auto flag = static_cast<std::uint8_t>(first + row);
    const std::int32_t frame[3] = {first + row, -(first + row), 7};
    std::memcpy(store.Data(chunk, layout.offset(0) + row), &flag, 1);
    std::memcpy(store.Data(chunk, layout.offset(1) + sizeof(frame) * row), frame, sizeof(frame));
  }
  store.Publish(chunk, layout.capacity());
  return chunk;
}

template <typename T>
std::vector<T> Values(const BatchColumn& column, int item) {
  std::vector<T> values(column.item_bytes / sizeof(T));
  std::memcpy(values.data(), column.data + column.item_bytes * static_cast<std::size_t>(item),
              column.item_bytes);
  return values;
}

TEST(BatchGathererTest, WhatAnItemLacksIsZeroInFrontOrBehindAsTheColumnSays) {
  ChunkStore store({.bytes_max = 1 << 20});
  const ChunkId chunk = Filled(store, ChunkLayout(Steps(), 8), 10);
  const ItemSpec items = Items();
  BatchGatherer gatherer(items, /*items_max=*/2, /*threads=*/1);
  Sample sample;
  // Twice: the second batch must not show the rows of the first.
  for (const int rows : {3, 1}) {
    const auto count = static_cast<std::uint16_t>(rows);
    sample.Begin(store, items, 1);
    const std::vector<Slice> slices = {{chunk, 2, count}, {chunk, 5, 1}};
    sample.Add({}, slices, std::vector<std::uint16_t>{1, 1});
    const auto batch = gatherer.Gather(sample);
    ASSERT_EQ(batch.size(), 2U);
    ASSERT_EQ(batch[0].rows.size(), 1U);
    EXPECT_EQ(batch[0].rows[0], rows);
    EXPECT_EQ(batch[1].rows[0], 1);
    EXPECT_EQ(Values<std::int32_t>(batch[0], 0),
              rows == 3 ? std::vector<std::int32_t>({0, 0, 0, 12, -12, 7, 13, -13, 7, 14, -14, 7})
                        : std::vector<std::int32_t>({0, 0, 0, 0, 0, 0, 0, 0, 0, 12, -12, 7}));
    EXPECT_EQ(Values<std::uint8_t>(batch[1], 0), std::vector<std::uint8_t>({15, 0, 0}));
  }
  store.Release(chunk);
}

TEST(BatchGathererTest, AnItemMaySpanChunksOfDifferentCapacities) {
  ChunkStore store({.bytes_max = 1 << 20});
  const ChunkId first = Filled(store, ChunkLayout(Steps(), 3), 0);
  const ChunkId second = Filled(store, ChunkLayout(Steps(), 70), 3);
  const ItemSpec items = Items();
  BatchGatherer gatherer(items, 1, 1);
  Sample sample;
  sample.Begin(store, items, 1);
  sample.Add({}, std::vector<Slice>{{first, 1, 2}, {second, 0, 2}, {first, 2, 1}, {second, 0, 1}},
             std::vector<std::uint16_t>{2, 2});
  const auto batch = gatherer.Gather(sample);
  EXPECT_EQ(Values<std::int32_t>(batch[0], 0),
            std::vector<std::int32_t>({1, -1, 7, 2, -2, 7, 3, -3, 7, 4, -4, 7}));
  EXPECT_EQ(Values<std::uint8_t>(batch[1], 0), std::vector<std::uint8_t>({2, 3, 0}));
  store.Release(first);
  store.Release(second);
}

// Enough for several threads to share the work, against a loop over numbers.
TEST(BatchGathererTest, EveryNumberOfThreadsGathersTheSameBatch) {
  constexpr int kItems = 257;
  constexpr int kFloats = 1500;
  const Spec steps({LeafSpec::Box("floats", DataType::kFloat32, {kFloats}, {0}, {1})});
  const ItemSpec items{
      .steps = steps,
      .columns = {{.name = "pair", .leaf = "floats", .rows = 2, .padding = Padding::kFront}}};
  const ChunkLayout layout(steps, 16);
  ChunkStore store({.bytes_max = std::size_t{1} << 24});
  std::vector<ChunkId> chunks;
  for (int c = 0; c < 20; ++c) {
    chunks.push_back(store.Allocate(layout));
    for (int row = 0; row < 16; ++row) {
      const std::vector<float> values(kFloats, static_cast<float>(100 * c + row));
      std::memcpy(store.Data(chunks.back(), layout.row_bytes(0) * row), values.data(),
                  layout.row_bytes(0));
    }
  }
  for (const int threads : {1, 2, 3}) {
    BatchGatherer gatherer(items, kItems, threads);
    Random random = Random::FromSeed(threads);
    Sample sample;
    sample.Begin(store, items, kItems);
    std::vector<std::vector<float>> expected;
    for (int i = 0; i < kItems; ++i) {
      const auto c = static_cast<int>(random.Integers(0, 20));
      const auto row = static_cast<std::uint16_t>(random.Integers(0, 15));
      const auto count = static_cast<std::uint16_t>(random.Integers(1, 3));
      sample.Add({}, std::vector<Slice>{{chunks[c], row, count}}, std::vector<std::uint16_t>{1});
      const auto value = static_cast<float>(100 * c + row);
      std::vector<float> pair(2 * kFloats, count == 1 ? value : value + 1);
      std::fill_n(pair.begin(), kFloats, count == 1 ? 0 : value);
      expected.push_back(std::move(pair));
    }
    const auto batch = gatherer.Gather(sample);
    for (int i = 0; i < kItems; ++i) ASSERT_EQ(Values<float>(batch[0], i), expected[i]);
  }
  for (const ChunkId chunk : chunks) store.Release(chunk);
}

TEST(BatchGathererTest, SamplesThatDoNotFitAreRefused) {
  ChunkStore store({.bytes_max = 1 << 20});
  const ChunkId chunk = Filled(store, ChunkLayout(Steps(), 8), 0);
  const ItemSpec items = Items();
  ItemSpec others = Items();
  others.columns[0].rows = 3;
  BatchGatherer gatherer(items, 1, 1);
  Sample sample;
  const std::vector<Slice> slices = {{chunk, 0, 1}, {chunk, 0, 1}};
  const std::vector<std::uint16_t> counts = {1, 1};
  sample.Begin(store, others, 1);
  sample.Add({}, slices, counts);
  EXPECT_THROW(gatherer.Gather(sample), Error);
  sample.Begin(store, items, 1);
  sample.Add({}, slices, counts);
  EXPECT_NO_THROW(gatherer.Gather(sample));
  sample.Add({}, slices, counts);
  EXPECT_THROW(gatherer.Gather(sample), Error);
  sample.Release();
  EXPECT_EQ(gatherer.Gather(sample)[0].rows.size(), 0U);
  EXPECT_THROW(BatchGatherer(items, 0, 1), Error);
  EXPECT_THROW(BatchGatherer(items, 1, 0), Error);
  store.Release(chunk);
}

TEST(SampleTest, HoldsItsChunksUntilItIsReleased) {
  ChunkStore store({.bytes_max = 1 << 20});
  const ChunkLayout layout(Steps(), 8);
  const ChunkId first = Filled(store, layout, 0);
  const ChunkId second = Filled(store, layout, 8);
  const ItemSpec items = Items();
  {
    Sample sample;
    sample.Begin(store, items, 1);
    sample.Add({}, std::vector<Slice>{{first, 6, 2}, {second, 0, 1}, {first, 7, 1}},
               std::vector<std::uint16_t>{2, 1});
    store.Release(first);
    store.Release(second);
    EXPECT_EQ(store.chunks(), 2U);
    // Read in place, oldest first.
    SliceReader reader(items);
    std::vector<std::int32_t> seen;
    for (const Slice& slice : sample.slices(0, 0)) {
      const StridedView rows = reader.Find(*sample.chunks(), slice, 0);
      for (int row = 0; row < rows.count; ++row) {
        seen.push_back(*reinterpret_cast<const std::int32_t*>(rows[row]));
      }
    }
    EXPECT_EQ(seen, std::vector<std::int32_t>({6, 7, 8}));
    sample.Release();
    EXPECT_EQ(store.chunks(), 0U);
    EXPECT_EQ(sample.size(), 0);
    const ChunkId third = Filled(store, layout, 0);
    sample.Begin(store, items, 1);
    sample.Add({}, std::vector<Slice>{{third, 0, 1}, {third, 0, 1}},
               std::vector<std::uint16_t>{1, 1});
    store.Release(third);
    EXPECT_EQ(store.chunks(), 1U);
  }
  EXPECT_EQ(store.chunks(), 0U);  // The destructor releases too.
}

}  // namespace
}  // namespace menger
