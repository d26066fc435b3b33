#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace menger {

// Cuts one range of addresses into blocks, and joins what is given back with the free neighbours.
//
// A block comes from the smallest free range that has room, the lowest of equals, so blocks of many
// sizes lie close together and addresses that were never used are touched last. It knows offsets
// only and touches no memory. O(log of the free ranges). One thread at a time.
class BlockAllocator {
 public:
  explicit BlockAllocator(std::size_t bytes);

  // Where a block of `bytes` (> 0) begins, or nothing if no free range is as large.
  std::optional<std::size_t> Take(std::size_t bytes);
  // A block that was taken.
  void Give(std::size_t begin, std::size_t bytes);

  std::size_t largest() const;  // Of the free ranges.

 private:
  void Add(std::size_t begin, std::size_t bytes);
  void Remove(std::map<std::size_t, std::size_t>::iterator range);

  std::map<std::size_t, std::size_t> bytes_;                      // Of free ranges, by begin.
  std::set<std::pair<std::size_t, std::size_t>> begins_by_size_;  // The same ranges: bytes, begin.
};

}  // namespace menger
