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

// Rounded up to whole pages.
std::uint64_t WholePages(std::uint64_t bytes);

// Cuts an allocated extent in two that are freed independently: the first holds `bytes` bytes,
// rounded up to whole pages; the rest may be empty. Throws InvalidArgument for more than the extent
// has.
std::pair<Extent, Extent> Split(Extent extent, std::uint64_t bytes);

// Disjoint extents, found by place and by length. Those that touch become one.
class ExtentSet {
 public:
  // Throws Internal if the set has a part of it already. Gives what it has become a part of.
  Extent Insert(Extent extent);
  // Removes what the set has of it.
  void Remove(Extent extent);

  // The lowest of the shortest extents with room for `bytes`, cut to that room; nothing if there is
  // none.
  std::optional<Extent> Find(std::uint64_t bytes) const;
  std::optional<Extent> Longest() const;

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
// It deals in whole pages: were one shared, its memory could not go back to the system before the
// last value in it is gone, and how much memory a store has would not be known. Smaller values than
// several pages do not go to segments.
//
// Warm memory, which has pages because it was allocated since the start or the last Trim, is
// preferred: writing there is ten times as fast as where the system must first find pages. Of what
// fits, the shortest is taken, then the lowest. One thread at a time.
class ExtentAllocator {
 public:
  static constexpr std::uint64_t kPage = 4096;

  // Throws InvalidArgument unless `size` is a multiple of kPage.
  explicit ExtentAllocator(std::uint64_t size);

  // `bytes` (1 or more), rounded up to whole pages. Nothing if there is no such room. Throws
  // InvalidArgument for 0 bytes.
  std::optional<Extent> Allocate(std::uint64_t bytes);

  // An allocated extent, or a part of one that Split has given; an empty one is nothing. Throws
  // Internal if some of it is free already, lies beyond the segment or is not whole pages.
  void Free(Extent extent);

  // Chooses free pages whose memory the caller gives back to the system before it allocates again:
  // `bytes` bytes, rounded up to whole pages, or all there are. They are cold from now on. Taken
  // from the longest extents, so that they are few.
  std::vector<Extent> Trim(std::uint64_t bytes);

  std::uint64_t size() const { return size_; }
  std::uint64_t free_bytes() const { return free_.bytes(); }
  std::uint64_t warm_free_bytes() const { return warm_.bytes(); }

 private:
  const std::uint64_t size_;
  ExtentSet free_;
  ExtentSet warm_;  // The part of free_ that has memory.
};

}  // namespace menger
