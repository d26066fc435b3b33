// Writers that compress: what readers, tables and checkpoints then see.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/checkpoint_testing.h"
#include "menger/replay/replay_store.h"
#include "menger/replay/sample.h"

namespace menger {
namespace {

using testing_checkpoints::Folder;
using testing_tables::Soon;

constexpr int kFrameBytes = 400;
constexpr int kChunkSteps = 16;
constexpr int kStack = 4;
const WriterOptions kCompressing{
    .chunk_steps = kChunkSteps, .history = 6, .compression = Compression::kAutomatic};

ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Box("frame", DataType::kUint8, {kFrameBytes}, {0}, {255}),
                         LeafSpec::Scalar("number", DataType::kInt64)}),
          .columns = {{.name = "observation", .leaf = "frame", .rows = kStack},
                      {.name = "number", .leaf = "number"},
                      {.name = "next", .leaf = "frame", .rows = kStack}}};
}

TableOptions TableOf(const char* name, std::int64_t items_max) {
  return {.name = name,
          .items = Items(),
          .sampler = {.kind = SelectorKind::kUniform},
          .items_max = items_max,
          .bytes_max = 1 << 22,
          .seed = 1};
}

// A flat frame with a bar that moves.
std::vector<std::uint8_t> FrameOf(std::int64_t step) {
  std::vector<std::uint8_t> frame(kFrameBytes, 9);
  for (int i = 0; i < 20; ++i) frame[(step * 7 + i) % kFrameBytes] = 1 + step % 200;
  return frame;
}

void AppendFrame(TrajectoryWriter& writer) {
  const std::int64_t step = writer.steps();
  const auto frame = FrameOf(step);
  const std::byte* const leaves[] = {reinterpret_cast<const std::byte*>(frame.data()),
                                     reinterpret_cast<const std::byte*>(&step)};
  writer.Append(leaves, 0);
}

// The item whose "number" is the last step but one; its windows differ by one step.
std::vector<StepRange> ItemOf(std::int64_t steps) {
  return {{steps - 5, kStack}, {steps - 2, 1}, {steps - 4, kStack}};
}

void Write(TrajectoryWriter& writer, const std::vector<Table*>& tables, int steps) {
  for (int i = 0; i < steps; ++i) {
    AppendFrame(writer);
    if (writer.steps() < 5) continue;
    for (Table* const table : tables) writer.Add(*table, 1.0, ItemOf(writer.steps()));
    writer.Flush(Soon());
  }
}

// Whether all items of the sample show the frames that their number tells.
bool ShowsItsFrames(std::span<const BatchColumn> batch, int items) {
  for (int item = 0; item < items; ++item) {
    std::int64_t number = 0;
    std::memcpy(&number, batch[1].data + batch[1].item_bytes * item, sizeof(number));
    for (int row = 0; row < kStack; ++row) {
      const std::size_t at = kFrameBytes * (static_cast<std::size_t>(item) * kStack + row);
      const auto before = FrameOf(number - 3 + row);
      const auto after = FrameOf(number - 2 + row);
      if (std::memcmp(batch[0].data + at, before.data(), kFrameBytes) != 0 ||
          std::memcmp(batch[2].data + at, after.data(), kFrameBytes) != 0) {
        return false;
      }
    }
  }
  return true;
}

void ExpectRightFrames(Table& table, int count) {
  Sample sample;
  table.SampleInto({.count = count, .deadline = Soon()}, sample);
  BatchGatherer gatherer(Items(), count, /*threads=*/1);
  EXPECT_TRUE(ShowsItsFrames(gatherer.Gather(sample), count));
}

TEST(CompressedWritingTest, ItemsShowTheSameInAFractionOfTheBytesWhateverTheyReachOver) {
  ReplayStore plain({.tables = {TableOf("a", 1000)}});
  ReplayStore store({.tables = {TableOf("a", 1000)}});
  const auto plain_writer = plain.NewWriter(Items().steps, {.chunk_steps = kChunkSteps});
  const auto writer = store.NewWriter(Items().steps, kCompressing);
  Write(*plain_writer, {&plain.table(0)}, 500);
  Write(*writer, {&store.table(0)}, 500);
  ExpectRightFrames(plain.table(0), 2000);
  ExpectRightFrames(store.table(0), 2000);  // Over blocks of 8 steps, chunks of 16.
  EXPECT_LT(store.table(0).info().bytes, plain.table(0).info().bytes / 4);
  EXPECT_EQ(store.chunks().chunks(), plain.chunks().chunks());
  EXPECT_LT(store.chunks().bytes_used(), plain.chunks().bytes_used() / 4);
}

