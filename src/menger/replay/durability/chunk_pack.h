#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/files.h"
#include "menger/replay/chunks/chunk_store.h"

namespace menger {

// The rows of a chunk, in a pack. Plain bytes.
struct ChunkEntry {
  ChunkIdentity identity;
  std::uint64_t steps_id = 0;
  std::uint64_t compressed_bytes = 0;  // 0: it is not compressed.
  std::uint64_t offset = 0;            // In the pack.
  std::uint64_t size = 0;      // A compressed chunk as it lies; otherwise all leaves, one after the
                               // other, with `rows` rows each.
  std::uint64_t checksum = 0;  // XXH3 of them.
  std::uint32_t pack = 0;
  ChunkId chunk = 0;  // As the slices that are saved beside it name it.
  std::uint32_t rows = 0;
  std::uint32_t capacity = 0;
};

// Packs have no header, since they are shared: their version is told beside their names.
inline constexpr std::uint32_t kPackFormatVersion = 0;

// A file `pack-<number>.bin` of a checkpoint: rows of chunks, one chunk after the other. Packs
// never change: checkpoints that need the same chunks share the file. Plain bytes.
struct PackEntry {
  std::uint64_t size = 0;
  std::uint32_t number = 0;
  std::uint32_t format_version = kPackFormatVersion;
};

// Which chunks a checkpoint has, and where.
struct ChunkIndex {
  std::vector<PackEntry> packs;
  std::vector<ChunkEntry> chunks;

  void Save(ArchiveWriter archive) const;
  void Load(ArchiveReader archive);  // Chunks are then in the order in which they lie.
};

// Layouts of chunks, made once each.
class ChunkLayouts {
 public:
  // `steps` are by StepsId, and outlive this.
  explicit ChunkLayouts(const std::map<std::uint64_t, Spec>& steps) : steps_(steps) {}

  // Throws DataLoss for other steps, and for a capacity that no chunk has.
  const ChunkLayout& Of(const ChunkEntry& entry);

 private:
  const std::map<std::uint64_t, Spec>& steps_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, ChunkLayout> layouts_;
};

// Rows of a chunk as files have them: leaf after leaf, `rows` rows each. Of a compressed chunk all
// of them, as they lie.
struct ChunkRows {
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
  std::uint64_t compressed_bytes = 0;  // 0: it is not compressed.
};
std::size_t BytesOf(const ChunkLayout& layout, const ChunkRows& rows);
void CopyRows(const ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk,
              const ChunkRows& rows, std::byte* to);
void RestoreRows(ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk,
                 const ChunkRows& rows, const std::byte* from);  // Does not publish them.

// References to chunks, given back at the end.
struct HeldChunks {
  explicit HeldChunks(ChunkStore& chunk_store) : store(chunk_store) {}
  HeldChunks(const HeldChunks&) = delete;
  HeldChunks& operator=(const HeldChunks&) = delete;
  ~HeldChunks() {
    for (const ChunkId chunk : chunks) store.Release(chunk);
  }

  ChunkStore& store;
  std::vector<ChunkId> chunks;  // One entry a reference.
};

std::string PackPath(const std::string& folder, std::uint32_t number);

// Writes chunks into new packs of a folder. One thread.
class PackWriter {
 public:
  // Packs are numbered from `first_number` on; one is full when it has pack_bytes_max.
  PackWriter(std::string folder, std::uint32_t first_number, std::uint64_t pack_bytes_max);

  // Writes entry.rows rows of the chunk, and says in the entry where. Somebody holds the chunk.
  void Add(const ChunkStore& chunks, const ChunkLayout& layout, ChunkEntry& entry);

  // The packs, when they are on the disk. Nothing can be added any more.
  std::vector<PackEntry> Finish();

 private:
  void Flush();
  void ClosePack();

  const std::string folder_;
  const std::uint64_t pack_bytes_max_;
  std::uint32_t number_;
  FileDescriptor file_;             // Of pack number_, once something was added to it.
  std::uint64_t size_ = 0;          // Of that pack, what waits included.
  std::vector<std::byte> waiting_;  // Not yet written.
  std::vector<PackEntry> packs_;
};

// Reads chunks from the packs of a folder. One thread.
class PackReader {
 public:
  // Throws DataLoss that names the file if a pack is missing or has another size,
  // FailedPrecondition if it is of another version.
  PackReader(std::string folder, const std::vector<PackEntry>& packs);

  // The entry's rows, leaf after leaf; valid until the next call. Throws DataLoss, naming the file,
  // if they are not as they were written.
  std::span<const std::byte> Rows(const ChunkEntry& entry);

  // Reads the entry's rows into a chunk of this layout, and publishes them. Throws as Rows.
  void Read(const ChunkEntry& entry, const ChunkLayout& layout, ChunkStore& chunks, ChunkId chunk);

 private:
  const std::string folder_;
  std::optional<std::uint32_t> open_;
  FileDescriptor file_;      // Of pack open_.
  std::uint64_t ahead_ = 0;  // Up to here that pack was asked for.
  std::vector<std::byte> rows_;
};

}  // namespace menger
