#include "menger/tensor/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/memory_need.h"

namespace menger {
namespace {

// mmap refuses a length of 0.
std::size_t MappedSize(std::size_t bytes) { return std::max<std::size_t>(bytes, 1); }

class MappedMemory final : public SharedMemory {
 public:
  // Takes the descriptor (-1: private memory).
  MappedMemory(std::size_t bytes, int descriptor) : size_(bytes), descriptor_(descriptor) {
    const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void* const address =
        mmap(nullptr, MappedSize(bytes), PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      if (descriptor >= 0) close(descriptor);
      const std::string text =
          fmt::format("cannot map {} of memory: {}", MemoryText(static_cast<double>(bytes)),
                      std::strerror(error));
      if (error == ENOMEM) throw OutOfMemory(text);
      throw Unavailable("{}", text);
    }
    data_ = static_cast<std::byte*>(address);
  }
  ~MappedMemory() override {
    munmap(data_, MappedSize(size_));
    CloseDescriptor();
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() override { return data_; }
  std::size_t size() const override { return size_; }
  int descriptor() const override { return descriptor_; }
  void CloseDescriptor() override {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }

 private:
  const std::size_t size_;
  int descriptor_;
  std::byte* data_ = nullptr;
};

}  // namespace

std::unique_ptr<Memory> AllocatePlainMemory(std::size_t bytes) {
  return std::make_unique<MappedMemory>(bytes, -1);
}

std::unique_ptr<SharedMemory> AllocateSharedMemory(const std::string& label, std::size_t bytes) {
  const int descriptor = memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    throw Unavailable("cannot make shared memory '{}': {}", label, std::strerror(errno));
  }
  if (ftruncate(descriptor, static_cast<off_t>(MappedSize(bytes))) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    close(descriptor);
    throw Unavailable("cannot make shared memory '{}' of {} bytes: {}", label, bytes,
                      std::strerror(error));
  }
  return std::make_unique<MappedMemory>(bytes, descriptor);
}

std::unique_ptr<SharedMemory> MapSharedMemory(int descriptor, std::size_t bytes) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    throw InvalidArgument("descriptor {} is not shared memory: {}", descriptor,
                          std::strerror(errno));
  }
  if (static_cast<std::size_t>(status.st_size) < bytes) {
    throw InvalidArgument("shared memory of {} bytes is too small: {} are needed", status.st_size,
                          bytes);
  }
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0)
    throw Unavailable("cannot duplicate descriptor {}: {}", descriptor, std::strerror(errno));
  return std::make_unique<MappedMemory>(bytes, own);
}

}  // namespace menger
