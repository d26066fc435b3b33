#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/files.h"
#include "menger/base/frame_file.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/durability/chunk_pack.h"
#include "menger/replay/durability/journal_group.h"
#include "menger/replay/durability/replay_content.h"

namespace menger {

// A segment of a journal on the disk.
struct JournalFile {
  std::string path;
  std::uint64_t number = 0;
};

// Brings the content of a checkpoint up to what the segments after it tell. One thread.
class JournalRecovery {
 public:
  // Segments one after the other, the first of which goes on from the checkpoint; there may be
  // none.
  explicit JournalRecovery(std::span<const JournalFile> segments);

  // Reads and checks the segments. Items and counts of `content` become those of the last whole
  // group; chunks that items need, and the checkpoint does not have, are added to `index`, without
  // rows of it. Orders of selectors that changed are forgotten. Throws DataLoss, naming the file,
  // for segments that are altered, do not belong together, or name rows that nobody wrote.
  void ApplyTo(ReplayContent& content, ChunkIndex& index);

  // Of a chunk, with those that the checkpoint has of it.
  std::uint32_t RowsOf(const ChunkEntry& entry) const;

  // Reads the rows that the segments have into a chunk that has those of the checkpoint, and
  // publishes them.
  void Read(const ChunkEntry& entry, const ChunkLayout& layout, ChunkStore& chunks, ChunkId chunk);

 private:
  struct Piece {
    std::uint64_t offset = 0;  // In the file.
    std::uint64_t bytes = 0;
    std::uint32_t segment = 0;
    std::uint32_t first = 0;
    std::uint32_t rows = 0;
  };

  void ReadSegment(std::uint32_t segment, ReplayContent& content, ChunkIndex& index);
  void AddPieces(std::uint32_t segment, const FrameFileReader::Frame& frame);
  void Apply(ReplayContent& content, ChunkIndex& index);
  void ApplyTable(const TableDelta& delta, TableContent& content) const;
  void ApplyItem(const Item& changed, std::span<const Slice> slices, Item& item,
                 std::vector<Slice>& runs) const;
  void DropUnused(const ReplayContent& content, ChunkIndex& index) const;
  std::vector<std::uint32_t> NamedRows(const ReplayContent& content) const;

  const std::vector<JournalFile> segments_;
  std::map<ChunkIdentity, std::vector<Piece>> pieces_;  // In the order in which they were written.
  std::map<ChunkIdentity, ChunkId> names_;              // As the content's slices have them.
  ChunkId next_name_ = 0;
  std::vector<ChunkId> group_names_;    // Of the chunks of group_.
  std::vector<std::size_t> tables_;     // Which table of the content each of group_ is.
  std::vector<InsertStreams> streams_;  // Of each table of the content.
  JournalGroup group_;
  std::optional<std::uint32_t> open_;
  FileDescriptor file_;  // Of segment open_.
  std::vector<std::byte> rows_;
};

}  // namespace menger
