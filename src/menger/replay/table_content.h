#pragma once

#include <cstdint>
#include <vector>

#include "menger/base/random.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/insert_streams.h"
#include "menger/replay/item_pool.h"
#include "menger/replay/selectors/rate_limiter.h"

namespace menger {

// What a table has counted, and where its random streams stand. Plain bytes.
struct TableCounts {
  RateLimiterCounts limiter;
  std::int64_t evicted = 0;
  std::int64_t dropped_stale = 0;
  std::int64_t stale_keys = 0;
  std::int64_t repeated = 0;
  double priority_max = 0;
  std::uint64_t life = 0;
  RandomState sampler_random;
  RandomState remover_random;

  bool operator==(const TableCounts&) const = default;
};

// Everything that a table remembers, beside its options: another table with the same options and
// this content draws the same items from then on.
struct TableContent {
  TableCounts counts;
  RateLimiterOptions limiter;  // Under which it was counted.
  PoolContent pool;
  std::vector<std::uint32_t> sampler_order;  // See Selector::order.
  std::vector<std::uint32_t> remover_order;
  std::vector<InsertStreamEnd> streams;  // See InsertStreams::CopyTo.
};

// What has changed in a table since a moment: the slots and streams that are not as they were.
struct TableDelta {
  TableCounts counts;
  std::vector<std::uint32_t> slots;
  std::vector<Item> items;                  // Of each slot; number 0: it is free now.
  std::vector<std::uint16_t> slice_counts;  // [slots x columns]; of free slots they mean nothing.
  std::vector<Slice> slices;
  std::vector<InsertStreamEnd> streams;  // See InsertStreams::TakeChanges.
  std::uint64_t streams_left = 0;        // How many the table knows.
};

}  // namespace menger
