#include "menger/replay/durability/replay_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/journal_testing.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_checkpoints::TwoTables;
using testing_journals::FlipBit;
using testing_journals::Folder;
using testing_journals::Recovered;
using testing_journals::Stream;
using testing_tables::ErrorText;
using testing_tables::Now;
using testing_tables::Soon;

constexpr std::chrono::hours kNeverWaits(1);

// A store that is journaled from its begin on, in checkpoint 1 and journal 1.
struct Journaled {
  explicit Journaled(const ReplayStoreOptions& options = TwoTables(),
                     std::chrono::nanoseconds loss_max = kNeverWaits)
      : run(options) {
    const ReplayCheckpoint base(*run.store);
    base.Write(folder / "checkpoint-1");
    journal = std::make_unique<ReplayJournal>(*run.store, folder / "", loss_max, base, 1);
  }

  std::vector<JournalFile> Files(std::uint64_t first, std::uint64_t last) const {
    std::vector<JournalFile> files;
    for (std::uint64_t i = first; i <= last; ++i) {
      files.push_back({.path = JournalPath(folder / "", i), .number = i});
    }
    return files;
  }
  std::vector<double> Recover(std::uint64_t checkpoint = 1, std::uint64_t last = 1) const {
    return Recovered(run.options, folder / ("checkpoint-" + std::to_string(checkpoint)),
                     Files(checkpoint, last));
  }
  std::vector<double> Held() const {
    return testing_journals::Held(run.options, *run.store, folder / "held");
  }

  Folder folder;
  Stream run;
  std::unique_ptr<ReplayJournal> journal;
};

TEST(ReplayJournalTest, WhatIsRecoveredIsWhatTheTablesHeldAtTheLastWrite) {
  for (int kind = 0; kind <= static_cast<int>(SelectorKind::kPrioritised); ++kind) {
    SCOPED_TRACE(kind);
    Journaled kept(TwoTables(static_cast<SelectorKind>(kind), static_cast<SelectorKind>(kind)));
    for (int i = 0; i < 2'000; ++i) {
      kept.run.Step();
      if (kept.run.random.Integers(0, 20) > 0) continue;
      kept.journal->Write();
      if (i % 10 == 0) kept.journal->Sync();
      if (i % 50 == 0) {
        ASSERT_TRUE(kept.Recover() == kept.Held()) << i;
      }
    }
    kept.journal->End();
    EXPECT_TRUE(kept.Recover() == kept.Held());
    EXPECT_GT(kept.run.store->table(0).info().evicted, 0);
  }
}

// Told item by item.
TEST(ReplayJournalTest, InsertsUpdatesAndRemovalsComeBack) {
  Journaled kept;
  Table& table = kept.run.store->table(0);
  for (int i = 0; i < 3; ++i) {
    kept.run.Append(0);
    kept.run.Insert(0, 1.0 + i);
  }
  kept.journal->Write();
  const ItemKey first{.number = 1, .slot = 0};
  const ItemKey second{.number = 2, .slot = 1};
  table.UpdatePriorities(std::vector<PriorityUpdate>{{.key = second, .priority = 9}});
  table.Delete({&first, 1});
  table.Delete({&first, 1});
  kept.journal->Write();
  const std::vector<double> seen = kept.Recover();
  // items, inserts, samples, deletes, evicted, dropped, stale keys; then number, slot, 0, versions,
  // priority, rows of "stack", row of "last".
  const std::vector<double> expected = {2, 3, 0, 1, 0, 0, 1,        //
                                        2, 1, 0, 0, 0, 9, 0, 1, 1,  //
                                        3, 2, 0, 0, 0, 3, 0, 1, 2, 2};
  ASSERT_GE(seen.size(), expected.size());
  EXPECT_EQ(std::vector<double>(seen.begin(), seen.begin() + std::ssize(expected)), expected);
}

TEST(ReplayJournalTest, WhatCameAndWentBetweenTwoWritesIsNotWritten) {
  Journaled kept;
  kept.journal->Write();
  const auto rest = [&](int items) {
    const std::uint64_t before = kept.journal->segment_bytes();
    for (int i = 0; i < items; ++i) {
      for (int row = 0; row < 8; ++row) kept.run.Append(0);
      kept.run.Insert(0, 1.0);
    }
    kept.journal->Write();
    return kept.journal->segment_bytes() - before;
  };
  rest(300);
  // No more than 200 items of one table and 20 of the other have room.
  EXPECT_LT(rest(5'000), rest(200) * 5 / 4);
  const std::uint64_t before = kept.journal->segment_bytes();
  kept.journal->Write();
  EXPECT_EQ(kept.journal->segment_bytes(), before);
}

TEST(ReplayJournalTest, AJournalThatIsCutAnywhereGivesTheLastWholeGroup) {
  Journaled kept;
  std::vector<std::vector<double>> states = {kept.Recover()};
  std::vector<std::uint64_t> ends = {0};
  for (int group = 0; group < 6; ++group) {
    for (int i = 0; i < 3; ++i) {
      kept.run.Append(0);
      kept.run.Insert(0, 1.0 + group);
    }
    kept.run.Draw(1, 4);
    kept.journal->Write();
    states.push_back(kept.Held());
    ends.push_back(kept.journal->segment_bytes());
  }
  const std::string path = kept.Files(1, 1)[0].path;
  std::size_t group = states.size() - 1;
  for (std::uint64_t size = fs::file_size(path); size-- > 0;) {
    fs::resize_file(path, size);
    while (group > 0 && size < ends[group]) --group;
    ASSERT_TRUE(kept.Recover() == states[group]) << size;
  }
}

TEST(ReplayJournalTest, AFlippedBitIsFoundOrCostsNothingThatWasSynced) {
  Journaled kept;
  for (int group = 0; group < 3; ++group) {
    for (int i = 0; i < 3; ++i) {
      kept.run.Append(0);
      kept.run.Insert(0, 1.0 + group);
    }
    kept.journal->Write();
    kept.journal->Sync();
  }
  const std::vector<double> held = kept.Held();
  const std::string path = kept.Files(1, 1)[0].path;
  for (std::uint64_t byte = 0; byte < fs::file_size(path); ++byte) {
    FlipBit(path, byte, static_cast<int>(byte % 8));
    const bool in_last_mark = byte + 56 >= fs::file_size(path);
    if (in_last_mark) {
      ASSERT_TRUE(kept.Recover() == held);
    } else {
      ASSERT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { kept.Recover(); }),
                  AllOf(HasSubstr(path), Not(HasSubstr("another code"))));
    }
    FlipBit(path, byte, static_cast<int>(byte % 8));
  }
}

