#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace menger {

// A run of zeroed bytes, aligned to a page, released when the last owner goes. Pages cost nothing
// until touched, so a buffer may be sized for the worst case.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* data() = 0;
  virtual std::size_t size() const = 0;
};

// Private to this process. Throws Unavailable when the system has no more.
std::unique_ptr<Memory> AllocatePlainMemory(std::size_t bytes);

// As AllocatePlainMemory; others may give memory that a device reads by itself.
using MemoryAllocator = std::function<std::unique_ptr<Memory>(std::size_t bytes)>;

// Shared with every process that maps the same descriptor. The segment has no name in the file
// system (memfd), so it vanishes with its last user however that user dies. Its size is sealed: a
// ReadableSegment (base/sharing/segment.h) can map it, too.
class SharedMemory : public Memory {
 public:
  // Owned by this object; pass it to a child to share the segment. -1 once it is closed.
  virtual int descriptor() const = 0;
  // Whoever shares the segment has it: the memory stays, and nobody else can be given it.
  virtual void CloseDescriptor() = 0;
};
std::unique_ptr<SharedMemory> AllocateSharedMemory(const std::string& label, std::size_t bytes);

// Maps a segment made by AllocateSharedMemory; takes its own duplicate of the descriptor. Throws
// InvalidArgument when the segment is smaller than `bytes`.
std::unique_ptr<SharedMemory> MapSharedMemory(int descriptor, std::size_t bytes);

}  // namespace menger
