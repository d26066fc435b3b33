// Where streams stand comes back with the items, so that those that are sent again are taken once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/durability/checkpoint.h"
#include "menger/replay/durability/chunk_pack.h"
#include "menger/replay/durability/journal_testing.h"
#include "menger/replay/durability/replay_journal.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_journals::Folder;
using testing_tables::ErrorText;
using testing_tables::Now;
using testing_tables::OneRow;
using testing_tables::SmallItems;
using testing_tables::SmallTable;
using testing_tables::Soon;

constexpr std::uint64_t kStreams = 5;
constexpr std::chrono::hours kNeverWaits(1);

ReplayStoreOptions Queues() {
  TableOptions a = SmallTable();
  a.name = "a";
  a.sampler.kind = SelectorKind::kFifo;
  a.times_sampled_max = 1;
  TableOptions b = a;
  b.name = "b";
  return {.tables = {a, b}};
}

// An item as its row and its priority tell it.
std::int64_t NameOf(std::uint64_t stream, std::uint64_t sequence) {
  return static_cast<std::int64_t>(1'000 * stream + sequence);
}

// Inserts the items `first` to `last` of a stream, in rows of their own, as if they had come now.
void Send(ReplayStore& store, int table, std::uint64_t stream, std::uint64_t first,
          std::uint64_t last, const Deadline& deadline = Soon()) {
  static const ChunkLayout layout(SmallItems().steps, /*capacity=*/1);
  HeldChunks held(store.chunks());
  std::vector<ItemDraft> drafts;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    const std::int64_t name = NameOf(stream, sequence);
    const ChunkId chunk = held.chunks.emplace_back(store.chunks().Allocate(layout));
    std::memcpy(store.chunks().Data(chunk, 0), &name, sizeof name);
    store.chunks().Publish(chunk, 1);
    drafts.push_back(OneRow(chunk, 0, static_cast<double>(name)));
    drafts.back().sequence = sequence;
  }
  store.table(table).Insert(drafts, deadline, nullptr, stream);
}

// Where all streams stand in all tables, and their counts.
std::vector<std::uint64_t> Standing(ReplayStore& store) {
  std::vector<std::uint64_t> standing;
  for (int table = 0; table < store.tables(); ++table) {
    const TableInfo info = store.table(table).info();
    for (const std::int64_t count : {info.items, info.inserts, info.deletes, info.repeated}) {
      standing.push_back(static_cast<std::uint64_t>(count));
    }
    for (std::uint64_t stream = 1; stream <= kStreams; ++stream) {
      standing.push_back(store.table(table).LastOf(stream));
    }
  }
  return standing;
}

