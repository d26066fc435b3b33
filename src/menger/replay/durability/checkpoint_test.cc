#include "menger/replay/durability/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/chunks/slice_reader.h"
#include "menger/replay/durability/checkpoint_testing.h"
#include "menger/replay/sample.h"
#include "menger/replay/table_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_checkpoints::Folder;
using testing_checkpoints::Stream;
using testing_checkpoints::TwoTables;
using testing_tables::ErrorText;
using testing_tables::SmallItems;
using testing_tables::Soon;

// The promise of a checkpoint. Every selector samples and removes in turn.
TEST(ReplayCheckpointTest, DrawsAfterAResumeAreThoseOfARunThatNeverStopped) {
  for (int kind = 0; kind <= static_cast<int>(SelectorKind::kPrioritised); ++kind) {
    SCOPED_TRACE(kind);
    const Folder folder;
    const auto options =
        TwoTables(static_cast<SelectorKind>(kind), static_cast<SelectorKind>((kind + 3) % 6));
    Stream whole(options);
    Stream resumed(options);
    std::string previous;
    for (int i = 0; i < 20'000; ++i) {
      whole.Step();
      resumed.Step();
      if (i % 3'333 != 3'332) continue;
      const std::string path = folder / std::to_string(i);
      ReplayCheckpoint(*resumed.store, resumed.pointers()).Write(path, previous);
      previous = path;
      resumed.Open();
      ReplayCheckpoint::Load(path, *resumed.store, resumed.pointers());
    }
    EXPECT_GT(whole.seen.size(), 50'000U);
    EXPECT_TRUE(whole.seen == resumed.seen);
    for (int i = 0; i < 2; ++i) {
      const TableInfo expected = whole.store->table(i).info();
      const TableInfo found = resumed.store->table(i).info();
      EXPECT_GT(expected.evicted, 0);
      EXPECT_EQ(found.items, expected.items);
      EXPECT_EQ(found.bytes, expected.bytes);
      EXPECT_EQ(found.inserts, expected.inserts);
      EXPECT_EQ(found.samples, expected.samples);
      EXPECT_EQ(found.deletes, expected.deletes);
      EXPECT_EQ(found.evicted, expected.evicted);
      EXPECT_EQ(found.stale_keys, expected.stale_keys);
    }
    EXPECT_EQ(resumed.store->chunks().bytes_used(), whole.store->chunks().bytes_used());
  }
}

// Eight steps, an item at the end of each chunk.
void Fill(Stream& run, int chunks) {
  for (int i = 0; i < chunks; ++i) {
    for (int row = 0; row < 8; ++row) run.Append(0);
    run.Insert(0, 1.0);
  }
}

ReplayStoreOptions OnlyByItems(std::int64_t items_max) {
  ReplayStoreOptions options = TwoTables();
  for (TableOptions& table : options.tables) {
    table.items_max = items_max;
    table.bytes_max = 1 << 20;
    table.times_sampled_max = 0;
  }
  return options;
}

TEST(ReplayCheckpointTest, ChunksThatThePreviousOneHasAreNotWrittenAgain) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 50);
  const auto write = [&](const std::string& name, const std::string& previous) {
    return ReplayCheckpoint(*run.store, run.pointers())
        .Write(folder / name, previous.empty() ? previous : folder / previous);
  };
  const auto first = write("1", "");
  EXPECT_EQ(first.chunks_new, 50U);
  EXPECT_EQ(first.bytes_new, 50U * 64);
  Fill(run, 30);
  const auto second = write("2", "1");
  EXPECT_EQ(second.chunks, 80U);
  EXPECT_EQ(second.chunks_new, 30U);
  EXPECT_EQ(fs::hard_link_count(folder / "1/pack-0.bin"), 2U);

  // A chunk that grows is written again, one that rests is not, though it is open.
  run.Append(0);
  run.Insert(0, 1.0);
  EXPECT_EQ(write("3", "2").chunks_new, 1U);
  EXPECT_EQ(write("4", "3").chunks_new, 0U);
  run.Append(0);
  EXPECT_EQ(write("5", "4").chunks_new, 1U);

  // Each is whole without the others.
  for (const char* name : {"1", "2", "3", "4"}) fs::remove_all(folder / name);
  Stream loaded(run.options);
  ReplayCheckpoint::Load(folder / "5", *loaded.store, loaded.pointers());
  for (int i = 0; i < 100; ++i) {
    run.Draw(0, 8);
    loaded.Draw(0, 8);
  }
  EXPECT_TRUE(run.seen == loaded.seen);

  // What was loaded knows its chunks again.
  EXPECT_EQ(ReplayCheckpoint(*loaded.store, loaded.pointers())
                .Write(folder / "6", folder / "5")
                .chunks_new,
            0U);
}