TEST(CompressedWritingTest, TablesShareTheCompressedChunkAndTheLastOneFreesIt) {
  ReplayStore store({.tables = {TableOf("a", 40), TableOf("b", 100)}});
  auto writer = store.NewWriter(Items().steps, kCompressing);
  Write(*writer, {&store.table(0), &store.table(1)}, 1000);
  for (int i = 0; i < 2; ++i) ExpectRightFrames(store.table(i), 300);
  // Counted anew: what the newest 100 items name, each chunk once.
  std::vector<ChunkId> chunks;
  Sample sample;
  store.table(1).SampleInto({.count = 5000, .deadline = Soon()}, sample);
  std::size_t bytes = 0;
  for (int i = 0; i < sample.size(); ++i) {
    for (const Slice& slice : sample.slices(i)) chunks.push_back(slice.chunk);
  }
  std::ranges::sort(chunks);
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  for (const ChunkId chunk : chunks) bytes += store.chunks().bytes(chunk);
  EXPECT_EQ(store.table(1).info().bytes, bytes);
  EXPECT_EQ(store.chunks().bytes_used(), bytes);
  EXPECT_EQ(store.chunks().chunks(), 999U / kChunkSteps - 896 / kChunkSteps + 1);  // Steps 896 on.
  sample.Release();
  for (const ChunkId chunk : chunks) {
    const bool open = store.chunks().rows(chunk) < kChunkSteps;
    EXPECT_EQ(store.chunks().is_compressed(chunk), !open);
  }
  for (int i = 0; i < 2; ++i) {
    std::vector<ItemKey> keys;
    Sample all;
    store.table(i).SampleInto({.count = 5000, .deadline = Soon()}, all);
    for (const SampledItem& item : all.items()) keys.push_back(item.key);
    all.Release();
    store.table(i).Delete(keys);
    EXPECT_EQ(store.table(i).info().bytes, 0U);
  }
  EXPECT_EQ(store.chunks().chunks(), 1U);  // The history's.
  writer.reset();
  EXPECT_EQ(store.chunks().chunks(), 0U);
}

// Flushes may come at any step, and of several chunks at once.
TEST(CompressedWritingTest, ManyStepsAtOnceAreCompressedAsFewAre) {
  for (const int steps_each : {1, 5, 16, 40, 100}) {
    ReplayStore store({.tables = {TableOf("a", 10'000)}});
    const auto writer = store.NewWriter(Items().steps, kCompressing);
    for (int i = 0; i < 800; ++i) {
      AppendFrame(*writer);
      if (writer->steps() >= 5) writer->Add(store.table(0), 1.0, ItemOf(writer->steps()));
      if (writer->steps() % steps_each == 0) writer->Flush(Soon());
    }
    writer->Flush(Soon());
    ExpectRightFrames(store.table(0), 3000);
    EXPECT_EQ(store.chunks().chunks(), 800U / kChunkSteps);
    EXPECT_LT(store.chunks().bytes_used(), 800U * kFrameBytes / 4) << steps_each;
  }
}

TEST(CompressedWritingTest, AFullChunkThatFindsNoRoomServesAsItIs) {
  TableOptions options = TableOf("a", 1000);
  const std::size_t chunk = ChunkLayout(Items().steps, kChunkSteps).bytes();
  ReplayStore store({.tables = {options}, .bytes_max = chunk});
  const auto writer = store.NewWriter(Items().steps, kCompressing);
  Write(*writer, {&store.table(0)}, kChunkSteps);
  ExpectRightFrames(store.table(0), 100);
  EXPECT_EQ(store.chunks().bytes_used(), chunk);
}

// A sample that was drawn before goes on with what it holds; TSan sees what the values may hide.
TEST(CompressedWritingTest, ReadersGoOnWhileChunksAreReplaced) {
  ReplayStore store({.tables = {TableOf("a", 100), TableOf("b", 100)}});
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> batches = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&, i] {
      BatchGatherer gatherer(Items(), 32, /*threads=*/1);
      Sample sample;
      while (!stop) {
        store.table(i).SampleInto({.count = 32, .deadline = Soon()}, sample);
        std::this_thread::yield();
        if (!ShowsItsFrames(gatherer.Gather(sample), 32)) ++wrong;
        ++batches;
      }
    });
  }
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      const auto writer = store.NewWriter(Items().steps, kCompressing);
      Write(*writer, {&store.table(0), &store.table(1)}, 4000);
    });
  }
  for (std::thread& writer : writers) writer.join();
  while (batches < 50) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(store.chunks().bytes_used(), 4U * 100 * kFrameBytes);
}

