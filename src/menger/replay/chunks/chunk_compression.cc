#include "menger/replay/chunks/chunk_compression.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kLevel = 1;

std::size_t RoundUp(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// zstd's state takes up to a megabyte and is costly to make, so a thread has one, however many
// streams it writes or reads.
ZSTD_CCtx& CompressionState() {
  struct Free {
    void operator()(ZSTD_CCtx* state) const { ZSTD_freeCCtx(state); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> state(ZSTD_createCCtx());
  return *state;
}

ZSTD_DCtx& DecompressionState() {
  struct Free {
    void operator()(ZSTD_DCtx* state) const { ZSTD_freeDCtx(state); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> state(ZSTD_createDCtx());
  return *state;
}

// Offsets, then blocks, into `chunk` from `begin` on. Returns where they end, or 0 if the leaf does
// not shrink enough: what lies behind `begin` then means nothing.
std::size_t CompressLeaf(std::span<const std::byte> rows, std::size_t row_bytes,
                         std::uint32_t blocks, std::span<std::byte> chunk, std::size_t begin) {
  const std::size_t end_max = begin + rows.size() / kLeafShrinksBy;
  std::size_t end = begin + sizeof(std::uint32_t) * (blocks + 1);
  if (end > end_max) return 0;
  const auto put_offset = [&](std::uint32_t block) {
    const auto offset = static_cast<std::uint32_t>(end);
    std::memcpy(chunk.data() + begin + sizeof(offset) * block, &offset, sizeof(offset));
  };
  const std::size_t block_bytes = row_bytes * kBlockRows;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    put_offset(block);
    const std::size_t from = block * block_bytes;
    const std::size_t size = std::min(block_bytes, rows.size() - from);
    const std::size_t room = block == 0 ? size / kLeafShrinksBy : end_max - end;
    const std::size_t written =
        ZSTD_compressCCtx(&CompressionState(), chunk.data() + end, std::min(room, end_max - end),
                          rows.data() + from, size, kLevel);
    if (ZSTD_isError(written) != 0) return 0;  // It has no more room.
    end += written;
  }
  put_offset(blocks);
  return end;
}

// The chunk's content as it is to lie. Valid until the next call of this thread.
std::span<const std::byte> Compressed(const ChunkStore& chunks, const ChunkLayout& layout,
                                      ChunkId chunk) {
  thread_local std::vector<std::byte> memory;
  const int leaves = layout.steps().size();
  std::size_t end = RoundUp(sizeof(CompressedLeaf) * static_cast<std::size_t>(leaves));
  if (memory.size() < end + layout.bytes()) memory.resize(end + layout.bytes());
  std::memset(memory.data(), 0, end);
  for (int i = 0; i < leaves; ++i) {
    const std::size_t row_bytes = layout.row_bytes(i);
    const std::span<const std::byte> rows(chunks.Data(chunk, layout.offset(i)),
                                          row_bytes * static_cast<std::size_t>(layout.capacity()));
    CompressedLeaf leaf{.begin = static_cast<std::uint32_t>(end)};
    const auto blocks =
        static_cast<std::uint32_t>((layout.capacity() + kBlockRows - 1) / kBlockRows);
    const std::size_t compressed_end =
        row_bytes < kCompressedRowBytesMin ? 0 : CompressLeaf(rows, row_bytes, blocks, memory, end);
    if (compressed_end > 0) {
      leaf.blocks = blocks;
      end = compressed_end;
    } else {
      std::memcpy(memory.data() + end, rows.data(), rows.size());
      end += rows.size();
    }
    std::memcpy(memory.data() + sizeof(leaf) * static_cast<std::size_t>(i), &leaf, sizeof(leaf));
    const std::size_t next = RoundUp(end);
    std::memset(memory.data() + end, 0, next - end);
    end = next;
  }
  return std::span(memory).first(end);
}

}  // namespace

std::optional<ChunkId> CompressChunk(ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk) {
  if (layout.bytes() > std::numeric_limits<std::uint32_t>::max() / 2) return std::nullopt;
  const std::span<const std::byte> content = Compressed(chunks, layout, chunk);
  if (content.size() > layout.bytes() / 4 * 3) return std::nullopt;
  try {
    const ChunkId compressed = chunks.Allocate(layout, content.size());
    std::memcpy(chunks.Data(compressed, 0), content.data(), content.size());
    chunks.Publish(compressed, layout.capacity());
    return compressed;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return std::nullopt;
  }
}

const std::byte* CompressedReader::Find(const ChunkView& chunks, ChunkId chunk, int leaf,
                                        std::size_t row_bytes, int first, int count) {
  const std::byte* const data = chunks.Data(chunk, 0);
  const std::size_t end = chunks.compressed_bytes(chunk);
  const auto rows = static_cast<std::size_t>(chunks.capacity(chunk));
  const auto first_row = static_cast<std::size_t>(first);
  const auto need = [leaf](bool whole) {
    if (!whole) throw DataLoss("leaf {} of a compressed chunk is damaged", leaf);
  };
  CompressedLeaf place;
  need(sizeof(place) * (static_cast<std::size_t>(leaf) + 1) <= end &&
       first_row + static_cast<std::size_t>(count) <= rows);
  std::memcpy(&place, data + sizeof(place) * static_cast<std::size_t>(leaf), sizeof(place));
  if (place.blocks == 0) {
    need(place.begin + row_bytes * rows <= end);
    return data + place.begin + row_bytes * first_row;
  }
  need(place.blocks == (rows + kBlockRows - 1) / kBlockRows &&
       place.begin + sizeof(std::uint32_t) * (std::size_t{place.blocks} + 1) <= end);

  const auto first_block = static_cast<std::uint32_t>(first) / kBlockRows;
  const auto end_block = static_cast<std::uint32_t>(first + count - 1) / kBlockRows + 1;
  const ChunkIdentity identity = chunks.identity(chunk);
  if (chunk_ != identity || first_block < first_block_ || first_block > end_block_) {
    chunk_ = identity;
    first_block_ = end_block_ = first_block;
  }
  const std::size_t block_bytes = row_bytes * kBlockRows;
  const std::size_t bytes = block_bytes * (std::max(end_block, end_block_) - first_block_);
  if (rows_.size() < bytes) rows_.resize(bytes);
  for (; end_block_ < end_block; ++end_block_) {
    std::uint32_t offsets[2];
    std::memcpy(offsets, data + place.begin + sizeof(offsets[0]) * end_block_, sizeof(offsets));
    need(offsets[0] <= offsets[1] && offsets[1] <= end);
    const std::size_t written = ZSTD_decompressDCtx(
        &DecompressionState(), rows_.data() + block_bytes * (end_block_ - first_block_),
        block_bytes, data + offsets[0], offsets[1] - offsets[0]);
    if (ZSTD_isError(written) != 0) {
      throw DataLoss("block {} of leaf {} of a compressed chunk is damaged: {}", end_block_, leaf,
                     ZSTD_getErrorName(written));
    }
    need(written == std::min(block_bytes, row_bytes * rows - block_bytes * end_block_));
  }
  return rows_.data() + row_bytes * (first_row - std::size_t{first_block_} * kBlockRows);
}

}  // namespace menger
