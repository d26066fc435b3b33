#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "menger/tensor/spec.h"

namespace menger {

// A chunk's place in its store. Free places are used again; whoever names a chunk holds a reference
// to it (ChunkStore), so a name in use never changes its meaning.
using ChunkId = std::uint32_t;
inline constexpr ChunkId kNoChunk = 0xffffffff;

// Consecutive rows of one chunk. No address: any process that maps the store can follow it.
struct Slice {
  ChunkId chunk = 0;
  std::uint16_t offset = 0;
  std::uint16_t length = 0;

  bool operator==(const Slice&) const = default;
};

// A chunk, and another one with the same rows that takes its place.
struct ChunkTwin {
  ChunkId from = 0;
  ChunkId to = 0;
};

// Names an item while it lives and ever after: a key that outlived its item is seen to be stale.
// `number` counts the insertions of the table. Where a process ends before all of them are on the
// disk, its successor gives the last numbers again, in another `life` (each recovery begins one);
// an item keeps the life in which it was inserted. `shard` is the table's. `slot` is where the item
// is found without a search.
struct ItemKey {
  std::uint64_t number = 0;
  std::uint32_t slot = 0;
  std::uint32_t life = 0;
  std::uint32_t shard = 0;

  bool operator==(const ItemKey&) const = default;
};

// A key as one number, for interfaces that have no room for more: from the lowest on 34 bits of the
// item's number, 24 of its slot, 6 of its life. Throws FailedPrecondition, naming what does not
// fit: the 2^34th insertion, a table of more than 2^24 items, the 64th recovery, a shard other than
// 0. A number that names an item names no other one.
std::uint64_t PackKey(const ItemKey& key);
ItemKey UnpackKey(std::uint64_t packed);

// The oldest and the newest parameter version that acted in the rows of an item.
struct VersionRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool operator==(const VersionRange&) const = default;
};

// Where the rows go that a column lacks: they are zeros.
enum class Padding : std::uint8_t {
  kFront,  // Stacks of frames at the start of an episode.
  kBack,   // Rewards of n steps that an episode's end cut short; sequences.
};

// One column of a table's items: up to `rows` rows of a leaf of the steps. Several columns may show
// the same leaf (observation and next_observation): its rows are stored once.
struct ItemColumn {
  std::string name;
  std::string leaf;
  int rows = 1;
  Padding padding = Padding::kBack;

  bool operator==(const ItemColumn&) const = default;
};

// What the items of a table look like: columns of steps that are described by `steps`. Or the table
// is open: its items are one column of slices of any number, of chunks of ByteRows of whatever
// size, and only who writes and reads them knows what they mean.
struct ItemSpec {
  Spec steps;
  std::vector<ItemColumn> columns;
  bool open = false;
  std::string notes =
      {};  // Of an open table: for who writes and reads it; looked at by nobody else.

  static ItemSpec Open(std::string notes = {});

  // Index of the column, or -1.
  int Find(std::string_view name) const;

  // The leaf that a column shows. Throws InvalidArgument, naming the nearest leaf, if there is
  // none.
  const LeafSpec& LeafOf(const ItemColumn& column) const;

  // Throws InvalidArgument that names the column: none at all, a repeated or empty name, an unknown
  // leaf, rows outside 1 .. 65535; for an open table that is not as Open makes it.
  void Check() const;

  // Of the steps of an item that shows as many as its longest column; 1 for an open table.
  std::size_t BytesMin() const;

  // Throws InvalidArgument for an open table: its items have no leaves.
  void CheckHasLeaves() const;
};

}  // namespace menger
