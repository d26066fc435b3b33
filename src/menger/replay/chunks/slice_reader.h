#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "menger/replay/chunks/chunk_compression.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"
#include "menger/tensor/view.h"

namespace menger {

// Finds the rows that slices name, where they lie: the way to read a sample without a copy.
//
// Only rows that lie compressed are written anew, into memory of the reader, which it uses again: a
// stack of frames is one or two blocks of 8 rows, and blocks that were decompressed last are not
// decompressed again. It also remembers where the leaves of the last chunk's capacity begin. One
// thread at a time.
class SliceReader {
 public:
  // Throws as ItemSpec::Check.
  explicit SliceReader(const ItemSpec& items);

  // The rows of `slice`, shown as `column`: dense, oldest first. Valid while somebody holds the
  // chunk; of a compressed chunk, also no longer than until the next call for a column of the same
  // leaf. The slice is one of an item of these columns: nothing is checked here, but DataLoss is
  // thrown for compressed rows that are damaged.
  StridedView Find(const ChunkView& chunks, const Slice& slice, int column) {
    if (chunks.is_compressed(slice.chunk)) return Decompress(chunks, slice, column);
    const int capacity = chunks.capacity(slice.chunk);
    if (capacity != capacity_) LayOut(capacity);
    const Column& here = columns_[column];
    return {.data = chunks.Data(slice.chunk, here.offset + slice.offset * here.row_bytes),
            .item = here.row_bytes,
            .stride = static_cast<std::ptrdiff_t>(here.row_bytes),
            .count = slice.length};
  }

  std::size_t row_bytes(int column) const { return columns_[column].row_bytes; }

 private:
  struct Column {
    int leaf = 0;
    std::size_t row_bytes = 0;
    std::size_t offset = 0;  // Of its leaf in chunks of capacity_.
  };

  void LayOut(int capacity);
  StridedView Decompress(const ChunkView& chunks, const Slice& slice, int column);

  std::vector<std::size_t> leaf_row_bytes_;
  std::vector<Column> columns_;
  std::vector<CompressedReader> compressed_;  // By leaf.
  int capacity_ = 0;
};

}  // namespace menger
