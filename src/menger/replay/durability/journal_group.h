#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/base/frame_file.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/table_content.h"

namespace menger {

// What a frame of a journal holds.
inline constexpr FrameKind kHeadFrame = 1;   // The first: names of the tables, see EncodeHead.
inline constexpr FrameKind kRowsFrame = 2;   // Rows of chunks, see JournalRows.
inline constexpr FrameKind kGroupFrame = 3;  // A JournalGroup: it counts whole or not at all.

// A chunk that a group of a journal names. Plain bytes.
struct JournalChunk {
  ChunkIdentity identity;
  std::uint64_t steps_id = 0;
  std::uint64_t compressed_bytes = 0;  // 0: it is not compressed.
  std::uint32_t capacity = 0;
  std::uint32_t rows = 0;  // That the group's items may name.
};

// Before rows of a chunk in a frame of rows: the rows follow, as CopyRows has them. Plain bytes.
struct JournalRows {
  ChunkIdentity identity;
  std::uint64_t bytes = 0;
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
};

// What has changed in all tables of a store between two moments. Slices name chunks by their place
// in `chunks`, whose rows a journal has in frames before.
struct JournalGroup {
  std::vector<JournalChunk> chunks;
  std::vector<TableDelta> tables;  // In the order of the segment's head.

  void Clear();  // Keeps the memory.

  // Appends to, or reads all of, the payload of a frame. Decode throws DataLoss for a payload that
  // Encode did not make.
  void Encode(std::vector<std::byte>& payload) const;
  void Decode(std::span<const std::byte> payload);
};

// The payload of a segment's head.
std::vector<std::byte> EncodeHead(const std::vector<std::string>& tables);
std::vector<std::string> DecodeHead(std::span<const std::byte> payload);

}  // namespace menger
