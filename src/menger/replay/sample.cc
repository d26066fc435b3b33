#include "menger/replay/sample.h"

#include <utility>

namespace menger {

void Sample::Release() {
  for (const ChunkId chunk : held_) chunks_->Release(chunk);
  held_.clear();
  items_.clear();
  slices_.clear();
  begins_.clear();
  chunks_ = nullptr;
  lease_.reset();
  spec_ = nullptr;
  table_items_ = 0;
  columns_ = 0;
}

void Sample::Begin(ChunkStore& chunks, const ItemSpec& spec, std::int64_t table_items) {
  Release();
  chunks_ = &chunks;
  view_ = chunks;
  BeginWith(spec, table_items);
}

void Sample::Begin(const ChunkView& chunks, const ItemSpec& spec, std::int64_t table_items,
                   std::shared_ptr<const void> lease) {
  Release();
  view_ = chunks;
  lease_ = std::move(lease);
  BeginWith(spec, table_items);
}

void Sample::BeginWith(const ItemSpec& spec, std::int64_t table_items) {
  spec_ = &spec;
  table_items_ = table_items;
  columns_ = spec.columns.size();
  begins_.push_back(0);
}

void Sample::Add(const SampledItem& item, std::span<const Slice> slices,
                 std::span<const std::uint16_t> slice_counts) {
  items_.push_back(item);
  for (const std::uint16_t count : slice_counts) begins_.push_back(begins_.back() + count);
  slices_.insert(slices_.end(), slices.begin(), slices.end());
  if (chunks_ == nullptr) return;
  // Columns of an item mostly lie in one chunk, so one reference for a run of equal names saves
  // most of them; a chunk that comes again later is held twice.
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (i > 0 && slices[i].chunk == slices[i - 1].chunk) continue;
    chunks_->AddReference(slices[i].chunk);
    held_.push_back(slices[i].chunk);
  }
}

}  // namespace menger