// ---- Checkpoints

struct Session {
  explicit Session(std::size_t bytes) : bytes_max(bytes) { Open(); }
  void Open() {
    writer.reset();
    TableOptions a = TableOf("a", 1000);
    a.bytes_max = bytes_max;
    store = std::make_unique<ReplayStore>(
        ReplayStoreOptions{.tables = {a, TableOf("b", 30)}, .writer_bytes = 1 << 16});
    writer = store->NewWriter(Items().steps, kCompressing);
  }
  void Write(int steps) { menger::Write(*writer, {&store->table(0), &store->table(1)}, steps); }
  ReplayCheckpoint::Written Save(const std::string& folder, const std::string& previous = "") {
    TrajectoryWriter* const one = writer.get();
    return ReplayCheckpoint(*store, {&one, 1}).Write(folder, previous);
  }
  void Load(const std::string& folder) {
    Open();
    TrajectoryWriter* const one = writer.get();
    ReplayCheckpoint::Load(folder, *store, {&one, 1});
  }

  const std::size_t bytes_max;  // Of the first table.
  std::unique_ptr<ReplayStore> store;
  std::unique_ptr<TrajectoryWriter> writer;
};

// What is compressed decides what is evicted.
constexpr std::size_t kFewBytes = 10'000;
constexpr std::size_t kAmpleBytes = 1 << 22;

TEST(CompressedWritingTest, AResumedStoreCompressesAndEvictsAsOneThatNeverStopped) {
  const Folder folder;
  Session whole(kFewBytes);
  Session resumed(kFewBytes);
  std::string previous;
  for (int i = 0; i < 30; ++i) {
    const int steps = 7 + 5 * (i % 4);  // Cuts lie anywhere in a chunk.
    whole.Write(steps);
    resumed.Write(steps);
    const std::string path = folder / std::to_string(i);
    resumed.Save(path, previous);
    previous = path;
    resumed.Load(path);
    for (int table = 0; table < 2; ++table) {
      const TableInfo expected = whole.store->table(table).info();
      const TableInfo found = resumed.store->table(table).info();
      ASSERT_EQ(found.items, expected.items);
      ASSERT_EQ(found.bytes, expected.bytes);
      ASSERT_EQ(found.evicted, expected.evicted);
    }
    ASSERT_EQ(resumed.store->chunks().bytes_used(), whole.store->chunks().bytes_used());
    if (i > 0) ExpectRightFrames(resumed.store->table(0), 100);
    if (i > 0) ExpectRightFrames(whole.store->table(0), 100);
  }
  EXPECT_GT(whole.store->table(0).info().evicted, 0);
}

TEST(CompressedWritingTest, CheckpointsKeepCompressedBytesAndShareThem) {
  const Folder folder;
  Session run(kAmpleBytes);
  run.Write(900);
  const auto first = run.Save(folder / "1");
  EXPECT_EQ(first.chunks, first.chunks_new);
  EXPECT_LT(first.bytes, run.store->chunks().bytes_used() + 1);
  EXPECT_LT(first.bytes, first.chunks * kChunkSteps * kFrameBytes / 4);
  EXPECT_EQ(run.Save(folder / "2", folder / "1").chunks_new, 0U);
  run.Write(40);  // Chunks that were open are written again: they are others now.
  const auto third = run.Save(folder / "3", folder / "2");
  EXPECT_LE(third.chunks_new, 4U);
  std::filesystem::remove_all(folder / "1");
  std::filesystem::remove_all(folder / "2");
  Session loaded(kAmpleBytes);
  loaded.Load(folder / "3");
  ExpectRightFrames(loaded.store->table(0), 500);
  ExpectRightFrames(loaded.store->table(1), 500);
}

TEST(CompressedWritingTest, DamagedCompressedBytesAreFoundByTheirChecksum) {
  const Folder folder;
  Session run(kAmpleBytes);
  run.Write(100);
  run.Save(folder / "1");
  ReplayCheckpoint::Verify(folder / "1");
  const std::string pack = folder / "1/pack-0.bin";
  std::fstream file(pack, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(300);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(300);
  file.put(byte);
  file.close();
  EXPECT_NE(testing_tables::ErrorText(ErrorCode::kDataLoss,
                                      [&] { ReplayCheckpoint::Verify(folder / "1"); })
                .find("'" + pack + "' is damaged"),
            std::string::npos);
  Session loaded(kAmpleBytes);
  EXPECT_NE(testing_tables::ErrorText(ErrorCode::kDataLoss, [&] { loaded.Load(folder / "1"); })
                .find("is damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace menger