TEST(ReplayCheckpointTest, APackOfWhichLessThanHalfIsNeededIsLeftBehind) {
  const Folder folder;
  Stream run(OnlyByItems(50));
  Fill(run, 50);
  ReplayCheckpoint(*run.store).Write(folder / "1");
  Fill(run, 20);
  EXPECT_EQ(ReplayCheckpoint(*run.store).Write(folder / "2", folder / "1").chunks_new, 20U);
  EXPECT_TRUE(fs::exists(folder / "2/pack-0.bin"));
  Fill(run, 10);
  EXPECT_EQ(ReplayCheckpoint(*run.store).Write(folder / "3", folder / "2").chunks_new, 30U);
  EXPECT_FALSE(fs::exists(folder / "3/pack-0.bin"));
  EXPECT_TRUE(fs::exists(folder / "3/pack-1.bin"));
}

TEST(ReplayCheckpointTest, ManySmallPacksBecomeOne) {
  const Folder folder;
  Stream run(OnlyByItems(1000));
  std::string previous;
  std::ptrdiff_t packs_max = 0;
  for (int i = 0; i < 40; ++i) {
    Fill(run, 1);
    const std::string path = folder / std::to_string(i);
    ReplayCheckpoint(*run.store).Write(path, previous);
    packs_max = std::max(packs_max, std::distance(fs::directory_iterator(path), {}) - 1);
    previous = path;
  }
  EXPECT_LE(packs_max, 18);
  Stream loaded(run.options);
  ReplayCheckpoint::Load(previous, *loaded.store);
  EXPECT_EQ(loaded.store->table(0).info().items, 40);
}

auto Refusal(const std::string& file) {
  return testing::AllOf(HasSubstr(file), testing::Not(HasSubstr("another code")));
}

std::string LoadError(ErrorCode code, const std::string& path, Stream& run) {
  return ErrorText(code, [&] { ReplayCheckpoint::Load(path, *run.store, run.pointers()); });
}

TEST(ReplayCheckpointTest, DamagedFilesAreRefusedByNameAndNothingIsLoaded) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 20);
  const std::string path = folder / "1";
  ReplayCheckpoint(*run.store, run.pointers()).Write(path);
  Random random = Random::FromSeed(4);
  Stream loaded(run.options);
  for (const char* name : {"metadata/manifest.json", "metadata/data.bin", "pack-0.bin"}) {
    SCOPED_TRACE(name);
    const std::string file = path + "/" + name;
    fs::copy_file(file, folder / "whole");
    const auto size = static_cast<std::int64_t>(fs::file_size(file));
    for (int i = 0; i < 60; ++i) {
      if (i % 3 == 0) {
        fs::resize_file(file, static_cast<std::uintmax_t>(random.Integers(0, size)));
      } else {
        std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
        const std::int64_t at = random.Integers(0, size);
        bytes.seekg(at);
        const int byte = bytes.get();
        bytes.seekp(at);
        bytes.put(static_cast<char>(byte ^ (1 << random.Integers(0, 8))));
      }
      ASSERT_THAT(LoadError(ErrorCode::kDataLoss, path, loaded), Refusal(name));
      ASSERT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReplayCheckpoint::Verify(path); }),
                  Refusal(name));
      fs::copy_file(folder / "whole", file, fs::copy_options::overwrite_existing);
    }
    fs::remove(file);
    EXPECT_THAT(LoadError(ErrorCode::kDataLoss, path, loaded), Refusal(name));
    fs::rename(folder / "whole", file);
  }
  EXPECT_EQ(loaded.store->chunks().bytes_used(), 0U);
  EXPECT_EQ(loaded.store->table(0).info().items, 0);
  ReplayCheckpoint::Verify(path);
  ReplayCheckpoint::Load(path, *loaded.store, loaded.pointers());
  EXPECT_EQ(loaded.store->table(0).info().items, 20);
}

TEST(ReplayCheckpointTest, ADamagedPreviousOneIsNotBuiltUpon) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 20);
  ReplayCheckpoint(*run.store).Write(folder / "1");
  fs::resize_file(folder / "1/pack-0.bin", 100);
  EXPECT_EQ(ReplayCheckpoint(*run.store).Write(folder / "2", folder / "1").chunks_new, 20U);
}

