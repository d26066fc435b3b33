#include "menger/replay/chunks/block_allocator.h"

#include <iterator>

namespace menger {

BlockAllocator::BlockAllocator(std::size_t bytes) { Add(0, bytes); }

std::optional<std::size_t> BlockAllocator::Take(std::size_t bytes) {
  const auto smallest = begins_by_size_.lower_bound({bytes, 0});
  if (smallest == begins_by_size_.end()) return std::nullopt;
  const auto [found, begin] = *smallest;
  Remove(bytes_.find(begin));
  Add(begin + bytes, found - bytes);
  return begin;
}

void BlockAllocator::Give(std::size_t begin, std::size_t bytes) {
  const auto after = bytes_.lower_bound(begin);
  if (after != bytes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      Remove(before);
    }
  }
  if (after != bytes_.end() && begin + bytes == after->first) {
    bytes += after->second;
    Remove(after);
  }
  Add(begin, bytes);
}

std::size_t BlockAllocator::largest() const {
  return begins_by_size_.empty() ? 0 : begins_by_size_.rbegin()->first;
}

void BlockAllocator::Add(std::size_t begin, std::size_t bytes) {
  if (bytes == 0) return;
  bytes_.emplace(begin, bytes);
  begins_by_size_.emplace(bytes, begin);
}

void BlockAllocator::Remove(std::map<std::size_t, std::size_t>::iterator range) {
  begins_by_size_.erase({range->second, range->first});
  bytes_.erase(range);
}

}  // namespace menger
