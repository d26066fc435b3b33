#pragma once

#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/table_content.h"
#include "menger/replay/trajectory_writer.h"

namespace menger {

// What the items of a table, or the steps of a writer, look like: a line for each fact. Content may
// go only where the same lines hold.
std::string SignatureOf(const ItemSpec& items);
std::string SignatureOf(const ChunkLayout& layout, const WriterPosition& position);

// The first line in which two signatures differ: "leaf 'reward' float32 () there, leaf 'reward'
// float64 () here"; empty if they are the same.
std::string DifferenceOf(const std::string& there, const std::string& here);

// The archive of a checkpoint's folder that holds the content and the index of its chunks.
std::string MetadataPath(const std::string& folder);

// All tables and writers of a replay store at one moment, without the rows of their chunks.
struct ReplayContent {
  struct SavedTable {
    std::string name;
    std::string signature;
    TableContent content;
  };
  struct SavedWriter {
    std::string signature;
    WriterPosition position;
  };

  std::vector<SavedTable> tables;
  std::vector<SavedWriter> writers;

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);

  // Calls every chunk `names[old name]` from now on. Throws DataLoss for a chunk that has no such
  // name, or has kNoChunk.
  void RenameChunks(const std::vector<ChunkId>& names);
};

}  // namespace menger
