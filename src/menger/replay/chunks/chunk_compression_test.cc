#include "menger/replay/chunks/chunk_compression.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"

namespace menger {
namespace {

// A chunk of a store, beside the rows that were written to it.
struct Written {
  Written(const Spec& steps, int capacity)
      : layout(steps, capacity), chunk(store.Allocate(layout)) {
    for (int leaf = 0; leaf < steps.size(); ++leaf) {
      rows.emplace_back(layout.row_bytes(leaf) * static_cast<std::size_t>(capacity));
    }
  }
  void Publish() {
    for (std::size_t leaf = 0; leaf < rows.size(); ++leaf) {
      std::memcpy(store.Data(chunk, layout.offset(static_cast<int>(leaf))), rows[leaf].data(),
                  rows[leaf].size());
    }
    store.Publish(chunk, layout.capacity());
  }

  ChunkLayout layout;
  ChunkStore store{{.bytes_max = 1 << 24}};
  ChunkId chunk;
  std::vector<std::vector<std::uint8_t>> rows;  // By leaf.
};

// Runs of equal bytes, as frames have them.
void FillWithRuns(std::vector<std::uint8_t>& bytes, Random& random) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto value = static_cast<std::uint8_t>(random.Integers(0, 256));
    for (auto run = random.Integers(30, 200); run > 0 && i < bytes.size(); --run)
      bytes[i++] = value;
  }
}

void FillWithNoise(std::vector<std::uint8_t>& bytes, Random& random) {
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.Integers(0, 256));
}

TEST(ChunkCompressionTest, EveryWindowOfEveryTypeComesBackBitForBit) {
  std::vector<LeafSpec> leaves;
  ItemSpec items;
  for (const DataType dtype : {DataType::kUint8, DataType::kInt32, DataType::kInt64,
                               DataType::kFloat32, DataType::kFloat64}) {
    leaves.push_back(LeafSpec::Box(std::string(NameOf(dtype)), dtype, {11, 13}, {0}, {1}));
    items.columns.push_back({.name = leaves.back().name, .leaf = leaves.back().name, .rows = 64});
  }
  leaves.push_back(LeafSpec::Scalar("small", DataType::kInt64));
  leaves.push_back(LeafSpec::Box("noise", DataType::kUint8, {100}, {0}, {255}));
  items.columns.push_back({.name = "small", .leaf = "small", .rows = 64});
  items.columns.push_back({.name = "noise", .leaf = "noise", .rows = 64});
  items.steps = Spec(leaves);
  Random random = Random::FromSeed(1);
  for (const int capacity : {1, 7, 8, 9, 16, 29}) {  // Blocks in part, too.
    Written raw(items.steps, capacity);
    for (auto& leaf : raw.rows) FillWithRuns(leaf, random);
    FillWithNoise(raw.rows.back(), random);
    raw.Publish();
    const auto found = CompressChunk(raw.store, raw.layout, raw.chunk);
    ASSERT_TRUE(found);
    EXPECT_TRUE(raw.store.is_compressed(*found));
    EXPECT_LT(raw.store.bytes(*found), raw.store.bytes(raw.chunk) / 2);
    EXPECT_EQ(raw.store.rows(*found), capacity);
    EXPECT_EQ(raw.store.steps_id(*found), raw.layout.steps_id());
    raw.store.Release(raw.chunk);

    SliceReader reader(items);
    for (int i = 0; i < 2000; ++i) {
      const auto column = static_cast<int>(random.Integers(0, std::ssize(items.columns)));
      const auto first = random.Integers(0, capacity);
      const auto count = random.Integers(1, capacity - first + 1);
      const StridedView view = reader.Find(raw.store,
                                           {.chunk = *found,
                                            .offset = static_cast<std::uint16_t>(first),
                                            .length = static_cast<std::uint16_t>(count)},
                                           column);
      ASSERT_EQ(view.count, count);
      ASSERT_TRUE(view.dense());
      ASSERT_EQ(view.item, raw.layout.row_bytes(column));
      ASSERT_EQ(std::memcmp(view.data, raw.rows[column].data() + view.item * first,
                            view.item * static_cast<std::size_t>(count)),
                0)
          << "column " << column << ", rows " << first << " + " << count << " of " << capacity;
    }
  }
}

