// Journals and checkpoints of writers that compress, in tables whose bounds only compressed chunks
// keep: what comes back is all that was there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/durability/journal_testing.h"
#include "menger/replay/durability/replay_journal.h"
#include "menger/replay/durability/replay_keeper.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing_journals::Drained;
using testing_journals::Folder;
using testing_tables::ErrorText;
using testing_tables::Soon;

constexpr int kFrameBytes = 400;
constexpr int kChunkSteps = 16;
constexpr std::size_t kChunkBytes = kFrameBytes * kChunkSteps;

ItemSpec Frames() {
  return {.steps = Spec({LeafSpec::Box("frame", DataType::kUint8, {kFrameBytes}, {0}, {255})}),
          .columns = {{.name = "frame", .leaf = "frame"}}};
}

TableOptions FrameTable(const char* name, std::int64_t items_max, std::size_t bytes_max) {
  return {.name = name,
          .items = Frames(),
          .sampler = {.kind = SelectorKind::kFifo},
          .items_max = items_max,
          .bytes_max = bytes_max};
}

// Writers in turn, each of frames that tell their writer and their number.
struct FrameStream {
  FrameStream(ReplayStore& replay_store, int count) : store(replay_store) {
    for (int i = 0; i < count; ++i) {
      writers.push_back(store.NewWriter(
          Frames().steps,
          {.chunk_steps = kChunkSteps, .history = 1, .compression = Compression::kAutomatic}));
    }
  }

  static std::vector<std::uint8_t> FrameOf(std::size_t writer, std::int64_t step) {
    std::vector<std::uint8_t> frame(kFrameBytes, static_cast<std::uint8_t>(writer));
    frame[0] = static_cast<std::uint8_t>(step % 256);
    frame[1] = static_cast<std::uint8_t>(step / 256);
    return frame;
  }

  void Step(std::size_t index) {
    TrajectoryWriter& writer = *writers[index];
    const std::vector<std::uint8_t> frame = FrameOf(index, writer.steps());
    const auto* const leaf = reinterpret_cast<const std::byte*>(frame.data());
    const StepRange last{.first = writer.Append({&leaf, 1}, 0), .count = 1};
    for (int i = 0; i < store.tables(); ++i) writer.Add(store.table(i), 1.0, {&last, 1});
    writer.Flush(Soon());
  }

  ReplayStore& store;
  std::vector<std::unique_ptr<TrajectoryWriter>> writers;
};

// For each table its items' numbers and frames, oldest first, and how many were ever evicted.
// Empties a store of Drained options.
struct Contents {
  std::int64_t evicted = 0;
  std::vector<std::pair<std::uint64_t, std::string>> items;

  bool operator==(const Contents&) const = default;
};
std::vector<Contents> ContentsOf(ReplayStore& store) {
  std::vector<Contents> all;
  for (int i = 0; i < store.tables(); ++i) {
    Table& table = store.table(i);
    const TableInfo info = table.info();
    Contents& contents = all.emplace_back(Contents{.evicted = info.evicted, .items = {}});
    if (info.items == 0) continue;
    Sample sample;
    table.SampleInto({.count = static_cast<int>(info.items), .deadline = Soon()}, sample);
    BatchGatherer gatherer(table.options().items, static_cast<int>(info.items), 1);
    const BatchColumn frames = gatherer.Gather(sample)[0];
    for (int k = 0; k < sample.size(); ++k) {
      const auto* const frame = reinterpret_cast<const char*>(frames.data) + k * kFrameBytes;
      contents.items.emplace_back(sample.items()[k].key.number, std::string(frame, kFrameBytes));
    }
  }
  return all;
}

// What the folder of a keeper would bring back now.
std::vector<Contents> KeptIn(const std::string& kept, const ReplayStoreOptions& options,
                             const Folder& folder) {
  fs::remove_all(folder / "copied");
  fs::copy(kept, folder / "copied", fs::copy_options::recursive);
  ReplayStore store(Drained(options));
  const ReplayKeeper keeper(store, {.kind = Durability::kJournal, .folder = folder / "copied"});
  return ContentsOf(store);
}

TEST(CompressedJournalTest, ItemsThatFitOnlyAsTheirChunksAreCompressedComeBack) {
  const Folder folder;
  constexpr int kItems = 4000;
  const ReplayStoreOptions options = {
      .tables = {FrameTable("frames", 2 * kItems, kItems * kFrameBytes / 5)}};
  ReplayStore store(options);
  ReplayKeeper keeper(store, {.kind = Durability::kJournal, .folder = folder / "kept"});
  FrameStream stream(store, 1);
  for (int i = 0; i < kItems; ++i) {
    stream.Step(0);
    if (i % 20 == 0) keeper.Sync(Soon());  // Mostly before the chunk is full.
  }
  keeper.Sync(Soon());
  ASSERT_EQ(store.table(0).info().items, kItems);

  const std::vector<Contents> kept = KeptIn(folder / "kept", options, folder);
  ASSERT_EQ(kept[0].items.size(), kItems);
  for (int i = 0; i < kItems; ++i) {
    const std::vector<std::uint8_t> frame = FrameStream::FrameOf(0, i);
    EXPECT_EQ(kept[0].items[i].first, i + 1U);
    ASSERT_EQ(kept[0].items[i].second, std::string(frame.begin(), frame.end())) << i;
  }
}

