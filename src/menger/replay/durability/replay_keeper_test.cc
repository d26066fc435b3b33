#include "menger/replay/durability/replay_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/durability/journal_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing_checkpoints::TwoTables;
using testing_journals::Drain;
using testing_journals::Drained;
using testing_journals::FlipBit;
using testing_journals::Folder;
using testing_journals::Held;
using testing_journals::Stream;
using testing_tables::ErrorText;
using testing_tables::Now;
using testing_tables::Soon;

DurabilityOptions In(const Folder& folder, Durability kind = Durability::kJournal) {
  return {.kind = kind, .folder = folder / "kept", .checkpoint_every = std::chrono::hours(24)};
}

void AppendSteps(Stream& run, int count) {
  for (int i = 0; i < count; ++i) run.Step();
}

// What a store has that is kept in the folder.
std::vector<double> Reopened(const Folder& folder, const ReplayStoreOptions& options) {
  ReplayStore store(Drained(options));
  { const ReplayKeeper keeper(store, In(folder, Durability::kCheckpoint)); }
  return Drain(store);
}

TEST(ReplayKeeperTest, AJournaledStoreComesBackAgainAndAgain) {
  const Folder folder;
  std::vector<double> held;
  Stream run(TwoTables());
  for (int life = 0; life < 4; ++life) {
    run.Open();
    {
      ReplayKeeper keeper(*run.store, In(folder));
      if (life > 0) {
        EXPECT_TRUE(Held(run.options, *run.store, folder / "held") == held);
      }
      AppendSteps(run, 500);
      if (life % 2 == 0) keeper.Checkpoint(Soon());
      AppendSteps(run, 500);
    }
    held = Held(run.options, *run.store, folder / "held");
  }
  EXPECT_TRUE(Reopened(folder, run.options) == held);
}

TEST(ReplayKeeperTest, WhatWasSyncedIsThereWhileTheKeeperGoesOn) {
  for (const Durability kind : {Durability::kCheckpoint, Durability::kJournal}) {
    const Folder folder;
    Stream run(TwoTables());
    ReplayKeeper keeper(*run.store, In(folder, kind));
    AppendSteps(run, 500);
    keeper.Sync(Soon());
    const std::vector<double> held = Held(run.options, *run.store, folder / "held");
    fs::copy(folder / "kept", folder / "copied", fs::copy_options::recursive);
    AppendSteps(run, 500);
    keeper.Checkpoint(Soon());
    ReplayStore store(Drained(run.options));
    const ReplayKeeper other(store, {.kind = kind, .folder = folder / "copied"});
    EXPECT_TRUE(Drain(store) == held);
  }
}

// Items of frames that compress: some name chunks that were compressed after they were journaled,
// some chunks that were compressed before.
TEST(ReplayKeeperTest, CompressedChunksAreKept) {
  const Folder folder;
  const Spec steps({LeafSpec::Box("frame", DataType::kUint8, {1000}, {0}, {255})});
  const ReplayStoreOptions options = {
      .tables = {
          {.name = "frames",
           .items = {.steps = steps, .columns = {{.name = "stack", .leaf = "frame", .rows = 4}}},
           .sampler = {.kind = SelectorKind::kFifo},
           .times_sampled_max = 1}}};
  constexpr int kSteps = 200;
  {
    ReplayStore store(options);
    ReplayKeeper keeper(store, In(folder));
    const auto writer = store.NewWriter(
        steps, {.chunk_steps = 16, .history = 40, .compression = Compression::kAutomatic});
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<std::byte> frame(1000, static_cast<std::byte>(step));
      const std::byte* const leaf = frame.data();
      writer->Append({&leaf, 1}, 0);
      if (step < 30) continue;
      const StepRange stack{.first = step - 30, .count = 4};
      writer->Add(store.table(0), 1.0, {&stack, 1});
      if (step % 7 == 0) writer->Flush(Soon());
      if (step % 50 == 0) keeper.Sync(Soon());
      if (step == 120) keeper.Checkpoint(Soon());
    }
    writer->Flush(Soon());
    EXPECT_LT(store.chunks().bytes_used(), 50'000);  // Of 200,000.
  }
  ReplayStore store(options);
  const ReplayKeeper keeper(store, In(folder));
  BatchGatherer gatherer(store.table(0).options().items, kSteps, 1);
  Sample sample;
  store.table(0).SampleInto({.count = kSteps - 30, .deadline = Soon()}, sample);
  const BatchColumn stacks = gatherer.Gather(sample)[0];
  for (int item = 0; item < kSteps - 30; ++item) {
    for (int i = 0; i < 4000; ++i) {
      ASSERT_EQ(static_cast<int>(stacks.data[item * 4000 + i]), item + i / 1000);
    }
  }
}