TEST(ReplayJournalTest, ASegmentGoesOnFromTheCheckpointOfTheSameMoment) {
  Journaled kept;
  const auto some = [&] {
    for (int i = 0; i < 500; ++i) kept.run.Step();
  };
  for (std::uint64_t number = 2; number <= 4; ++number) {
    some();
    kept.journal->Write();
    some();
    const auto cut = kept.journal->Cut(number);
    some();  // Before it is written.
    kept.journal->Write();
    cut->Write(kept.folder / ("checkpoint-" + std::to_string(number)),
               kept.folder / ("checkpoint-" + std::to_string(number - 1)));
  }
  some();
  kept.journal->End();
  const std::vector<double> held = kept.Held();
  for (std::uint64_t first = 1; first <= 4; ++first) {
    EXPECT_TRUE(kept.Recover(first, 4) == held) << first;
  }
  // A segment that lost its end is not followed by another.
  const std::string path = kept.Files(2, 2)[0].path;
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { kept.Recover(1, 4); }),
              AllOf(HasSubstr(path), HasSubstr("without its last frame")));
  EXPECT_TRUE(kept.Recover(3, 4) == held);
}

TEST(ReplayJournalTest, InsertsWaitWhileTheDiskIsBehind) {
  Journaled kept(TwoTables(), std::chrono::milliseconds(20));
  kept.run.Append(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  const std::vector<StepRange> columns(2, {.first = 0, .count = 1});
  kept.run.writers[0]->Add(kept.run.store->table(0), 1.0, columns);
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { kept.run.writers[0]->Flush(Now()); }),
              HasSubstr("the journal has not yet brought to the disk"));
  std::thread inserter([&] { kept.run.writers[0]->Flush(Soon()); });
  while (kept.run.store->table(0).info().inserts == 0) {
    kept.journal->Write();
    kept.journal->Sync();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  inserter.join();
}

TEST(ReplayJournalTest, ADiskThatNeedsLongerThanIsPromisedSlowsInsertsAndEndsThemNot) {
  Journaled kept(TwoTables(), std::chrono::milliseconds(20));
  kept.run.Append(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  const std::vector<StepRange> columns(2, {.first = 0, .count = 1});
  kept.run.writers[0]->Add(kept.run.store->table(0), 1.0, columns);
  std::thread inserter([&] { kept.run.writers[0]->Flush(Soon()); });
  for (int i = 0; i < 1000 && kept.run.store->table(0).info().inserts == 0; ++i) {
    kept.journal->Write();
    std::this_thread::sleep_for(std::chrono::milliseconds(25));  // The disk.
    kept.journal->Sync();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(kept.run.store->table(0).info().inserts, 1);
  inserter.join();
}

// Files of this process cannot grow beyond `bytes` meanwhile: as a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(std::uint64_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(ReplayJournalTest, AFullDiskRefusesInsertsAndKeepsWhatWasThere) {
  Journaled kept;
  kept.run.Append(0);
  kept.run.Insert(0, 1.0);
  kept.journal->Write();
  kept.journal->Sync();
  const std::vector<double> held = kept.Held();
  kept.run.Append(0);
  kept.run.Insert(0, 1.0);
  const auto full = AllOf(HasSubstr("journal-1.bin"), HasSubstr("File too large"));
  {
    const FullDisk disk(kept.journal->segment_bytes() + 100);
    EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { kept.journal->Write(); }), full);
  }
  EXPECT_TRUE(kept.journal->failed());
  EXPECT_THAT(ErrorText(ErrorCode::kUnavailable, [&] { kept.run.Insert(0, 1.0); }), full);
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { kept.journal->Write(); }), full);
  EXPECT_TRUE(kept.Recover() == held);
  kept.run.Draw(0, 1);  // Readers go on.
}

TEST(ReplayJournalTest, OtherTablesAreRefused) {
  Journaled kept;
  kept.run.Append(0);
  kept.run.Insert(0, 1.0);
  kept.journal->Write();
  const std::string path = kept.Files(1, 1)[0].path;
  ReplayStoreOptions options = kept.run.options;
  options.tables.pop_back();
  const ReplayStore one(options);
  ReplayCheckpoint(one).Write(kept.folder / "one");
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss,
                        [&] { Recovered(options, kept.folder / "one", kept.Files(1, 1)); }),
              AllOf(HasSubstr(path), HasSubstr("table 'b'"), Not(HasSubstr("another code"))));
}

}  // namespace
}  // namespace menger
