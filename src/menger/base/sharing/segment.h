#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "menger/base/files.h"

namespace menger {

// Memory in which one process writes large values and others read them in place.
//
// It is a memfd: it has no name in the file system and goes with the last process that has it,
// however that ends. Its size is fixed (sealed), so no reader can be killed by SIGBUS because
// somebody has made it smaller. Pages cost nothing until touched. Who may write where is decided
// elsewhere (ExtentAllocator): a segment knows of no extents, and its memory holds nothing but
// values.
//
// An extent below is a range of bytes; one beyond the end is InvalidArgument. Any thread.

// By which other processes of the machine that are the same user's find a segment: a descriptor
// that a process has of it, and which file that is. It means nothing on another machine, or where
// processes have other numbers (in another container).
struct SegmentPlace {
  std::uint32_t process = 0;  // 0: none.
  std::uint32_t descriptor = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};
SegmentPlace PlaceOfSegment(int descriptor);  // Of this process.
// It cannot be mapped for writing. Throws Unavailable if there is no such segment.
FileDescriptor OpenSegment(const SegmentPlace& place);

// The end of the process that writes.
class WritableSegment {
 public:
  // Makes one of `bytes` bytes, a multiple of the page. `label` is what /proc shows. Throws
  // Unavailable if the system has no more.
  WritableSegment(const std::string& label, std::size_t bytes);

  // The writer's side of one that another process has made. Throws InvalidArgument if the
  // descriptor is no segment.
  explicit WritableSegment(FileDescriptor descriptor);

  WritableSegment(const WritableSegment&) = delete;
  WritableSegment& operator=(const WritableSegment&) = delete;
  ~WritableSegment();

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::size_t size() const { return size_; }

  // For its writer.
  int descriptor() const { return descriptor_.get(); }
  // For everybody else: it cannot be mapped for writing.
  FileDescriptor OpenReadOnly() const;

  // Makes ready to write an extent that may never have been touched: where it covers whole huge
  // pages (2 MiB) that have no memory, they get some at once, instead of page by page as they are
  // touched. A hint: costs a microsecond a huge page where there is nothing to do, fails silently.
  void Prepare(std::size_t offset, std::size_t bytes);

  // Gives the memory of all pages that lie within the extent back; they read as zeros then.
  void ReleasePages(std::size_t offset, std::size_t bytes);

 private:
  FileDescriptor descriptor_;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

// The end of one that only reads.
class ReadableSegment {
 public:
  // Maps a segment that another process has made; throws InvalidArgument if the descriptor is no
  // segment (not sealed against shrinking, or empty). The descriptor may be closed afterwards.
  explicit ReadableSegment(const FileDescriptor& descriptor);

  ReadableSegment(const ReadableSegment&) = delete;
  ReadableSegment& operator=(const ReadableSegment&) = delete;
  ~ReadableSegment();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace menger
