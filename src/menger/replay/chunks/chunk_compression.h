#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"

namespace menger {

// Whether the chunks of a stream are compressed (zstd, level 1) once they are full.
//
// Automatic, a leaf is compressed in blocks of 8 rows if that halves it: its first block is tried,
// and the rest only if that block shrank enough, so data that cannot be compressed cost an eighth
// of the attempt. The rule looks at nothing but the chunk's rows: the same rows always lie the same
// way. Measured on one core (84x84 frames of random play; GB/s of rows; µs to decompress the one or
// two blocks in which a stack of four lies):
//
//     leaf                    smaller by   compress   decompress   stack
//     Pong                          120x   1.8 GB/s     9.1 GB/s    9 µs
//     Breakout                      108x   1.8 GB/s      10 GB/s    8 µs
//     Seaquest                       48x   1.5 GB/s     7.4 GB/s   11 µs
//     random                       1.0x   (left as it is)
//
// Single rows compress a third as well (Pong 41x) and decompress no faster; blocks of 64 rows
// another 1.4x, but a stack takes 34 µs (Seaquest 180). Level 3 gains 3%.
enum class Compression : std::uint8_t { kNone, kAutomatic };

inline constexpr int kBlockRows = 8;
inline constexpr std::size_t kCompressedRowBytesMin = 64;  // Of leaves that are tried.
inline constexpr std::size_t kLeafShrinksBy = 2;           // At least, or it is left as it is.

// A new chunk with the rows of `chunk`, which is full and of this layout, by the rule above;
// nothing if it were not at least a quarter smaller, or if the store has no room for it. Any
// thread.
//
// It begins with a CompressedLeaf for each leaf; its leaves follow, each on a cache line.
struct CompressedLeaf {
  std::uint32_t begin = 0;  // In the chunk.
  std::uint32_t blocks =
      0;  // 0: the rows lie at `begin` as in any chunk. Otherwise there are as
          // many offsets of blocks in the chunk, the end of the last, the blocks.
};
std::optional<ChunkId> CompressChunk(ChunkStore& chunks, const ChunkLayout& layout, ChunkId chunk);

// Reads the rows of one leaf from compressed chunks. It keeps the blocks that it decompressed last:
// what the next call needs of them is not decompressed again. One thread at a time.
class CompressedReader {
 public:
  // The rows [first, first + count) of the leaf, dense: where they lie if the leaf was left as it
  // is, else in memory of this reader, until the next call. Throws DataLoss if they are damaged.
  const std::byte* Find(const ChunkView& chunks, ChunkId chunk, int leaf, std::size_t row_bytes,
                        int first, int count);

 private:
  ChunkIdentity chunk_;            // Of which there are decompressed
  std::uint32_t first_block_ = 0;  // the blocks from this one
  std::uint32_t end_block_ = 0;    // to before this one.
  std::vector<std::byte> rows_;
};

}  // namespace menger
