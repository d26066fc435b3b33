#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "menger/runtime/object_value.h"
#include "menger/runtime/segment.h"
#include "menger/runtime/task_error.h"

namespace menger {

// The node's larger values: segments of shared memory, one a process that writes, and which parts
// of them are in use. The node alone allocates; a process writes in its own segment, where it was
// given room, and everybody reads.
//
// Under the node's lock; what Write and Read give may be used without.
class ValueStore {
 public:
  // `bytes_max` in all segments together.
  explicit ValueStore(std::uint64_t bytes_max);

  // A segment for one more writer.
  std::uint32_t AddSegment();
  const WritableSegment& segment(std::uint32_t number) const {
    return *segments_.at(number).memory;
  }

  // Room in a segment; false if the bytes in use would be more than the store may have.
  bool Allocate(std::uint32_t segment, std::uint64_t bytes, Extent& extent);
  void Free(const Extent& extent);
  // Whether that was allocated in one piece and not freed.
  bool IsAllocated(const Extent& extent) const;

  std::span<std::byte> Write(const Extent& extent);
  std::span<const std::byte> Read(const Extent& extent);

  // Says that there is no room for so many bytes.
  TaskFailure Full(std::uint64_t bytes) const;

  std::uint64_t bytes_used() const { return used_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct Segment {
    std::unique_ptr<WritableSegment> memory;
    std::map<std::uint64_t, std::uint64_t> free;  // Bytes by offset.
    std::map<std::uint64_t, std::uint64_t> used;
  };

  const std::uint64_t bytes_max_;
  std::uint64_t used_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace menger