TEST(ReplayCheckpointTest, PacksAreCopiedWhereAFileSystemCannotLinkThem) {
  const Folder folder;
  const std::string elsewhere = "/dev/shm/replay_checkpoint." + std::to_string(getpid());
  Stream run(OnlyByItems(100));
  Fill(run, 20);
  try {
    ReplayCheckpoint(*run.store).Write(elsewhere);
  } catch (const Error& error) {
    GTEST_SKIP() << "no second file system to try it with: " << error.what();
  }
  EXPECT_EQ(ReplayCheckpoint(*run.store).Write(folder / "2", elsewhere).chunks_new, 0U);
  fs::remove_all(elsewhere);
  ReplayCheckpoint::Verify(folder / "2");
  EXPECT_EQ(fs::hard_link_count(folder / "2/pack-0.bin"), 1U);
}

TEST(ReplayCheckpointTest, WhatAKilledWriterLeftIsReplacedAndAWholeOneIsNot) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 2);
  fs::create_directories(folder / "1.partial");
  std::ofstream(folder / "1.partial/pack-0.bin") << "half";
  ReplayCheckpoint(*run.store).Write(folder / "1");
  EXPECT_FALSE(fs::exists(folder / "1.partial"));
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { ReplayCheckpoint(*run.store).Write(folder / "1"); }),
              HasSubstr("a folder of its own"));
}

TEST(ReplayCheckpointTest, TablesMayBeLoadedUnderOtherOptions) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 40);
  ReplayCheckpoint(*run.store).Write(folder / "1");

  ReplayStoreOptions options = run.options;
  options.tables[0].items_max = 10;
  options.tables[0].sampler.kind = SelectorKind::kMaxHeap;
  options.tables[1].bytes_max = 5 * 64;  // Five chunks.
  options.tables[1].remover.kind = SelectorKind::kLifo;
  options.tables[1].rate_limiter = RateLimiterOptions::MinSize(3);
  options.bytes_max = 15 * 64;  // No more than what is left.
  Stream loaded(options);
  ReplayCheckpoint::Load(folder / "1", *loaded.store);
  EXPECT_EQ(loaded.store->table(0).info().items, 10);
  EXPECT_EQ(loaded.store->table(1).info().items, 5);
  EXPECT_EQ(loaded.store->table(1).info().evicted, 35);
  EXPECT_EQ(loaded.store->chunks().chunks(), 15U);
  loaded.Draw(0, 1);  // The oldest of equal priorities: that of chunk 30, with its last step.
  EXPECT_EQ(loaded.drawn.at(0).number, 31U);
  EXPECT_EQ(loaded.seen.back(), 30 * 8 + 7);
}

TEST(ReplayCheckpointTest, WhatDoesNotFitTogetherIsRefusedByItsDifference) {
  const Folder folder;
  Stream run(OnlyByItems(100));
  Fill(run, 4);
  const std::string path = folder / "1";
  ReplayCheckpoint(*run.store, run.pointers()).Write(path);
  constexpr ErrorCode kCode = ErrorCode::kFailedPrecondition;

  ReplayStoreOptions options = run.options;
  options.tables[1].items.columns[0].rows = 5;
  Stream rows(options);
  EXPECT_THAT(LoadError(kCode, path, rows),
              HasSubstr("another table 'b': column 'stack' of 4 rows of 'value', zeros behind "
                        "there, column 'stack' of 5 rows of 'value', zeros behind here"));
  options = run.options;
  options.tables[0].name = "c";
  Stream name(options);
  EXPECT_THAT(LoadError(kCode, path, name), HasSubstr("has no table 'c'"));
  options = run.options;
  options.tables.pop_back();
  ReplayStore one(options);
  EXPECT_THAT(ErrorText(kCode, [&] { ReplayCheckpoint::Load(path, one); }),
              HasSubstr("has 2 tables, the store 1"));

  Stream fewer(run.options);
  fewer.writers.pop_back();
  TrajectoryWriter* const only = fewer.writers[0].get();
  EXPECT_THAT(ErrorText(kCode,
                        [&] {
                          ReplayCheckpoint::Load(path, *fewer.store, {&only, 1});
                        }),
              HasSubstr("has 2 writers; there are 1 here"));
  Stream chunks(run.options);
  chunks.writers[1] =
      chunks.store->NewWriter(SmallItems().steps, {.chunk_steps = 9, .history = 11});
  EXPECT_THAT(LoadError(kCode, path, chunks),
              HasSubstr("writer 1: chunk_steps 8 there, chunk_steps 9"));
  EXPECT_THAT(LoadError(kCode, path, run), HasSubstr("table 'a' was used before"));
  Stream missing(run.options);
  EXPECT_THAT(LoadError(ErrorCode::kNotFound, folder / "2", missing), HasSubstr("2/metadata"));

  run.Append(0);
  run.writers[0]->Add(run.store->table(0), 1.0,
                      std::vector<StepRange>{{.first = 32, .count = 1}, {.first = 32, .count = 1}});
  EXPECT_THAT(ErrorText(kCode, [&] { ReplayCheckpoint cut(*run.store, run.pointers()); }),
              HasSubstr("1 items of a writer wait for Flush"));
}