// Three writers and two tables at their bounds, one by items, one by bytes; the store has room for
// no more than these. After each of many groups, in the middle of chunks and right after they were
// compressed, all of both comes back, as a checkpoint of the same moment tells it.
TEST(CompressedJournalTest, EveryGroupBringsBackWhatTheTablesHeld) {
  const Folder folder;
  const ReplayStoreOptions options = {.tables = {FrameTable("items", 500, 20 * kChunkBytes),
                                                 FrameTable("bytes", 5000, 6 * kChunkBytes)},
                                      .bytes_max = 20 * kChunkBytes};
  ReplayStore store(options);
  const ReplayCheckpoint base(store);
  base.Write(folder / "checkpoint-1");
  ReplayJournal journal(store, folder / "", std::chrono::hours(1), base, 1);
  FrameStream stream(store, 3);
  Random random = Random::FromSeed(5);
  std::vector<JournalFile> files = {{.path = JournalPath(folder / "", 1), .number = 1}};
  const auto recovered = [&](const std::string& checkpoint, std::span<const JournalFile> segments) {
    ReplayStore other(Drained(options));
    ReplayCheckpoint::Load(checkpoint, other, {}, segments);
    return ContentsOf(other);
  };
  for (int i = 0; i < 3000; ++i) {
    stream.Step(static_cast<std::size_t>(random.Integers(0, 3)));
    if (random.Integers(0, 30) > 0) continue;
    if (i > 1500 && files.size() == 1) {
      journal.Cut(2)->Write(folder / "checkpoint-2", folder / "checkpoint-1");
      files.push_back({.path = JournalPath(folder / "", 2), .number = 2});
    }
    journal.Write();
    ReplayCheckpoint(store).Write(folder / "held");
    const std::vector<Contents> held = recovered(folder / "held", {});
    fs::remove_all(folder / "held");
    EXPECT_EQ(held[0].items.size(), std::min(i + 1, 500));
    ASSERT_TRUE(recovered(folder / "checkpoint-1", files) == held) << i;
    if (files.size() == 1) continue;
    ASSERT_TRUE(recovered(folder / "checkpoint-2", std::span(files).last(1)) == held) << i;
  }
  EXPECT_GT(store.table(0).info().evicted, 0);
  EXPECT_GT(store.table(1).info().evicted, 0);
}

// What loading logs, and how many items the table then has.
std::pair<std::string, std::int64_t> Loaded(const std::string& folder,
                                            const ReplayStoreOptions& options) {
  testing::internal::CaptureStderr();
  ReplayStore store(options);
  ReplayCheckpoint::Load(folder, store);
  return {testing::internal::GetCapturedStderr(), store.table(0).info().items};
}

TEST(CompressedJournalTest, LoadingSaysWhatItEvicts) {
  const Folder folder;
  const std::string saved = folder / "saved";
  ReplayStoreOptions options = {.tables = {FrameTable("frames", 100, 20 * kChunkBytes)}};
  {
    ReplayStore store(options);
    const auto writer = store.NewWriter(Frames().steps, {.chunk_steps = kChunkSteps});
    for (int i = 0; i < 64; ++i) {
      const std::vector<std::byte> frame(kFrameBytes, static_cast<std::byte>(i));
      const auto* const leaf = frame.data();
      const StepRange last{.first = writer->Append({&leaf, 1}, 0), .count = 1};
      writer->Add(store.table(0), 1.0, {&last, 1});
    }
    writer->Flush(Soon());
    ReplayCheckpoint(store).Write(saved);
  }
  EXPECT_EQ(Loaded(saved, options), std::make_pair(std::string(), std::int64_t{64}));

  options.tables[0].items_max = 10;
  const auto [items_text, by_items] = Loaded(saved, options);
  EXPECT_EQ(by_items, 10);
  EXPECT_THAT(items_text, AllOf(HasSubstr("table 'frames'"), HasSubstr("54 of 64 items"),
                                HasSubstr("items_max = 10"), HasSubstr(saved)));

  options.tables[0].items_max = 100;
  options.tables[0].bytes_max = 2 * kChunkBytes;
  const auto [bytes_text, by_bytes] = Loaded(saved, options);
  EXPECT_EQ(by_bytes, 32);
  EXPECT_THAT(bytes_text, AllOf(HasSubstr("32 of 64 items"), HasSubstr("bytes_max = 12800"),
                                HasSubstr("25600 bytes")));

  // Not one chunk has room.
  options.tables[0].bytes_max = kChunkBytes - 1;
  const auto [none_text, none] = Loaded(saved, options);
  EXPECT_EQ(none, 0);
  EXPECT_THAT(none_text, HasSubstr("64 of 64 items"));

  // Nor in the store: then it is an error.
  options.tables[0].bytes_max = 20 * kChunkBytes;
  options.bytes_max = 3 * kChunkBytes;
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { Loaded(saved, options); }),
              AllOf(HasSubstr(saved), HasSubstr("25600 bytes"), HasSubstr("bytes_max = 19200")));
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace menger
