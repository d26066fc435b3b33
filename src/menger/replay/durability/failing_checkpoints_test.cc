// What a keeper does while its checkpoints cannot be written, though its journal can.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/durability/journal_testing.h"
#include "menger/replay/durability/replay_keeper.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing_checkpoints::TwoTables;
using testing_journals::Drain;
using testing_journals::Drained;
using testing_journals::Folder;
using testing_journals::Held;
using testing_journals::Stream;
using testing_tables::ErrorText;
using testing_tables::Soon;

constexpr std::uint64_t kJournalBytes = 100'000;  // A group has 30,000 at most.

DurabilityOptions In(const Folder& folder, Durability kind = Durability::kJournal) {
  return {.kind = kind,
          .folder = folder / "kept",
          .checkpoint_every = std::chrono::hours(24),
          .journal_bytes_max = kJournalBytes,
          .loss_max = std::chrono::milliseconds(200)};
}

// Takes the names of the checkpoints to come, so that none of them can be made.
class Obstacles {
 public:
  explicit Obstacles(const std::string& kept) : kept_(kept) {
    for (int number = 2; number < 100; ++number) fs::create_directory(Path(number));
  }
  void Remove() {
    for (int number = 2; number < 100; ++number) fs::remove(Path(number));
  }

 private:
  std::string Path(int number) const { return kept_ + "/checkpoint-" + std::to_string(number); }

  const std::string kept_;
};

std::uint64_t JournalBytes(const Folder& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder / "kept")) {
    if (entry.path().extension() == ".bin") bytes += entry.file_size();
  }
  return bytes;
}

// What comes back if the process ends now.
std::vector<double> Reopened(const Folder& folder, const ReplayStoreOptions& options) {
  fs::remove_all(folder / "copied");
  fs::copy(folder / "kept", folder / "copied", fs::copy_options::recursive);
  ReplayStore store(Drained(options));
  { const ReplayKeeper keeper(store, {.kind = Durability::kJournal, .folder = folder / "copied"}); }
  return Drain(store);
}

// Inserts until that is refused, and returns why. A test has few tries of 200 ms each: a disk that
// others use may be what the others waited for.
std::string InsertUntilFull(Stream& run) {
  TrajectoryWriter& writer = *run.writers[0];
  std::string why;
  for (int patience = 0; patience < 100;) {
    run.Append(0);
    const std::vector<StepRange> last(2, {.first = writer.steps() - 1, .count = 1});
    for (int i = 0; i < 2; ++i) writer.Add(run.store->table(i), 1.0, last);
    try {
      writer.Flush(Deadline::After(std::chrono::milliseconds(200)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      why = error.what();
      if (why.find("journal_bytes_max") != std::string::npos) break;
      ++patience;
    }
  }
  return why;
}

TEST(FailingCheckpointsTest, TheJournalIsBoundedAndSaysWhyUntilOneSucceeds) {
  const Folder folder;
  Stream run(TwoTables());
  std::vector<double> held;
  {
    ReplayKeeper keeper(*run.store, In(folder));
    Obstacles obstacles(folder / "kept");
    EXPECT_THAT(InsertUntilFull(run),
                AllOf(HasSubstr("table '"), HasSubstr(folder / "kept"),
                      HasSubstr("since checkpoint 1"), HasSubstr("journal_bytes_max = 100000"),
                      HasSubstr("checkpoint-"), HasSubstr("exists")));
    const std::uint64_t bytes = JournalBytes(folder);
    EXPECT_GE(bytes, 3 * kJournalBytes);
    EXPECT_LT(bytes, 4 * kJournalBytes);

    // All of it is there, and comes back.
    EXPECT_TRUE(Reopened(folder, run.options) == Held(run.options, *run.store, folder / "held"));

    // Readers go on, and the journal stays as it is, through other tries.
    for (int i = 0; i < 30; ++i) {
      run.Draw(0, 8);
      std::vector<PriorityUpdate> updates;
      for (const ItemKey& key : run.drawn) updates.push_back({.key = key, .priority = 2.0});
      run.store->table(0).UpdatePriorities(updates);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { keeper.Sync(Soon()); }),
                HasSubstr("journal_bytes_max = 100000"));
    EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { keeper.Checkpoint(Soon()); }),
                HasSubstr("exists"));
    EXPECT_EQ(JournalBytes(folder), bytes);

    obstacles.Remove();
    run.writers[0]->Flush(Soon());  // Waits for another try, which nobody asked for.
    for (int i = 0; i < 2000; ++i) run.Step();
    keeper.Sync(Soon());
    held = Held(run.options, *run.store, folder / "held");
    EXPECT_TRUE(Reopened(folder, run.options) == held);
    keeper.Checkpoint(Soon());
    keeper.Checkpoint(Soon());
    EXPECT_FALSE(fs::exists(folder / "kept/journal-1.bin"));
    EXPECT_LT(JournalBytes(folder), kJournalBytes);
    EXPECT_TRUE(Reopened(folder, run.options) == held);
  }
  EXPECT_TRUE(Reopened(folder, run.options) == held);
}

// The keeper ends, as a rule, before its journal goes on from the checkpoint made beside it.
TEST(FailingCheckpointsTest, WhatChangesAfterACheckpointThatEndedTheWaitIsKept) {
  const Folder folder;
  Stream run(TwoTables());
  DurabilityOptions options = In(folder);
  options.journal_bytes_max = 1'000;
  for (int life = 0; life < 5; ++life) {
    run.Open();
    fs::remove_all(folder / "kept");
    {
      ReplayKeeper keeper(*run.store, options);
      Obstacles obstacles(folder / "kept");
      InsertUntilFull(run);
      obstacles.Remove();
      keeper.Checkpoint(Soon());
      const ItemKey key{.number = 1, .slot = 0};
      run.store->table(0).Delete({&key, 1});  // Or counted as one that is gone.
    }
    ASSERT_TRUE(Reopened(folder, run.options) == Held(run.options, *run.store, folder / "held"))
        << life;
  }
}

TEST(FailingCheckpointsTest, AnotherIsTriedSoon) {
  const Folder folder;
  Stream run(TwoTables());
  ReplayKeeper keeper(*run.store, In(folder, Durability::kCheckpoint));
  fs::create_directory(folder / "kept/checkpoint-2");
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { keeper.Checkpoint(Soon()); }),
              HasSubstr("exists"));
  const Deadline deadline = Soon();
  while (!fs::exists(folder / "kept/checkpoint-3") && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(deadline.expired());
}

}  // namespace
}  // namespace menger