TEST(ReplayKeeperTest, ADamagedCheckpointLosesNothing) {
  const Folder folder;
  Stream run(TwoTables());
  {
    ReplayKeeper keeper(*run.store, In(folder));
    AppendSteps(run, 500);
    keeper.Checkpoint(Soon());
    AppendSteps(run, 500);
  }
  EXPECT_FALSE(fs::exists(folder / "kept/checkpoint-3"));
  const std::vector<double> held = Held(run.options, *run.store, folder / "held");
  FlipBit(folder / "kept/checkpoint-2/pack-0.bin", 100, 3);
  EXPECT_TRUE(Reopened(folder, run.options) == held);

  // The journal between them is needed then.
  FlipBit(folder / "kept/checkpoint-3/pack-0.bin", 100, 3);
  fs::remove(folder / "kept/journal-1.bin");
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { Reopened(folder, run.options); }),
              HasSubstr("checkpoint-3/pack-0.bin"));
}

TEST(ReplayKeeperTest, AJournalThatIsNotThereIsMissedWhereThereIsToBeOne) {
  const Folder folder;
  Stream run(TwoTables());
  {
    const ReplayKeeper keeper(*run.store, In(folder));
    AppendSteps(run, 500);
  }
  fs::remove(folder / "kept/journal-1.bin");
  testing::internal::CaptureStderr();
  run.Open();
  { const ReplayKeeper keeper(*run.store, In(folder)); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("journal-1.bin' is not there"));
  testing::internal::CaptureStderr();
  Reopened(folder, run.options);  // Kept by checkpoints, which need none.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ReplayKeeperTest, ADamagedJournalIsRefusedByName) {
  const Folder folder;
  Stream run(TwoTables());
  {
    const ReplayKeeper keeper(*run.store, In(folder));
    AppendSteps(run, 500);
  }
  const std::string path = folder / "kept/journal-1.bin";
  FlipBit(path, fs::file_size(path) / 2, 3);
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { Reopened(folder, run.options); }),
              AllOf(HasSubstr(path), HasSubstr("is damaged at byte")));
}

TEST(ReplayKeeperTest, ALongJournalMakesACheckpointAndOldFilesGo) {
  const Folder folder;
  Stream run(TwoTables());
  DurabilityOptions options = In(folder);
  options.journal_bytes_max = 20'000;
  {
    ReplayKeeper keeper(*run.store, options);
    while (fs::exists(folder / "kept/journal-3.bin") || !fs::exists(folder / "kept/checkpoint-5")) {
      AppendSteps(run, 50);
      keeper.Sync(Soon());
    }
  }
  std::ptrdiff_t checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(folder / "kept"))
    checkpoints += entry.is_directory();
  EXPECT_LE(checkpoints, 2);
  EXPECT_TRUE(Reopened(folder, run.options) == Held(run.options, *run.store, folder / "held"));
}

