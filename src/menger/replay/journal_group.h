#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "menger/replay/chunk_store.h"
#include "menger/replay/table_content.h"

namespace menger {

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

// Walks through a payload. Throws DataLoss where it ends too early.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::byte> payload) : rest_(payload) {}

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> Take(std::uint64_t bytes);
  template <typename T>  // Plain bytes.
  T Take() {
    T value;
    std::memcpy(&value, Take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  void TakeInto(std::uint64_t count, std::vector<T>& values) {
    if (count > rest_.size() / sizeof(T)) Take(rest_.size() + 1);
    const std::span<const std::byte> bytes = Take(count * sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace menger
