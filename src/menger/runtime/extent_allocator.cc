#include "menger/runtime/extent_allocator.h"

#include <algorithm>
#include <iterator>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kMisalignedMax = 16;  // Candidates that Find looks at before it takes a longer one.

constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::pair<Extent, Extent> Split(Extent extent, std::uint64_t bytes) {
  if (bytes > extent.bytes) {
    throw InvalidArgument("cannot split {} bytes off an extent of {}", bytes, extent.bytes);
  }
  const std::uint64_t first = std::min(RoundUp(bytes, ExtentAllocator::kAlignment), extent.bytes);
  return {{extent.offset, first}, {extent.offset + first, extent.bytes - first}};
}

ExtentSet::Iterator ExtentSet::Add(Iterator hint, Extent extent) {
  by_length_.emplace(extent.bytes, extent.offset);
  bytes_ += extent.bytes;
  return by_offset_.emplace_hint(hint, extent.offset, extent.bytes);
}

ExtentSet::Iterator ExtentSet::Erase(Iterator at) {
  by_length_.erase({at->second, at->first});
  bytes_ -= at->second;
  return by_offset_.erase(at);
}

void ExtentSet::Insert(Extent extent) {
  if (extent.bytes == 0) return;
  Iterator after = by_offset_.lower_bound(extent.offset);
  Iterator before = after == by_offset_.begin() ? by_offset_.end() : std::prev(after);
  const bool meets_before =
      before != by_offset_.end() && before->first + before->second >= extent.offset;
  if ((meets_before && before->first + before->second > extent.offset) ||
      (after != by_offset_.end() && after->first < extent.end())) {
    throw Internal("{} bytes at {} are free already", extent.bytes, extent.offset);
  }
  if (after != by_offset_.end() && after->first == extent.end()) {
    extent.bytes += after->second;
    after = Erase(after);
  }
  if (meets_before) {
    extent = {before->first, before->second + extent.bytes};
    after = Erase(before);
  }
  Add(after, extent);
}

void ExtentSet::Remove(Extent extent) {
  Iterator at = by_offset_.upper_bound(extent.offset);
  if (at != by_offset_.begin()) --at;
  while (at != by_offset_.end() && at->first < extent.end()) {
    const Extent old{at->first, at->second};
    if (old.end() <= extent.offset) {
      ++at;
      continue;
    }
    at = Erase(at);
    if (old.offset < extent.offset) Add(at, {old.offset, extent.offset - old.offset});
    if (old.end() > extent.end()) Add(at, {extent.end(), old.end() - extent.end()});
  }
}

std::optional<Extent> ExtentSet::Find(std::uint64_t bytes, std::uint64_t alignment) const {
  auto at = by_length_.lower_bound({bytes, 0});
  for (int i = 0; at != by_length_.end(); ++at, ++i) {
    if (i == kMisalignedMax) at = by_length_.lower_bound({bytes + alignment - 1, 0});
    if (at == by_length_.end()) break;
    const auto [length, offset] = *at;
    const std::uint64_t begin = RoundUp(offset, alignment);
    if (begin + bytes <= offset + length) return Extent{begin, bytes};
  }
  return std::nullopt;
}

std::optional<Extent> ExtentSet::Longest() const {
  if (by_length_.empty()) return std::nullopt;
  const auto [length, offset] = *by_length_.rbegin();
  return Extent{offset, length};
}

bool ExtentSet::Contains(std::uint64_t offset) const {
  auto at = by_offset_.upper_bound(offset);
  return at != by_offset_.begin() && std::prev(at)->first + std::prev(at)->second > offset;
}

ExtentAllocator::ExtentAllocator(std::uint64_t size) : size_(size) {
  if (size == 0 || size % kPage != 0) {
    throw InvalidArgument("a segment has a multiple of {} bytes, not {}", kPage, size);
  }
  free_.Insert({0, size});
}

std::optional<Extent> ExtentAllocator::Allocate(std::uint64_t bytes) {
  if (bytes == 0) throw InvalidArgument("an extent has at least one byte");
  if (bytes > size_) return std::nullopt;
  const std::uint64_t alignment = bytes > kPageAlignedAbove ? kPage : kAlignment;
  bytes = RoundUp(bytes, alignment);
  std::optional<Extent> found = warm_.Find(bytes, alignment);
  if (!found) found = free_.Find(bytes, alignment);
  if (!found) return std::nullopt;
  free_.Remove(*found);
  warm_.Remove(*found);
  // Where it ends within a cold page, the rest of that page becomes warm with it.
  const Extent rest{found->end(), RoundUp(found->end(), kPage) - found->end()};
  if (rest.bytes > 0 && free_.Contains(rest.offset) && !warm_.Contains(rest.offset)) {
    warm_.Insert(rest);
  }
  return found;
}

void ExtentAllocator::Free(Extent extent) {
  if (extent.bytes == 0) return;
  if (extent.offset > size_ || extent.bytes > size_ - extent.offset) {
    throw Internal("{} bytes at {} are beyond a segment of {}", extent.bytes, extent.offset, size_);
  }
  free_.Insert(extent);
  warm_.Insert(extent);
}

std::vector<Extent> ExtentAllocator::Trim(std::uint64_t bytes) {
  std::vector<Extent> trimmed;
  bytes = std::min(bytes, warm_.bytes());
  std::uint64_t sum = 0;
  while (sum < bytes) {
    const Extent longest = warm_.Longest().value_or(Extent{});
    const std::uint64_t end = longest.end() / kPage * kPage;
    const std::uint64_t begin = RoundUp(longest.offset, kPage);
    if (begin >= end) break;
    const std::uint64_t length = std::min(end - begin, RoundUp(bytes - sum, kPage));
    trimmed.push_back({end - length, length});
    warm_.Remove(trimmed.back());
    sum += length;
  }
  return trimmed;
}

}  // namespace menger
