#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/table.h"
#include "menger/replay/trajectory_writer.h"

namespace menger {

// Which tables a store has, and its memory.
struct ReplayStoreOptions {
  std::vector<TableOptions> tables;
  std::size_t bytes_max = 0;  // Of all chunks; 0: what the tables may hold together, and an eighth
                              // more for readers and a few writers, and
  std::size_t writer_bytes = 0;  // for many writers: the sum of their WriterBytesMax.
  bool shared = false;           // In memory that other processes can map.
};

// Tables and the chunks that they share. Outlives its writers, and the content of samples of its
// tables. Any thread may call anything.
class ReplayStore {
 public:
  // Throws InvalidArgument that names the table and the field; for no table, or two of one name;
  // for bounds beyond the memory that this process can have (MemoryLimit), that of a table with the
  // metadata of as many items as it may have. The store's own bound, where it follows from those of
  // the tables, is lowered to that memory, with a warning.
  explicit ReplayStore(const ReplayStoreOptions& options);

  int tables() const { return static_cast<int>(tables_.size()); }
  Table& table(int index) { return *tables_[index]; }
  // Throws NotFound that names the nearest table there is.
  Table& table(std::string_view name);

  // Throws InvalidArgument as WriterOptions::Check.
  std::unique_ptr<TrajectoryWriter> NewWriter(const Spec& steps, const WriterOptions& options);

  const ChunkStore& chunks() const { return chunks_; }
  ChunkStore& chunks() { return chunks_; }  // For who fills chunks without a TrajectoryWriter.

  void BeginLife(std::uint64_t life);  // Of all tables.
  void Close();                        // All tables.

 private:
  friend class ReplayCheckpoint;
  friend class ReplayJournal;

  mutable ChunkStore chunks_;  // A checkpoint of a store that it does not change holds chunks.
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace menger