TEST(ReplayKeeperTest, SmallerTablesMayGoOnWithAJournal) {
  const Folder folder;
  ReplayStoreOptions options = TwoTables();
  Stream run(options);
  {
    const ReplayKeeper keeper(*run.store, In(folder));
    AppendSteps(run, 2000);
  }
  const std::int64_t inserts = run.store->table(0).info().inserts;
  options.tables[0].items_max = 10;
  ReplayStore store(options);
  const ReplayKeeper keeper(store, In(folder));
  EXPECT_EQ(store.table(0).info().items, 10);
  EXPECT_EQ(store.table(0).info().inserts, inserts);
}

TEST(ReplayKeeperTest, CheckpointsAreMadeByThemselves) {
  const Folder folder;
  Stream run(TwoTables());
  DurabilityOptions options = In(folder, Durability::kCheckpoint);
  options.checkpoint_every = std::chrono::milliseconds(20);
  ReplayKeeper keeper(*run.store, options);
  keeper.Checkpoint(Soon());
  const Deadline deadline = Soon();
  while (!fs::exists(folder / "kept/checkpoint-6") && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(deadline.expired());
}

TEST(ReplayKeeperTest, AFallBackAcrossASmallerTableCountsWhatItEvictedOnce) {
  const Folder folder;
  Stream run(TwoTables());
  const ReplayStoreOptions large = run.options;
  {
    ReplayKeeper keeper(*run.store, In(folder));
    AppendSteps(run, 500);
  }
  ReplayStoreOptions small = large;
  for (TableOptions& table : small.tables) table.items_max = 10;
  std::vector<double> held;
  {
    ReplayStore store(small);
    const ReplayKeeper keeper(store, In(folder));
    held = Held(small, store, folder / "held");
  }
  FlipBit(folder / "kept/checkpoint-2/pack-0.bin", 100, 3);
  EXPECT_TRUE(Reopened(folder, small) == held);
}

TEST(ReplayKeeperTest, WhatCannotBeIsRefused) {
  const Folder folder;
  Stream run(TwoTables());
  ReplayKeeper none(*run.store, {});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { none.Sync(Soon()); }),
              HasSubstr("durability is none"));
  ReplayKeeper keeper(*run.store, In(folder));
  Stream other(TwoTables());
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] { const ReplayKeeper second(*other.store, In(folder)); }),
              HasSubstr("another process keeps"));
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { keeper.Checkpoint(Now()); }),
              HasSubstr("not done in time"));
  DurabilityOptions wrong = In(folder);
  wrong.loss_max = std::chrono::nanoseconds(0);
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                        [&] { const ReplayKeeper keeper_of_wrong(*other.store, wrong); }),
              HasSubstr("durability.loss_max"));
}

// Inserters, a reader that changes priorities, and checkpoints at once.
TEST(ReplayKeeperTest, AStoreInUseIsKept) {
  const Folder folder;
  Stream run(TwoTables());
  DurabilityOptions options = In(folder);
  options.loss_max = std::chrono::milliseconds(100);
  options.checkpoint_every = std::chrono::milliseconds(20);
  {
    ReplayKeeper keeper(*run.store, options);
    std::atomic<bool> stop = false;
    const auto write = [&](int index) {
      TrajectoryWriter& writer = *run.writers[index];
      for (std::int64_t value = 0; !stop; ++value) {
        const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
        const std::int64_t step = writer.Append({&leaf, 1}, 0);
        const std::vector<StepRange> columns(2, {.first = step, .count = 1});
        for (int i = 0; i < 2; ++i) writer.Add(run.store->table(i), 1.0, columns);
        writer.Flush(Soon());
      }
    };
    std::thread first(write, 0);
    std::thread second(write, 1);
    for (int i = 0; i < 50; ++i) {
      run.Draw(0, 8);
      std::vector<PriorityUpdate> updates;
      for (const ItemKey& key : run.drawn) updates.push_back({.key = key, .priority = 2.0});
      run.store->table(0).UpdatePriorities(updates);
      keeper.Sync(Soon());
    }
    stop = true;
    first.join();
    second.join();
  }
  EXPECT_TRUE(Reopened(folder, run.options) == Held(run.options, *run.store, folder / "held"));
}

}  // namespace
}  // namespace menger
