#include "menger/replay/item_pool.h"

#include <algorithm>

namespace menger {
namespace {

// Growth copies what is there while everybody waits, so addresses are reserved for this many items
// at once.
constexpr std::size_t kReservedMax = std::size_t{1} << 22;

}  // namespace

ItemPool::ItemPool(std::size_t columns, std::size_t items_max, ChunkStore& chunks)
    : columns_(columns), chunks_(chunks) {
  const std::size_t reserved = std::min(items_max, kReservedMax);
  items_.reserve(reserved);
  slice_counts_.reserve(reserved * columns);
  slices_.reserve(reserved * columns);
}

ItemPool::~ItemPool() {
  for (ChunkId chunk = 0; chunk < needs_.size(); ++chunk) {
    if (needs_[chunk] > 0) chunks_.Release(chunk);
  }
}

std::uint32_t ItemPool::Insert(std::uint64_t number, std::span<const Slice> slices,
                               std::span<const std::uint16_t> slice_counts) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(items_.size()));
    items_.emplace_back();
    slice_counts_.resize(items_.size() * columns_);
  }
  const std::uint32_t slot = free_slots_.back();
  const auto count = static_cast<std::uint32_t>(slices.size());
  const std::uint32_t begin = TakeSlices(count);
  free_slots_.pop_back();
  ++size_;
  items_[slot] = {.number = number, .slices_begin = begin, .slices_count = count};
  std::copy(slices.begin(), slices.end(), slices_.begin() + begin);
  std::copy(slice_counts.begin(), slice_counts.end(), slice_counts_.begin() + slot * columns_);
  for (const Slice& slice : slices) Need(slice.chunk);
  return slot;
}

void ItemPool::Erase(std::uint32_t slot) {
  for (const Slice& slice : slices(slot)) NeedNoLonger(slice.chunk);
  Item& item = items_[slot];
  free_slices_[item.slices_count].push_back(item.slices_begin);
  free_slots_.push_back(slot);
  item.number = 0;
  --size_;
}

bool ItemPool::Replace(std::uint32_t slot, std::span<const ChunkTwin> twins) {
  const Item& item = items_[slot];
  bool replaced = false;
  for (Slice& slice : std::span(slices_).subspan(item.slices_begin, item.slices_count)) {
    const auto twin = std::ranges::lower_bound(twins, slice.chunk, {}, &ChunkTwin::from);
    if (twin == twins.end() || twin->from != slice.chunk) continue;
    Need(twin->to);
    slice.chunk = twin->to;
    NeedNoLonger(twin->from);
    replaced = true;
  }
  return replaced;
}

std::uint32_t ItemPool::TakeSlices(std::uint32_t count) {
  if (count >= free_slices_.size()) free_slices_.resize(count + 1);
  std::vector<std::uint32_t>& free = free_slices_[count];
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(slices_.size()));
    slices_.resize(slices_.size() + count);
  }
  const std::uint32_t begin = free.back();
  free.pop_back();
  return begin;
}

void ItemPool::Need(ChunkId chunk) {
  if (chunk >= needs_.size()) needs_.resize(chunk + 1);
  if (needs_[chunk]++ > 0) return;
  chunks_.AddReference(chunk);
  bytes_ += chunks_.bytes(chunk);
}

void ItemPool::NeedNoLonger(ChunkId chunk) {
  if (--needs_[chunk] > 0) return;
  bytes_ -= chunks_.bytes(chunk);
  chunks_.Release(chunk);
}

void PoolSizes::ReserveIn(PoolContent& content, std::size_t growth, std::size_t columns) const {
  content.items.resize(items + growth);
  content.slice_counts.resize(slice_counts + growth * columns);
  content.slices.resize(slices + growth * columns);
  content.free_slots.resize(free_slots + growth);
}

void ItemPool::CopyTo(PoolContent& content) const {
  content.items.assign(items_.begin(), items_.end());
  content.slice_counts.assign(slice_counts_.begin(), slice_counts_.end());
  content.slices.assign(slices_.begin(), slices_.end());
  content.free_slots.assign(free_slots_.begin(), free_slots_.end());
}

void ItemPool::HoldChunks(std::vector<ChunkId>& held) const {
  for (ChunkId chunk = 0; chunk < needs_.size(); ++chunk) {
    if (needs_[chunk] == 0) continue;
    chunks_.AddReference(chunk);
    held.push_back(chunk);
  }
}

void ItemPool::Restore(const PoolContent& content) {
  items_ = content.items;
  slice_counts_ = content.slice_counts;
  free_slots_ = content.free_slots;
  for (Item& item : items_) {
    if (item.number == 0) continue;
    const std::uint32_t begin = TakeSlices(item.slices_count);
    std::copy_n(content.slices.begin() + item.slices_begin, item.slices_count,
                slices_.begin() + begin);
    item.slices_begin = begin;
    for (std::uint32_t i = 0; i < item.slices_count; ++i) Need(slices_[begin + i].chunk);
    ++size_;
  }
}

void ItemPool::PrefetchItem(std::uint32_t slot) const {
  __builtin_prefetch(&items_[slot], /*write=*/1);
  __builtin_prefetch(&slice_counts_[slot * columns_]);
}

void ItemPool::PrefetchSlices(std::uint32_t slot) const {
  __builtin_prefetch(&slices_[items_[slot].slices_begin]);
}

void ItemPool::PrefetchChunk(std::uint32_t slot) const {
  chunks_.Prefetch(slices_[items_[slot].slices_begin].chunk);
}

}  // namespace menger