// Sends again what no item of the store shows; empties it. Each item of each stream was taken once,
// in order, and the newest are there.
void ExpectEachOnce(ReplayStore& store) {
  for (int table = 0; table < store.tables(); ++table) {
    for (std::uint64_t stream = 1; stream < kStreams; ++stream) {
      const std::uint64_t last = store.table(table).LastOf(stream);
      Send(store, table, stream, 1, last + 2);
    }
    std::vector<std::uint64_t> next(kStreams + 1);
    Sample sample;
    const auto count = static_cast<int>(store.table(table).info().items);
    store.table(table).SampleInto({.count = count, .deadline = Soon()}, sample);
    SliceReader reader(SmallItems());
    for (int i = 0; i < sample.size(); ++i) {
      const auto name = static_cast<std::int64_t>(sample.items()[i].priority);
      std::int64_t row = 0;
      std::memcpy(&row, reader.Find(store.chunks(), sample.slices(i, 0)[0], 0).data, sizeof row);
      ASSERT_EQ(row, name);
      const auto stream = static_cast<std::uint64_t>(name / 1'000);
      const auto sequence = static_cast<std::uint64_t>(name % 1'000);
      if (stream == kStreams) continue;  // It is forgotten now and then.
      ASSERT_TRUE(next[stream] == 0 || sequence == next[stream])
          << sequence << " of stream " << stream << " after " << next[stream] - 1;
      next[stream] = sequence + 1;
    }
    for (std::uint64_t stream = 1; stream < kStreams; ++stream) {
      ASSERT_EQ(next[stream], store.table(table).LastOf(stream) + 1);
    }
  }
}

// A store that is journaled from its begin on, in checkpoint 1 and journal 1, and writers that send
// their items again from some number on.
struct Kept {
  explicit Kept(std::chrono::nanoseconds loss_max = kNeverWaits) {
    const ReplayCheckpoint base(store);
    base.Write(folder / "checkpoint-1");
    journal = std::make_unique<ReplayJournal>(store, folder / "", loss_max, base, 1);
  }

  void Step() {
    const auto index = static_cast<int>(random.Integers(0, 2));
    Table& table = store.table(index);
    const std::int64_t kind = random.Integers(0, 10);
    if (kind == 0 && table.info().items > 5) {
      Sample sample;
      table.SampleInto({.count = 2, .deadline = Soon()}, sample);
    } else if (kind == 1) {
      table.Forget(kStreams);
    } else {
      const auto stream = static_cast<std::uint64_t>(random.Integers(1, kStreams + 1));
      const std::uint64_t last = table.LastOf(stream);
      const auto back = static_cast<std::uint64_t>(random.Integers(0, 4));
      Send(store, index, stream, last + 1 - std::min(last, back), last + 2);
    }
  }
  void Steps(int count) {
    for (; count > 0; --count) Step();
  }

  // Calls `look` with what the checkpoint and journals up to `last` tell.
  void Recover(std::uint64_t checkpoint, std::uint64_t last, auto look) const {
    std::vector<JournalFile> files;
    for (std::uint64_t i = checkpoint; i <= last; ++i) {
      files.push_back({.path = JournalPath(folder / "", i), .number = i});
    }
    ReplayStore recovered(Queues());
    ReplayCheckpoint::Load(folder / ("checkpoint-" + std::to_string(checkpoint)), recovered, {},
                           files);
    look(recovered);
  }
  void ExpectRecovers(std::uint64_t checkpoint, std::uint64_t last,
                      const std::vector<std::uint64_t>& standing) const {
    Recover(checkpoint, last, [&](ReplayStore& recovered) {
      EXPECT_EQ(Standing(recovered), standing);
      ExpectEachOnce(recovered);
    });
  }

  Folder folder;
  ReplayStore store{Queues()};
  std::unique_ptr<ReplayJournal> journal;
  Random random = Random::FromSeed(12);
};

TEST(StreamRecoveryTest, ACheckpointBringsThemBack) {
  Kept kept;
  for (std::uint64_t number = 2; number < 6; ++number) {
    kept.Steps(40);
    const std::string folder = kept.folder / ("checkpoint-" + std::to_string(number));
    ReplayCheckpoint(kept.store).Write(folder);
    kept.ExpectRecovers(number, 0, Standing(kept.store));
  }
  EXPECT_GT(kept.store.table(0).info().repeated, 0);
}

TEST(StreamRecoveryTest, AJournalThatIsCutAnywhereTellsOfItemsAndStreamsOfOneMoment) {
  Kept kept;
  std::vector<std::vector<std::uint64_t>> standing = {Standing(kept.store)};
  std::vector<std::uint64_t> ends = {0};
  for (int group = 0; group < 4; ++group) {
    kept.Steps(3);
    kept.journal->Write();
    standing.push_back(Standing(kept.store));
    ends.push_back(kept.journal->segment_bytes());
  }
  const std::string path = JournalPath(kept.folder / "", 1);
  std::size_t group = standing.size() - 1;
  for (std::uint64_t size = fs::file_size(path); size-- > 0;) {
    fs::resize_file(path, size);
    while (group > 0 && size < ends[group]) --group;
    kept.ExpectRecovers(1, 1, standing[group]);
    ASSERT_FALSE(testing::Test::HasFailure()) << size;
  }
}

TEST(StreamRecoveryTest, EachSegmentGoesOnFromItsCheckpoint) {
  Kept kept;
  for (std::uint64_t number = 2; number <= 5; ++number) {
    kept.Steps(20);
    kept.journal->Write();
    kept.Steps(20);
    const std::string folder = kept.folder / ("checkpoint-" + std::to_string(number));
    if (number % 2 == 0) {
      const auto cut = kept.journal->Cut(number);
      kept.Steps(20);
      cut->Write(folder);
    } else {  // The next group tells of what came before this cut, too.
      const ReplayCheckpoint cut(kept.store);
      kept.Steps(20);
      cut.Write(folder);
      kept.journal->GoOnFrom(cut, number);
    }
    kept.Steps(20);
  }
  kept.journal->End();
  EXPECT_GT(kept.store.table(0).info().repeated, 0);
  for (std::uint64_t first = 1; first <= 5; ++first) {
    SCOPED_TRACE(first);
    kept.ExpectRecovers(first, 5, Standing(kept.store));
  }
}

TEST(StreamRecoveryTest, StreamsThatDidNotInsertAreNotWrittenAgain) {
  Kept kept;
  const auto bytes_of = [&](auto change) {
    const std::uint64_t before = kept.journal->segment_bytes();
    change();
    kept.journal->Write();
    return kept.journal->segment_bytes() - before;
  };
  const std::uint64_t all = bytes_of([&] {
    for (std::uint64_t stream = 1; stream <= 1'000; ++stream) Send(kept.store, 0, stream, 1, 1);
  });
  EXPECT_GT(all, 1'000 * sizeof(InsertStreamEnd));
  EXPECT_LT(bytes_of([&] { Send(kept.store, 0, 500, 2, 2); }), 1'000U);
  EXPECT_LT(bytes_of([&] { kept.store.table(0).Forget(7); }), 1'000U);
  EXPECT_EQ(bytes_of([&] { kept.store.table(0).Forget(7); }), 0U);
  kept.Recover(1, 1, [](ReplayStore& recovered) {
    const Table& table = recovered.table(0);
    EXPECT_EQ(table.LastOf(6), 1U);
    EXPECT_EQ(table.LastOf(7), 0U);
    EXPECT_EQ(table.LastOf(500), 2U);
    EXPECT_EQ(table.LastOf(1'000), 1U);
  });
}

TEST(StreamRecoveryTest, WhatIsPassedOverDoesNotWaitForTheDisk) {
  Kept kept(std::chrono::milliseconds(20));
  const auto open = [&] {
    kept.journal->Write();
    kept.journal->Sync();
  };
  while (kept.store.table(0).LastOf(1) == 0) {
    open();
    try {
      Send(kept.store, 0, 1, 1, 1, Now());
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  Send(kept.store, 0, 1, 1, 1, Now());
  EXPECT_THAT(ErrorText(ErrorCode::kDeadlineExceeded, [&] { Send(kept.store, 0, 1, 1, 2, Now()); }),
              HasSubstr("item 2 of 2"));
}

}  // namespace
}  // namespace menger
