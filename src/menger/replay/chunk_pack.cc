#include "menger/replay/chunk_pack.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <span>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{4} << 20;  // At least, of one write.

}  // namespace

std::size_t BytesOf(const ChunkLayout& layout, std::uint32_t rows) {
  std::size_t bytes = 0;
  for (int leaf = 0; leaf < layout.steps().size(); ++leaf) bytes += layout.row_bytes(leaf) * rows;
  return bytes;
}

void CopyRows(const ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk,
              std::uint32_t first, std::uint32_t rows, std::byte* to) {
  for (int leaf = 0; leaf < layout.steps().size(); ++leaf) {
    const std::size_t row_bytes = layout.row_bytes(leaf);
    std::memcpy(to, chunks.Data(chunk, layout.offset(leaf) + first * row_bytes), rows * row_bytes);
    to += rows * row_bytes;
  }
}

void RestoreRows(ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk, std::uint32_t first,
                 std::uint32_t rows, const std::byte* from) {
  for (int leaf = 0; leaf < layout.steps().size(); ++leaf) {
    const std::size_t row_bytes = layout.row_bytes(leaf);
    std::memcpy(chunks.Data(chunk, layout.offset(leaf) + first * row_bytes), from,
                rows * row_bytes);
    from += rows * row_bytes;
  }
}

void ChunkIndex::Save(ArchiveWriter archive) const {
  archive.Write("packs", packs);
  archive.Write("chunks", chunks);
}

void ChunkIndex::Load(ArchiveReader archive) {
  archive.Read("packs", packs);
  archive.Read("chunks", chunks);
}

const ChunkLayout& ChunkLayouts::Of(const ChunkEntry& entry) {
  const auto key = std::make_pair(entry.steps_id, entry.capacity);
  const auto found = layouts_.find(key);
  if (found != layouts_.end()) return found->second;
  const auto steps = steps_.find(entry.steps_id);
  if (steps == steps_.end() || entry.capacity < 1 || entry.capacity > kChunkRowsMax) {
    throw DataLoss(
        "the metadata of a replay checkpoint name a chunk of {} steps of an unknown "
        "kind",
        entry.capacity);
  }
  return layouts_.emplace(key, ChunkLayout(steps->second, static_cast<int>(entry.capacity)))
      .first->second;
}

std::string PackPath(const std::string& folder, std::uint32_t number) {
  return fmt::format("{}/pack-{}.bin", folder, number);
}

PackWriter::PackWriter(std::string folder, std::uint32_t first_number, std::uint64_t pack_bytes_max)
    : folder_(std::move(folder)), pack_bytes_max_(pack_bytes_max), number_(first_number) {}

void PackWriter::Add(const ChunkStore& chunks, const ChunkLayout& layout, ChunkEntry& entry) {
  if (!file_.valid()) file_ = CreateFile(PackPath(folder_, number_));
  const std::size_t begin = waiting_.size();
  waiting_.resize(begin + BytesOf(layout, entry.rows));
  CopyRows(chunks, layout, entry.chunk, 0, entry.rows, waiting_.data() + begin);
  entry.pack = number_;
  entry.offset = size_;
  entry.size = waiting_.size() - begin;
  entry.checksum = XXH3_64bits(waiting_.data() + begin, entry.size);
  size_ += entry.size;
  if (waiting_.size() >= kWriteBytes) Flush();
  if (size_ >= pack_bytes_max_) ClosePack();
}

void PackWriter::Flush() {
  WriteAll(file_, waiting_, PackPath(folder_, number_));
  waiting_.clear();
}

void PackWriter::ClosePack() {
  Flush();
  SyncFile(file_, PackPath(folder_, number_));
  file_.Close();
  packs_.push_back({.size = size_, .number = number_++});
  size_ = 0;
}

std::vector<PackEntry> PackWriter::Finish() {
  if (file_.valid()) ClosePack();
  return std::move(packs_);
}

PackReader::PackReader(std::string folder, const std::vector<PackEntry>& packs)
    : folder_(std::move(folder)) {
  for (const PackEntry& pack : packs) {
    const std::string path = PackPath(folder_, pack.number);
    std::uint64_t size = 0;
    try {
      size = FileSize(OpenForReading(path), path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      throw DataLoss("'{}' is missing", path);
    }
    if (size != pack.size) {
      throw DataLoss("'{}' has {} bytes; {} were written", path, size, pack.size);
    }
  }
}

std::span<const std::byte> PackReader::Rows(const ChunkEntry& entry) {
  const std::string path = PackPath(folder_, entry.pack);
  if (open_ != entry.pack) {
    file_ = OpenForReading(path);
    open_ = entry.pack;
  }
  rows_.resize(entry.size);
  ReadAllAt(file_, entry.offset, rows_, path);
  if (XXH3_64bits(rows_.data(), rows_.size()) != entry.checksum) {
    throw DataLoss("'{}' is damaged: the checksum of the {} bytes from {} on is wrong", path,
                   entry.size, entry.offset);
  }
  return rows_;
}

void PackReader::Read(const ChunkEntry& entry, const ChunkLayout& layout, ChunkStore& chunks,
                      ChunkId chunk) {
  if (entry.rows > entry.capacity || entry.size != BytesOf(layout, entry.rows)) {
    throw DataLoss("'{}': {} rows of a chunk of {} cannot have {} bytes",
                   PackPath(folder_, entry.pack), entry.rows, entry.capacity, entry.size);
  }
  RestoreRows(chunks, layout, chunk, 0, entry.rows, Rows(entry).data());
  chunks.Publish(chunk, static_cast<int>(entry.rows));
}

}  // namespace menger
