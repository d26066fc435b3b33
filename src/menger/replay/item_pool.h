#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"

namespace menger {

// What a table knows of an item.
struct Item {
  std::uint64_t number = 0;  // From 1 on; 0: the slot is free.
  double priority = 0;
  VersionRange versions;
  std::uint32_t life = 0;  // Of the table when it was inserted: see ItemKey.
  std::uint32_t times_sampled = 0;
  std::uint32_t slices_begin = 0;
  std::uint32_t slices_count = 0;
};

// All that a pool holds, as flat arrays: what a checkpoint copies while everybody waits.
struct PoolContent {
  std::vector<Item> items;                  // By slot.
  std::vector<std::uint16_t> slice_counts;  // [slots x columns].
  std::vector<Slice> slices;                // Runs that are not of an item mean nothing.
  std::vector<std::uint32_t> free_slots;    // The one that is used next is the last.
};

// How long those arrays are.
struct PoolSizes {
  std::size_t items = 0;
  std::size_t slice_counts = 0;
  std::size_t slices = 0;
  std::size_t free_slots = 0;

  // Makes room, and touches it, so that CopyTo only copies, also after `growth` more items.
  void ReserveIn(PoolContent& content, std::size_t growth, std::size_t columns) const;
};

// The items of a table in flat arrays by slot, and the references to the chunks that they need.
//
// A free slot is used again, last freed first, and so is room for slices, by length: after its
// growth nothing is allocated. However many items need a chunk, it is referred to once, and its
// bytes are counted once. One thread at a time: the table's mutex guards it.
class ItemPool {
 public:
  // `chunks` outlives the pool. `items_max` is what is reserved for; no memory is touched for it.
  ItemPool(std::size_t columns, std::size_t items_max, ChunkStore& chunks);
  ItemPool(const ItemPool&) = delete;
  ItemPool& operator=(const ItemPool&) = delete;
  ~ItemPool();

  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }         // Of all chunks that the items need.
  std::size_t slots() const { return items_.size(); }  // Ever used.

  // The slot of a new item with everything but its priority and versions set. Somebody else holds
  // references to the chunks meanwhile. `slice_counts` has an entry a column.
  std::uint32_t Insert(std::uint64_t number, std::span<const Slice> slices,
                       std::span<const std::uint16_t> slice_counts);
  void Erase(std::uint32_t slot);
  // Lets the item name the twins of its chunks, and says whether it named one that has a twin;
  // `twins` are in the order of `from`. Somebody else holds references to all of them.
  bool Replace(std::uint32_t slot, std::span<const ChunkTwin> twins);

  bool Has(const ItemKey& key) const {  // Of whatever shard.
    return key.number != 0 && key.slot < items_.size() && items_[key.slot].number == key.number &&
           items_[key.slot].life == key.life;
  }
  Item& operator[](std::uint32_t slot) { return items_[slot]; }
  std::span<const Slice> slices(std::uint32_t slot) const {
    const Item& item = items_[slot];
    return {slices_.data() + item.slices_begin, item.slices_count};
  }
  std::span<const std::uint16_t> slice_counts(std::uint32_t slot) const {
    return {slice_counts_.data() + slot * columns_, columns_};
  }

  std::span<const std::uint32_t> free_slots() const { return free_slots_; }

  PoolSizes sizes() const {
    return {.items = items_.size(),
            .slice_counts = slice_counts_.size(),
            .slices = slices_.size(),
            .free_slots = free_slots_.size()};
  }
  void CopyTo(PoolContent& content) const;
  // Adds a reference to each chunk that the items need, and appends its name.
  void HoldChunks(std::vector<ChunkId>& held) const;
  // Into an empty pool: the same items in the same slots, which will be used again in the same
  // order. Slices name chunks that somebody holds meanwhile.
  void Restore(const PoolContent& content);

  // Fetch ahead, each what the next one reads: the item, its slices, the first chunk's record.
  void PrefetchItem(std::uint32_t slot) const;
  void PrefetchSlices(std::uint32_t slot) const;
  void PrefetchChunk(std::uint32_t slot) const;

 private:
  std::uint32_t TakeSlices(std::uint32_t count);
  void Need(ChunkId chunk);
  void NeedNoLonger(ChunkId chunk);

  const std::size_t columns_;
  ChunkStore& chunks_;
  std::int64_t size_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Item> items_;                  // By slot.
  std::vector<std::uint16_t> slice_counts_;  // [slots x columns].
  std::vector<Slice> slices_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::vector<std::uint32_t>> free_slices_;  // By length: where runs begin.
  std::vector<std::uint32_t> needs_;                     // By chunk: how many slices lie in it.
};

}  // namespace menger
