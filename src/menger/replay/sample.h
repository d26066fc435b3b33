#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"

namespace menger {

// An item that was drawn.
struct SampledItem {
  ItemKey key;
  double probability = 0;  // Of this draw, by the sampler's distribution.
  double priority = 0;     // As updated last.
  std::int64_t times_sampled = 0;
  VersionRange versions;
};

// Items that were drawn together, with the right to read their rows: chunks that a table drops
// meanwhile stay until `Release`, so that a sample kept for long keeps the store full: release it
// once it is gathered. Kept and filled again by a table, it allocates nothing. One thread at a
// time; several may read. To be released before its table, or what it was drawn with, goes.
class Sample {
 public:
  Sample() = default;
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  ~Sample() { Release(); }

  int size() const { return static_cast<int>(items_.size()); }
  std::span<const SampledItem> items() const { return items_; }
  std::int64_t table_items() const { return table_items_; }  // When drawn, for weights.

  // Slices of a column of item i, oldest rows first.
  std::span<const Slice> slices(int item, int column) const {
    const std::uint32_t* const begin = &begins_[static_cast<std::size_t>(item) * columns_ + column];
    return {slices_.data() + begin[0], begin[1] - begin[0]};
  }

  // All slices of item i, column after column.
  std::span<const Slice> slices(int item) const {
    const std::uint32_t* const begin = &begins_[static_cast<std::size_t>(item) * columns_];
    return {slices_.data() + begin[0], begin[columns_] - begin[0]};
  }

  // Where the rows lie, for a SliceReader; null before the first Begin and after Release.
  const ChunkView* chunks() const { return spec_ == nullptr ? nullptr : &view_; }
  // What the columns are; null as chunks().
  const ItemSpec* spec() const { return spec_; }

  void Release();

  // How a table fills it: Begin (which releases what was there), then Add for each item drawn.
  // `chunks` and `spec` (one and the same object for all samples of a table) outlive the content.
  void Begin(ChunkStore& chunks, const ItemSpec& spec, std::int64_t table_items);
  // `slices` of all columns, one column after the other, `slice_counts` of each. Adds references to
  // their chunks, which somebody else must hold meanwhile.
  void Add(const SampledItem& item, std::span<const Slice> slices,
           std::span<const std::uint16_t> slice_counts);

  // How it is filled with what a table of another process has drawn, whose rows `chunks` shows:
  // `lease` goes when the content does, which may then be lost. Add adds no references.
  void Begin(const ChunkView& chunks, const ItemSpec& spec, std::int64_t table_items,
             std::shared_ptr<const void> lease);

 private:
  void BeginWith(const ItemSpec& spec, std::int64_t table_items);

  ChunkView view_;
  ChunkStore* chunks_ = nullptr;       // Counts references to what is held; or else
  std::shared_ptr<const void> lease_;  // holds it.
  const ItemSpec* spec_ = nullptr;
  std::vector<SampledItem> items_;
  std::int64_t table_items_ = 0;
  std::vector<Slice> slices_;
  std::vector<std::uint32_t> begins_;  // [items x columns + 1] into slices_.
  std::size_t columns_ = 0;
  std::vector<ChunkId> held_;  // One entry a reference.
};

}  // namespace menger
