#include "menger/runtime/memory/spill_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint64_t kFileBytesMin = std::uint64_t{64} << 20;
// Each file is a descriptor; processes often have no more than 1024.
constexpr std::uint64_t kFilesMax = 256;
constexpr std::uint64_t kPage = ExtentAllocator::kPage;

// Has no name: O_TMPFILE, or where the file system does not know that, unlinked at once.
FileDescriptor MakeNamelessFile(const std::string& folder) {
  FileDescriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string path = folder + "/spill.XXXXXX";
    file = FileDescriptor(mkostemp(path.data(), O_CLOEXEC));
    if (file.valid()) unlink(path.c_str());
  }
  if (!file.valid()) throw FromErrno(fmt::format("cannot make a file in '{}'", folder), errno);
  return file;
}

void WriteAllAt(const FileDescriptor& file, std::uint64_t offset, std::span<const std::byte> bytes,
                const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FromErrno(fmt::format("cannot spill to '{}'", folder), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

using HashState = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>;

}  // namespace

SpillFiles::SpillFiles(std::string folder, std::uint64_t budget)
    : folder_(std::move(folder)),
      budget_(budget),
      file_bytes_(std::max(kFileBytesMin, budget / kFilesMax)) {
  CreateFolders(folder_);
  MakeNamelessFile(folder_);  // Better said now than when memory is full.
}

SpilledValue SpillFiles::Reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > budget_ - used_) {
    throw Unavailable("no room to spill {} bytes to '{}': {} of a budget of {} bytes are in use",
                      bytes, folder_, used_, budget_);
  }
  const std::optional<SpilledValue> freed = TakeFreed(bytes);
  const SpilledValue value = freed ? *freed : Append(bytes);
  ++files_.at(value.file).values;
  used_ += bytes;
  return value;
}

std::optional<SpilledValue> SpillFiles::TakeFreed(std::uint64_t bytes) {
  for (auto& [number, file] : files_) {
    const std::optional<Extent> found = file.free.Find(bytes);
    if (!found || bytes == 0) continue;
    file.free.Remove(*found);
    return SpilledValue{.file = number, .offset = found->offset, .bytes = bytes};
  }
  return std::nullopt;
}

SpilledValue SpillFiles::Append(std::uint64_t bytes) {
  if (!gives_back_ && bytes > budget_ - std::min(length_, budget_)) {
    throw Unavailable(
        "no room to spill {} bytes to '{}': of a budget of {} bytes {} are in use, the others lie "
        "in pieces between them",
        bytes, folder_, budget_, used_);
  }
  // A value as long as a file gets one of its own.
  const bool newest_has_room = !files_.empty() && files_.rbegin()->second.bytes < file_bytes_;
  if (!newest_has_room || bytes >= file_bytes_) {
    if (files_.size() == 2 * kFilesMax) {
      throw Unavailable("no room to spill {} bytes to '{}': its {} files are full of pieces", bytes,
                        folder_, files_.size());
    }
    FileDescriptor descriptor = MakeNamelessFile(folder_);
    files_[next_file_++].descriptor = std::move(descriptor);
  }
  auto& [number, file] = *files_.rbegin();
  const SpilledValue value{.file = number, .offset = file.bytes, .bytes = bytes};
  file.bytes += bytes;
  length_ += bytes;
  return value;
}

SpilledValue SpillFiles::Write(std::span<const std::span<const std::byte>> parts) {
  std::uint64_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  SpilledValue value = Reserve(bytes);
  try {
    const FileDescriptor& file = DescriptorOf(value);
    const HashState hash(XXH3_createState(), &XXH3_freeState);
    XXH3_64bits_reset(hash.get());
    std::uint64_t offset = value.offset;
    for (const std::span<const std::byte> part : parts) {
      WriteAllAt(file, offset, part, folder_);
      XXH3_64bits_update(hash.get(), part.data(), part.size());
      offset += part.size();
    }
    value.checksum = XXH3_64bits_digest(hash.get());
  } catch (...) {
    Free(value);
    throw;
  }
  return value;
}

void SpillFiles::Read(const SpilledValue& value, std::span<std::byte> bytes) const {
  if (bytes.size() != value.bytes) {
    throw InvalidArgument("a spilled value of {} bytes cannot be read into {}", value.bytes,
                          bytes.size());
  }
  ReadAllAt(DescriptorOf(value), value.offset, bytes, folder_);
  if (XXH3_64bits(bytes.data(), bytes.size()) != value.checksum) {
    throw DataLoss("a value of {} bytes that was spilled to '{}' has been altered", value.bytes,
                   folder_);
  }
}

void SpillFiles::Free(const SpilledValue& value) {
  FileDescriptor gone;  // Closed without the lock: the system then frees the space.
  const std::lock_guard lock(mutex_);
  const auto at = files_.find(value.file);
  if (at == files_.end()) throw Internal("a spilled value was freed twice");
  File& file = at->second;
  const Extent freed{value.offset, value.bytes};
  const Extent around = file.free.Insert(freed);
  used_ -= value.bytes;
  if (--file.values > 0) return GiveBack(file, freed, around);
  gone = std::move(file.descriptor);
  length_ -= file.bytes;
  files_.erase(at);
}

// Of what was freed the pages in which nothing else lies; `around` is free, too.
void SpillFiles::GiveBack(const File& file, const Extent& freed, const Extent& around) {
  const std::uint64_t begin = std::max(WholePages(around.offset), freed.offset / kPage * kPage);
  const std::uint64_t end = std::min(around.end() / kPage * kPage, WholePages(freed.end()));
  if (begin >= end || !gives_back_) return;
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  gives_back_ = fallocate(file.descriptor.get(), mode, static_cast<off_t>(begin),
                          static_cast<off_t>(end - begin)) == 0 ||
                errno == EINTR;
}

const FileDescriptor& SpillFiles::DescriptorOf(const SpilledValue& value) const {
  const std::lock_guard lock(mutex_);
  const auto at = files_.find(value.file);
  if (at == files_.end()) throw Internal("a spilled value was used after it was freed");
  return at->second.descriptor;
}

std::uint64_t SpillFiles::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace menger
