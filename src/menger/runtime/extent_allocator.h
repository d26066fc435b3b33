#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace menger {

// A range of bytes of a segment.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  std::uint64_t end() const { return offset + bytes; }
  bool operator==(const Extent&) const = default;
};

// Cuts an allocated extent in two that are freed independently: the first holds `bytes` bytes,
// rounded up so that the rest is aligned; the rest may be empty. Throws InvalidArgument for more
// than the extent has.
std::pair<Extent, Extent> Split(Extent extent, std::uint64_t bytes);

// Disjoint extents, found by place and by length. Those that touch become one.
class ExtentSet {
 public:
  // Throws Internal if the set has a part of it already.
  void Insert(Extent extent);
  // Removes what the set has of it.
  void Remove(Extent extent);

  // The lowest of the shortest extents with room for `bytes` at a multiple of `alignment`, cut to
  // that room; nothing if there is none. (Where many are long enough but misaligned, a longer one.)
  std::optional<Extent> Find(std::uint64_t bytes, std::uint64_t alignment) const;
  std::optional<Extent> Longest() const;

  bool Contains(std::uint64_t offset) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Iterator = std::map<std::uint64_t, std::uint64_t>::iterator;
  Iterator Add(Iterator hint, Extent extent);
  Iterator Erase(Iterator at);

  std::map<std::uint64_t, std::uint64_t> by_offset_;             // Offset → bytes.
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_length_;  // (Bytes, offset).
  std::uint64_t bytes_ = 0;
};

// Decides which extents of a segment are in use. Pure bookkeeping, which touches no memory: the
// node does it for segments that others write.
//
// Only what is free has a record, so what is allocated costs nothing, may be split at will, and an
// owner's extents can be freed in any pieces. Each operation takes O(log n) of the free extents.
//
// Warm memory, which has pages because it was allocated since the start or the last Trim, is
// preferred: writing there is ten times as fast as where the system must first find pages. Of what
// fits, the shortest is taken, then the lowest. One thread at a time.
class ExtentAllocator {
 public:
  static constexpr std::uint64_t kAlignment = 64;
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kPageAlignedAbove = std::uint64_t{1} << 20;

  // Throws InvalidArgument unless `size` is a multiple of kPage.
  explicit ExtentAllocator(std::uint64_t size);

  // At least `bytes` (1 or more), rounded up to kAlignment; more than kPageAlignedAbove: whole
  // pages. Nothing if there is no such room. Throws InvalidArgument for 0 bytes.
  std::optional<Extent> Allocate(std::uint64_t bytes);

  // An allocated extent, or a part of one that Split has given; an empty one is nothing. Throws
  // Internal if some of it is free already or lies beyond the segment.
  void Free(Extent extent);

  // Chooses free pages whose memory the caller gives back to the system before it allocates again:
  // at least `bytes` bytes, or all there are but for some within extents of less than two pages.
  // They are cold from now on. Taken from the longest extents, so that they are few.
  std::vector<Extent> Trim(std::uint64_t bytes);

  std::uint64_t size() const { return size_; }
  std::uint64_t free_bytes() const { return free_.bytes(); }
  std::uint64_t warm_free_bytes() const { return warm_.bytes(); }

 private:
  const std::uint64_t size_;
  ExtentSet free_;
  // The part of free_ that has pages. What is free and not here is always whole pages.
  ExtentSet warm_;
};

}  // namespace menger
