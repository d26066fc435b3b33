#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/sharing/segment.h"
#include "menger/runtime/memory/extent_allocator.h"
#include "menger/runtime/values/object_value.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// The node's larger values: segments of shared memory, one a process that writes, and which parts
// of them are in use. The node alone allocates; a process writes in its own segment, where it was
// given room, and everybody reads.
//
// Segments of other nodes of the machine are read likewise, and count for nothing here.
//
// Memory that was used once is used again, as long as all that the system has given does not exceed
// `bytes_max`; then free memory elsewhere is given back. So is what nobody has used for a while,
// but for kKeptFreeBytes.
//
// Under the node's lock; what Write and Read give may be used without.
class ValueStore {
 public:
  // `bytes_max` in all segments together, rounded up to whole pages.
  explicit ValueStore(std::uint64_t bytes_max);

  // A segment for one more writer.
  std::uint32_t AddSegment();
  bool HasSegment(std::uint32_t number) const {
    return number < segments_.size() || shown_.contains(number);
  }
  // For its writer.
  int descriptor(std::uint32_t number) const { return segments_.at(number).memory->descriptor(); }
  // For those who read.
  FileDescriptor OpenReadOnly(std::uint32_t number) const;

  // Room in a segment; false if the bytes in use would be more than the store may have.
  bool Allocate(std::uint32_t segment, std::uint64_t bytes, SharedExtent& extent);
  void Free(const SharedExtent& extent);

  // Room that a process was given. It says of parts of it that values lie there, in any order, or
  // that it needs them no longer: false if that is not its to say.
  void Grant(const SharedExtent& extent);
  bool Publish(const SharedExtent& extent);
  bool Return(const SharedExtent& extent);
  // The writer of a segment is gone: what it was given and has not published is free.
  void DropGrants(std::uint32_t segment);

  std::span<std::byte> Write(const SharedExtent& extent);
  std::span<const std::byte> Read(const SharedExtent& extent) const;

  // ---- Another node's memory (SharedExtent::is_shown).
  // Throws InvalidArgument for a file that is no segment, Unavailable where there are no addresses.
  std::uint32_t AddShown(FileDescriptor file);
  void DropShown(std::uint32_t segment);
  // Where others find a segment: this store's own, or one that is shown.
  SegmentPlace PlaceOf(std::uint32_t segment) const;
  std::uint64_t SegmentBytes(std::uint32_t segment) const;
  // Is told what of another's is freed.
  void OnShownFreed(std::function<void(const SharedExtent& extent)> tell) {
    on_shown_freed_ = std::move(tell);
  }

  // Says that there is no room for so many bytes.
  TaskFailure Full(std::uint64_t bytes) const;

  // ---- Memory that nobody uses, to be called now and then.
  static constexpr std::uint64_t kKeptFreeBytes = std::uint64_t{32} << 20;
  // What was free all the time since the last call, as nobody needs it, is to be given back.
  void LookForUnused();
  // Gives back so many bytes of that at most; true if there are more.
  bool GiveBack(std::uint64_t bytes);
  // Gives back all that is free: nothing more comes.
  void GiveBackAll();

  std::uint64_t bytes_used() const { return used_; }
  std::uint64_t bytes_resident() const { return used_ + warm_; }  // In use, or free with memory.
  std::uint64_t bytes_granted() const;                            // In use, but no value yet.
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  // What an extent takes up of its segment.
  static std::uint64_t Occupied(const SharedExtent& extent);
  void FreeOwn(std::uint32_t segment, const Extent& extent);
  void Trim();
  // Of the segment that has the most: so many bytes, or what it has. How many that were.
  std::uint64_t TrimMost(std::uint64_t bytes);

  struct Segment {
    std::unique_ptr<WritableSegment> memory;
    std::unique_ptr<ExtentAllocator> extents;
    std::map<std::uint64_t, std::uint64_t> granted;  // Bytes by offset.
  };

  struct Shown {
    FileDescriptor file;
    std::unique_ptr<ReadableSegment> memory;
  };

  const std::uint64_t bytes_max_;
  std::uint64_t used_ = 0;
  std::uint64_t warm_ = 0;        // Free, with memory: now,
  std::uint64_t least_warm_ = 0;  // and the least since LookForUnused,
  std::uint64_t unused_ = 0;      // of which so much is to be given back.
  std::vector<Segment> segments_;
  std::map<std::uint32_t, Shown> shown_;
  std::uint32_t last_shown_ = SharedExtent::kShownSegments;
  std::function<void(const SharedExtent& extent)> on_shown_freed_;
};

}  // namespace menger
