#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "menger/base/files.h"
#include "menger/runtime/memory/extent_allocator.h"

namespace menger {

// Where a value lies on the disk.
struct SpilledValue {
  std::uint64_t file = 0;  // A number that SpillFiles gives.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3 of its bytes.
};

// Values that have been moved from memory to the disk. They last as long as this process: the files
// have no name, so nothing stays behind, however it ends.
//
// Values lie in files of 64 MiB or more, so small ones share one. The room of one that is freed is
// used again, and goes back to the file system at once where that can take it out of the middle of
// a file; with its last value the file goes. Any thread; reads and writes of several threads
// overlap.
class SpillFiles {
 public:
  // Files lie in the file system of `folder`, which is made if missing. The values that are not
  // freed have at most `budget` bytes; so have the files, where freed room does not go back. Throws
  // FailedPrecondition if no file can be made there.
  SpillFiles(std::string folder, std::uint64_t budget);

  // The value is the concatenation of `parts`, which stay unchanged meanwhile. Throws Unavailable
  // when the budget or the disk is full; nothing is kept then.
  SpilledValue Write(std::span<const std::span<const std::byte>> parts);

  // Fills `bytes`, of which there must be as many as the value has. Throws DataLoss if what the
  // disk gives is not what was written.
  void Read(const SpilledValue& value, std::span<std::byte> bytes) const;

  // Each value once, when nobody reads it.
  void Free(const SpilledValue& value);

  std::uint64_t used_bytes() const;  // Of values that are not freed.
  std::uint64_t budget() const { return budget_; }

 private:
  struct File {
    FileDescriptor descriptor;
    std::uint64_t bytes = 0;  // Its length: values and
    ExtentSet free;           // what they have left.
    std::int64_t values = 0;  // Not freed yet.
  };

  // Room that was freed, or at the end of the newest file, or in a new one.
  SpilledValue Reserve(std::uint64_t bytes);
  std::optional<SpilledValue> TakeFreed(std::uint64_t bytes);
  SpilledValue Append(std::uint64_t bytes);
  void GiveBack(const File& file, const Extent& freed, const Extent& around);
  const FileDescriptor& DescriptorOf(const SpilledValue& value) const;

  const std::string folder_;
  const std::uint64_t budget_;
  const std::uint64_t file_bytes_;  // A file that has as many gets no more values.

  mutable std::mutex mutex_;
  std::map<std::uint64_t, File> files_;  // Guarded by mutex_; nodes stay where they are.
  std::uint64_t next_file_ = 0;          // Guarded by mutex_.
  std::uint64_t used_ = 0;               // Guarded by mutex_.
  std::uint64_t length_ = 0;             // Of all files. Guarded by mutex_.
  bool gives_back_ = true;               // The file system takes holes. Guarded by mutex_.
};

}  // namespace menger