// Each writer inserts into one table, then into the other: at any moment the first has as many
// items or, for each writer, one more.
TEST(ReplayCheckpointTest, TheCutIsOneMomentOfAllTablesWhileWritersAndReadersGoOn) {
  const Folder folder;
  Stream run(OnlyByItems(1'000'000));
  for (TableOptions& table : run.options.tables) table.bytes_max = std::size_t{1} << 26;
  run.Open();
  std::atomic<bool> stop = false;
  const auto write = [&](int index) {
    TrajectoryWriter& writer = *run.writers[index];
    for (std::int64_t value = 0; !stop && value < 50'000; ++value) {
      const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
      const std::int64_t step = writer.Append({&leaf, 1}, 0);
      const std::vector<StepRange> columns(2, {.first = step, .count = 1});
      for (int i = 0; i < 2; ++i) {
        writer.Add(run.store->table(i), 1.0 + static_cast<double>(value), columns);
        writer.Flush(Soon());
      }
    }
  };
  const auto read = [&] {
    Sample sample;
    while (!stop) {
      if (run.store->table(0).info().items == 0) continue;
      run.store->table(0).SampleInto({.count = 4, .deadline = Soon()}, sample);
    }
  };
  std::thread first(write, 0);
  std::thread second(write, 1);
  std::thread reader(read);
  std::string previous;
  for (int i = 0; i < 5; ++i) {
    const std::string path = folder / std::to_string(i);
    const ReplayCheckpoint cut(*run.store);
    cut.Write(path, previous);
    previous = path;

    Stream loaded(run.options);
    ReplayCheckpoint::Load(path, *loaded.store);
    const std::int64_t ahead =
        loaded.store->table(0).info().items - loaded.store->table(1).info().items;
    EXPECT_GE(ahead, 0);
    EXPECT_LE(ahead, 2);
    if (loaded.store->table(0).info().items == 0) continue;
    Sample sample;
    loaded.store->table(0).SampleInto({.count = 100, .deadline = Soon()}, sample);
    SliceReader values(SmallItems());
    for (int item = 0; item < sample.size(); ++item) {
      const StridedView rows = values.Find(loaded.store->chunks(), sample.slices(item, 1)[0], 1);
      std::int64_t value = 0;
      std::memcpy(&value, rows.data, 8);
      EXPECT_EQ(1.0 + static_cast<double>(value), sample.items()[item].priority);
    }
  }
  stop = true;
  first.join();
  second.join();
  reader.join();
}

// Items of six columns. Prints for how long everybody else waits.
TEST(ReplayCheckpointTest, SlowAMillionItemsAreCutAtOnce) {
  const Folder folder;
  ReplayStoreOptions options = OnlyByItems(1'000'000);
  options.tables.pop_back();
  options.tables[0].bytes_max = std::size_t{1} << 28;
  options.tables[0].sampler.kind = SelectorKind::kUniform;
  std::vector<ItemColumn>& columns = options.tables[0].items.columns;
  for (const char* name : {"a", "b", "c", "d"}) columns.push_back({.name = name, .leaf = "value"});
  ReplayStore store(options);
  const auto writer = store.NewWriter(SmallItems().steps, {.chunk_steps = 64, .history = 64});
  for (std::int64_t value = 0; value < 1'000'000; ++value) {
    const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
    const std::int64_t step = writer->Append({&leaf, 1}, 0);
    writer->Add(store.table(0), 1.0,
                std::vector<StepRange>(columns.size(), {.first = step, .count = 1}));
    if (step % 64 == 63) writer->Flush(Soon());
  }
  std::string text;
  for (int i = 0; i < 5; ++i) {
    const ReplayCheckpoint cut(store);
    const Stopwatch watch;
    const std::string path = folder / std::to_string(i);
    const auto written = cut.Write(path, i == 0 ? "" : folder / std::to_string(i - 1));
    text +=
        fmt::format("  pause {:.1f} ms, write {:.2f} s, {} of {} chunks new\n",
                    1e3 * cut.pause_seconds(), watch.seconds(), written.chunks_new, written.chunks);
    EXPECT_EQ(written.chunks, 1'000'000U / 64);
  }
  ReplayStore loaded(options);
  const Stopwatch watch;
  ReplayCheckpoint::Load(folder / "4", loaded);
  EXPECT_EQ(loaded.table(0).info().items, 1'000'000);
  std::printf("%s  load %.2f s\n", text.c_str(), watch.seconds());
}

}  // namespace
}  // namespace menger
