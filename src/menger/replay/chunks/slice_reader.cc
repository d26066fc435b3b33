#include "menger/replay/chunks/slice_reader.h"

namespace menger {

SliceReader::SliceReader(const ItemSpec& items) {
  items.Check();
  items.CheckHasLeaves();
  for (const LeafSpec& leaf : items.steps.leaves()) leaf_row_bytes_.push_back(leaf.bytes());
  for (const ItemColumn& column : items.columns) {
    const int leaf = items.steps.Find(column.leaf);
    columns_.push_back({.leaf = leaf, .row_bytes = leaf_row_bytes_[leaf]});
  }
  compressed_.resize(leaf_row_bytes_.size());
}

void SliceReader::LayOut(int capacity) {
  capacity_ = capacity;
  for (Column& column : columns_) {
    column.offset = 0;
    for (int leaf = 0; leaf < column.leaf; ++leaf) {
      column.offset += ChunkLayout::ArrayBytes(leaf_row_bytes_[leaf], capacity);
    }
  }
}

StridedView SliceReader::Decompress(const ChunkView& chunks, const Slice& slice, int column) {
  const Column& here = columns_[column];
  return {.data = compressed_[here.leaf].Find(chunks, slice.chunk, here.leaf, here.row_bytes,
                                              slice.offset, slice.length),
          .item = here.row_bytes,
          .stride = static_cast<std::ptrdiff_t>(here.row_bytes),
          .count = slice.length};
}

}  // namespace menger
