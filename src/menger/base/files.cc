#include "menger/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "menger/base/error.h"

namespace menger {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    descriptor_ = other.Release();
  }
  return *this;
}

int FileDescriptor::Release() { return std::exchange(descriptor_, -1); }

void FileDescriptor::Close() {
  if (valid()) close(Release());
}

FileDescriptor OpenForReading(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw FromErrno(fmt::format("cannot read '{}'", path), errno);
  return file;
}

FileDescriptor CreateFile(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) throw FromErrno(fmt::format("cannot write '{}'", path), errno);
  return file;
}

void WriteAll(const FileDescriptor& file, std::span<const std::byte> bytes,
              const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FromErrno(fmt::format("cannot write '{}'", path), errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void ReadAllAt(const FileDescriptor& file, uint64_t offset, std::span<std::byte> bytes,
               const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t read = pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) throw FromErrno(fmt::format("cannot read '{}'", path), errno);
    if (read == 0) {
      throw DataLoss("'{}' ends at byte {}; at least {} more were expected", path, offset,
                     bytes.size());
    }
    bytes = bytes.subspan(static_cast<size_t>(read));
    offset += static_cast<uint64_t>(read);
  }
}

uint64_t FileSize(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    throw FromErrno(fmt::format("cannot read '{}'", path), errno);
  }
  if (!S_ISREG(status.st_mode)) throw FailedPrecondition("'{}' is not a regular file", path);
  return static_cast<uint64_t>(status.st_size);
}

void RaiseDescriptorLimit() {
  constexpr rlim_t kEnough = 131'072;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &limit);  // Where it may not, it has what it had.
}

void SyncFile(const FileDescriptor& file, const std::string& path) {
  if (fsync(file.get()) != 0) {
    throw FromErrno(fmt::format("cannot flush '{}' to disk", path), errno);
  }
}

void SyncFolder(const std::string& path) {
  const FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) throw FromErrno(fmt::format("cannot open folder '{}'", path), errno);
  // Some file systems have nothing to flush for a folder and say EINVAL.
  if (fsync(folder.get()) != 0 && errno != EINVAL) {
    throw FromErrno(fmt::format("cannot flush folder '{}' to disk", path), errno);
  }
}

std::string ReadFile(const std::string& path) {
  const FileDescriptor file = OpenForReading(path);
  std::string text(FileSize(file, path), '\0');
  ReadAllAt(file, 0, std::as_writable_bytes(std::span<char>(text)), path);
  return text;
}

void WriteFileAtomically(const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span<const char>(text));
  std::error_code error;
  const std::filesystem::file_status old = std::filesystem::symlink_status(path, error);
  if (std::filesystem::exists(old) && !std::filesystem::is_regular_file(old)) {
    return WriteAll(CreateFile(path), bytes, path);
  }
  const std::string partial = path + ".partial";
  try {
    FileDescriptor file = CreateFile(partial);
    WriteAll(file, bytes, partial);
    SyncFile(file, partial);
    file.Close();
    if (rename(partial.c_str(), path.c_str()) != 0) {
      throw FromErrno(fmt::format("cannot replace '{}'", path), errno);
    }
  } catch (...) {
    unlink(partial.c_str());
    throw;
  }
  SyncFolder(ParentFolder(path));
}

void CreateFolders(const std::string& path, FileReaders readers) {
  if (readers == FileReaders::kItsUser) {
    CreateFolders(ParentFolder(path));
    if (mkdir(path.c_str(), 0700) == 0) return;
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw FromErrno(fmt::format("cannot make folder '{}'", path), error.value());
  }
}

FileDescriptor LockFolder(const std::string& path, std::string_view what) {
  CreateFolders(path);
  SyncFolder(ParentFolder(path));
  const std::string name = path + "/lock";
  FileDescriptor lock(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.valid()) throw FromErrno(fmt::format("cannot write '{}'", name), errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw FailedPrecondition("another process keeps {} in '{}'", what, path);
  }
  return lock;
}

std::vector<std::uint64_t> NumberedFiles(const std::string& folder, std::string_view before,
                                         std::string_view after) {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(before) || !name.ends_with(after)) continue;
    const char* const end = name.data() + name.size() - after.size();
    std::uint64_t number = 0;
    const auto [last, error] = std::from_chars(name.data() + before.size(), end, number);
    if (error == std::errc() && last == end) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string ParentFolder(const std::string& path) {
  std::string_view rest = path;
  while (rest.size() > 1 && rest.back() == '/') rest.remove_suffix(1);
  const size_t slash = rest.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(rest.substr(0, std::max<size_t>(slash, 1)));
}

}  // namespace menger
