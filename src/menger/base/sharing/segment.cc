#include "menger/base/sharing/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/memory_need.h"

namespace menger {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1; not in Debian 12's headers.

std::size_t PageSize() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

constexpr std::size_t RoundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

Error CannotMap(const char* what, std::size_t bytes, int error) {
  return FromErrno(fmt::format("cannot map {} of {}", what, MemoryText(static_cast<double>(bytes))),
                   error);
}

// Huge pages need an address whose rest equals the file's, so mappings begin at a multiple of one.
std::byte* MapAligned(int descriptor, std::size_t bytes, int protection) {
  const std::size_t reserved = bytes + kHugePage;
  void* const raw =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw CannotMap("addresses for a segment", bytes, errno);
  auto* const begin = static_cast<std::byte*>(raw);
  std::byte* const data = begin + (RoundUp(reinterpret_cast<std::uintptr_t>(raw), kHugePage) -
                                   reinterpret_cast<std::uintptr_t>(raw));
  if (mmap(data, bytes, protection, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(raw, reserved);
    throw CannotMap("a segment", bytes, error);
  }
  if (data != begin) munmap(begin, static_cast<std::size_t>(data - begin));
  std::byte* const end = data + RoundUp(bytes, PageSize());
  munmap(end, static_cast<std::size_t>(begin + reserved - end));
  return data;
}

FileDescriptor MakeSealed(const std::string& label, std::size_t bytes) {
  if (bytes == 0 || bytes % PageSize() != 0) {
    throw InvalidArgument("a segment has a multiple of {} bytes, not {}", PageSize(), bytes);
  }
  FileDescriptor file(memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw FromErrno(fmt::format("cannot make segment '{}' of {} bytes", label, bytes), errno);
  }
  return file;
}

std::size_t SealedSize(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    throw InvalidArgument("descriptor {} is not open", descriptor);
  }
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || status.st_size == 0) {
    throw InvalidArgument(
        "descriptor {} is no segment: it has {} bytes and is not sealed against shrinking",
        descriptor, status.st_size);
  }
  return static_cast<std::size_t>(status.st_size);
}

void CheckExtent(std::size_t offset, std::size_t bytes, std::size_t size) {
  if (offset > size || bytes > size - offset) {
    throw InvalidArgument("{} bytes at {} lie beyond a segment of {} bytes", bytes, offset, size);
  }
}

}  // namespace

SegmentPlace PlaceOfSegment(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    throw InvalidArgument("descriptor {} is not open", descriptor);
  }
  return {.process = static_cast<std::uint32_t>(getpid()),
          .descriptor = static_cast<std::uint32_t>(descriptor),
          .device = status.st_dev,
          .inode = status.st_ino};
}

// Looked at before it is opened: what opening does to other files is unknown.
FileDescriptor OpenSegment(const SegmentPlace& place) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_dev != place.device || status.st_ino != place.inode) {
    throw Unavailable("{} is not the segment that was meant", path);
  }
  return OpenForReading(path);
}

WritableSegment::WritableSegment(const std::string& label, std::size_t bytes)
    : WritableSegment(MakeSealed(label, bytes)) {}

WritableSegment::WritableSegment(FileDescriptor descriptor)
    : descriptor_(std::move(descriptor)),
      size_(SealedSize(descriptor_.get())),
      data_(MapAligned(descriptor_.get(), size_, PROT_READ | PROT_WRITE)) {}

WritableSegment::~WritableSegment() { munmap(data_, size_); }

FileDescriptor WritableSegment::OpenReadOnly() const {
  return OpenForReading(fmt::format("/proc/self/fd/{}", descriptor_.get()));
}

// MADV_COLLAPSE makes a huge page also where the system's settings leave shared memory without
// (`shmem_enabled` is usually `never`), but only if there is some page already; what has memory it
// would copy. So it is asked for only where the first page has none.
void WritableSegment::Prepare(std::size_t offset, std::size_t bytes) {
  CheckExtent(offset, bytes, size_);
  const std::size_t end = (offset + bytes) / kHugePage * kHugePage;
  for (std::size_t at = RoundUp(offset, kHugePage); at < end; at += kHugePage) {
    unsigned char resident = 0;
    if (mincore(data_ + at, PageSize(), &resident) != 0 || (resident & 1) != 0) continue;
    static_cast<void>(*static_cast<const volatile std::byte*>(data_ + at));
    if (madvise(data_ + at, kHugePage, kCollapse) != 0) return;
  }
}

void WritableSegment::ReleasePages(std::size_t offset, std::size_t bytes) {
  CheckExtent(offset, bytes, size_);
  const std::size_t begin = RoundUp(offset, PageSize());
  const std::size_t end = (offset + bytes) / PageSize() * PageSize();
  if (begin >= end) return;
  if (fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0) {
    throw FromErrno(fmt::format("cannot release {} bytes at {} of a segment", end - begin, begin),
                    errno);
  }
}

ReadableSegment::ReadableSegment(const FileDescriptor& descriptor)
    : size_(SealedSize(descriptor.get())), data_(MapAligned(descriptor.get(), size_, PROT_READ)) {}

ReadableSegment::~ReadableSegment() { munmap(const_cast<std::byte*>(data_), size_); }

}  // namespace menger
