#include "menger/runtime/memory/extent_allocator.h"

#include <algorithm>
#include <iterator>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kPage = ExtentAllocator::kPage;

}  // namespace

std::uint64_t WholePages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::pair<Extent, Extent> Split(Extent extent, std::uint64_t bytes) {
  if (bytes > extent.bytes) {
    throw InvalidArgument("cannot split {} bytes off an extent of {}", bytes, extent.bytes);
  }
  const std::uint64_t first = std::min(WholePages(bytes), extent.bytes);
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

Extent ExtentSet::Insert(Extent extent) {
  if (extent.bytes == 0) return extent;
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
  return extent;
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

std::optional<Extent> ExtentSet::Find(std::uint64_t bytes) const {
  const auto at = by_length_.lower_bound({bytes, 0});
  if (at == by_length_.end()) return std::nullopt;
  return Extent{at->second, bytes};
}

std::optional<Extent> ExtentSet::Longest() const {
  if (by_length_.empty()) return std::nullopt;
  const auto [length, offset] = *by_length_.rbegin();
  return Extent{offset, length};
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
  bytes = WholePages(bytes);
  std::optional<Extent> found = warm_.Find(bytes);
  if (!found) found = free_.Find(bytes);
  if (!found) return std::nullopt;
  free_.Remove(*found);
  warm_.Remove(*found);
  return found;
}

void ExtentAllocator::Free(Extent extent) {
  if (extent.bytes == 0) return;
  if (extent.offset > size_ || extent.bytes > size_ - extent.offset) {
    throw Internal("{} bytes at {} are beyond a segment of {}", extent.bytes, extent.offset, size_);
  }
  if (extent.offset % kPage != 0 || extent.bytes % kPage != 0) {
    throw Internal("{} bytes at {} are not whole pages", extent.bytes, extent.offset);
  }
  free_.Insert(extent);
  warm_.Insert(extent);
}

std::vector<Extent> ExtentAllocator::Trim(std::uint64_t bytes) {
  std::vector<Extent> trimmed;
  std::uint64_t left = WholePages(std::min(bytes, warm_.bytes()));
  while (left > 0) {
    const Extent longest = warm_.Longest().value();
    const std::uint64_t length = std::min(longest.bytes, left);
    trimmed.push_back({longest.end() - length, length});
    warm_.Remove(trimmed.back());
    left -= length;
  }
  return trimmed;
}

}  // namespace menger
