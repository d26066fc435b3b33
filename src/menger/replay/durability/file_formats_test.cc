// docs/replay_files.md: the sizes that it tells, and files of versions that it does not know.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/error.h"
#include "menger/base/frame_file.h"
#include "menger/base/plain_bytes.h"
#include "menger/replay/durability/checkpoint_testing.h"
#include "menger/replay/durability/chunk_pack.h"
#include "menger/replay/durability/journal_group.h"
#include "menger/replay/durability/replay_journal.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/item_pool.h"
#include "menger/replay/table_content.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing_checkpoints::Folder;
using testing_checkpoints::Stream;
using testing_checkpoints::TwoTables;
using testing_tables::ErrorText;

TEST(FileFormatsTest, PlainBytesHaveTheSizesThatAreDocumented) {
  EXPECT_EQ(sizeof(ChunkIdentity), 16U);
  EXPECT_EQ(sizeof(Item), 48U);
  EXPECT_EQ(sizeof(Slice), 8U);
  EXPECT_EQ(sizeof(TableCounts), 160U);
  EXPECT_EQ(sizeof(InsertStreamEnd), 16U);
  EXPECT_EQ(sizeof(RateLimiterOptions), 32U);
  EXPECT_EQ(sizeof(RandomState), 40U);
  EXPECT_EQ(sizeof(PackEntry), 16U);
  EXPECT_EQ(sizeof(ChunkEntry), 72U);
  EXPECT_EQ(sizeof(CompressedLeaf), 8U);
  EXPECT_EQ(sizeof(JournalChunk), 40U);
  EXPECT_EQ(sizeof(JournalRows), 32U);
}

// A folder of checkpoint 1 and journal 1 with something in both.
struct KeptFiles {
  KeptFiles() {
    Stream run(TwoTables());
    for (int i = 0; i < 100; ++i) run.Step();
    const ReplayCheckpoint base(*run.store);
    base.Write(checkpoint);
    ReplayJournal written(*run.store, folder / "", std::chrono::hours(1), base, 1);
    for (int i = 0; i < 100; ++i) run.Step();
    written.End();
  }

  // Why they are not loaded.
  std::string Refusal() const {
    ReplayStore store(TwoTables());
    const JournalFile file{.path = journal, .number = 1};
    return ErrorText(ErrorCode::kFailedPrecondition, [&] {
      ReplayCheckpoint::Load(checkpoint, store, {}, {&file, 1});
    });
  }

  // Sets one byte of an entry of the metadata, whose checksums are then right.
  void SetInMetadata(const std::string& name, std::size_t at, int value) const {
    const std::string path = checkpoint + "/metadata";
    const ArchiveReader old(path);
    ArchiveWriter changed(path);
    for (const std::string& entry : old.Names()) {
      std::vector<std::byte> bytes = old.ReadBlob(entry);
      if (entry == name) bytes.at(at) = static_cast<std::byte>(value);
      changed.WriteBlob(entry, bytes);
    }
    changed.Commit();
  }

  Folder folder;
  const std::string checkpoint = folder / "checkpoint-1";
  const std::string journal = JournalPath(folder / "", 1);
};

TEST(FileFormatsTest, ACheckpointOfAnotherVersionIsRefusedByName) {
  const KeptFiles kept;
  kept.SetInMetadata("format_version", 0, 9);
  EXPECT_THAT(kept.Refusal(), AllOf(HasSubstr(kept.checkpoint + "/metadata"),
                                    HasSubstr("of format 9"), HasSubstr("this program reads 4")));
}

TEST(FileFormatsTest, APackOfAnotherVersionIsRefusedByName) {
  const KeptFiles kept;
  kept.SetInMetadata("packs", 12, 7);
  EXPECT_THAT(kept.Refusal(), AllOf(HasSubstr(kept.checkpoint + "/pack-0.bin"),
                                    HasSubstr("of format 7"), HasSubstr("this program reads 0")));
}

TEST(FileFormatsTest, AJournalOfAnotherVersionIsRefusedByName) {
  const KeptFiles kept;
  fs::remove(kept.journal);
  std::vector<std::byte> head;
  AppendPlain(std::uint32_t{8}, head);
  FrameFileWriter writer(kept.journal, 1);
  writer.Add(kHeadFrame, head);
  writer.End();
  EXPECT_THAT(kept.Refusal(), AllOf(HasSubstr(kept.journal), HasSubstr("of format 8"),
                                    HasSubstr("this program reads 3")));
}

// Without a check it would seem to be an empty one.
TEST(FileFormatsTest, AJournalOfOtherFramesIsRefusedByName) {
  const KeptFiles kept;
  std::ifstream file(kept.journal, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (std::size_t at = 0; (at = bytes.find("MNGRJNL1", at)) != std::string::npos; ++at) {
    bytes[at + 7] = '3';
  }
  std::ofstream(kept.journal, std::ios::binary) << bytes;
  EXPECT_THAT(kept.Refusal(), AllOf(HasSubstr(kept.journal), HasSubstr("of format 3"),
                                    HasSubstr("this program reads 1")));
}

}  // namespace
}  // namespace menger