TEST(ChunkCompressionTest, RowsThatWereLeftAsTheyAreAreShownInPlace) {
  Random random = Random::FromSeed(2);
  Written raw(Spec({LeafSpec::Box("frame", DataType::kUint8, {1000}, {0}, {255}),
                    LeafSpec::Scalar("reward", DataType::kFloat32)}),
              16);
  FillWithRuns(raw.rows[0], random);
  raw.Publish();
  const ChunkId chunk = CompressChunk(raw.store, raw.layout, raw.chunk).value();
  CompressedReader reader;
  const std::byte* const begin = raw.store.Data(chunk, 0);
  const std::byte* const rewards = reader.Find(raw.store, chunk, 1, 4, 3, 5);
  EXPECT_GE(rewards, begin);
  EXPECT_LT(rewards, begin + raw.store.bytes(chunk));
  const std::byte* const frames = reader.Find(raw.store, chunk, 0, 1000, 3, 5);
  EXPECT_FALSE(frames >= begin && frames < begin + raw.store.bytes(chunk));
}

TEST(ChunkCompressionTest, WhatDoesNotShrinkEnoughIsNotCompressed) {
  Random random = Random::FromSeed(3);
  const Spec bytes = Spec({LeafSpec::Box("bytes", DataType::kUint8, {1000}, {0}, {255})});
  Written noise(bytes, 64);
  FillWithNoise(noise.rows[0], random);
  noise.Publish();
  EXPECT_FALSE(CompressChunk(noise.store, noise.layout, noise.chunk));
  // The first block shrinks, the others do not.
  std::fill_n(noise.rows[0].begin(), 8 * 1000, 0);
  noise.Publish();
  EXPECT_FALSE(CompressChunk(noise.store, noise.layout, noise.chunk));
  EXPECT_EQ(noise.store.chunks(), 1U);

  // Rows of a few bytes are not worth a block, however regular.
  Written zeros(Spec({LeafSpec::Scalar("reward", DataType::kFloat64)}), 64);
  zeros.Publish();
  EXPECT_FALSE(CompressChunk(zeros.store, zeros.layout, zeros.chunk));
}

TEST(ChunkCompressionTest, AStoreWithoutRoomKeepsTheChunkAsItIs) {
  const ChunkLayout layout(Spec({LeafSpec::Box("bytes", DataType::kUint8, {1000}, {0}, {255})}),
                           64);
  ChunkStore store({.bytes_max = layout.bytes()});
  const ChunkId chunk = store.Allocate(layout);
  store.Publish(chunk, 64);
  EXPECT_FALSE(CompressChunk(store, layout, chunk));
  EXPECT_EQ(store.chunks(), 1U);
}

TEST(ChunkCompressionTest, DamagedBlocksAreReportedNotShown) {
  Random random = Random::FromSeed(4);
  Written raw(Spec({LeafSpec::Box("frame", DataType::kUint8, {1000}, {0}, {255})}), 16);
  FillWithRuns(raw.rows[0], random);
  raw.Publish();
  const ChunkId chunk = CompressChunk(raw.store, raw.layout, raw.chunk).value();
  CompressedLeaf leaf;
  std::memcpy(&leaf, raw.store.Data(chunk, 0), sizeof(leaf));
  std::memset(raw.store.Data(chunk, leaf.begin + 4 * (leaf.blocks + 1)), 0xff, 16);
  CompressedReader reader;
  EXPECT_THROW(reader.Find(raw.store, chunk, 0, 1000, 0, 1), Error);
  // The other block is whole.
  const std::byte* const row = reader.Find(raw.store, chunk, 0, 1000, 9, 1);
  EXPECT_EQ(std::memcmp(row, raw.rows[0].data() + 9000, 1000), 0);
}

}  // namespace
}  // namespace menger
