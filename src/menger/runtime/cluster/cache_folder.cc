#include "menger/runtime/cluster/cache_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".new-";
constexpr const char* kHoldName = "/hold";
constexpr mode_t kFileMode = 0755;  // Of all, since some are programs: the folder is one user's.
constexpr std::chrono::milliseconds kLockLook{5};

FileDescriptor OpenLock(const std::string& path, int flags) {
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (!lock.valid() && errno != ENOENT)
    throw FromErrno(fmt::format("cannot open '{}'", path), errno);
  return lock;
}

bool TryLock(const FileDescriptor& lock, int how) {
  return lock.valid() && flock(lock.get(), how | LOCK_NB) == 0;
}

void NoteUse(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

// What is there, the one used longest ago first.
struct Entry {
  fs::path path;
  fs::file_time_type used;
};

std::vector<Entry> EntriesOf(const std::string& folder, const std::string& used_by) {
  std::vector<Entry> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kUnfinished)) continue;
    std::error_code none;
    const auto used = fs::last_write_time(entry.path().string() + used_by, none);
    entries.push_back({entry.path(), none ? fs::file_time_type::min() : used});
  }
  std::ranges::sort(entries, {}, &Entry::used);
  return entries;
}

void DropUnfinished(const std::string& folder) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kUnfinished)) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path);
}

// A file under a name of its own until it is whole.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& folder)
      : path_(folder + "/" + kUnfinished + "XXXXXX") {
    file_ = FileDescriptor(mkostemp(path_.data(), O_CLOEXEC));
    if (!file_.valid()) throw FromErrno(fmt::format("cannot make a file in '{}'", folder), errno);
  }
  ~UnfinishedFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  void Write(std::span<const std::byte> bytes) { WriteAll(file_, bytes, path_); }
  void Finish(const std::string& path) {
    if (fchmod(file_.get(), kFileMode) != 0 || rename(path_.c_str(), path.c_str()) != 0) {
      throw FromErrno(fmt::format("cannot make '{}'", path), errno);
    }
    path_.clear();
  }

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace

CacheFolder::CacheFolder(std::string path)
    : path_(std::move(path)), files_(path_ + "/files"), programs_(path_ + "/programs") {
  for (const std::string& each : {path_, files_, programs_}) {
    CreateFolders(each, FileReaders::kItsUser);
  }
}

FileDescriptor CacheFolder::Lock(const Deadline& deadline) const {
  FileDescriptor lock = OpenLock(path_ + "/lock", O_CREAT);
  if (!lock.valid()) throw NotFound("'{}' is gone; perhaps something removes old files", path_);
  while (!TryLock(lock, LOCK_SH)) {
    if (deadline.expired()) {
      throw DeadlineExceeded("another process removes old programs from '{}'", path_);
    }
    std::this_thread::sleep_for(kLockLook);
  }
  return lock;
}

FileDescriptor CacheFolder::LockAlone() const { return LockAlone(path_); }

FileDescriptor CacheFolder::LockAlone(const std::string& path) {
  FileDescriptor lock = OpenLock(path + "/lock", O_CREAT);
  if (!TryLock(lock, LOCK_EX)) lock.Close();
  return lock;
}

std::string CacheFolder::Store(const ProgramFile& file, const ProgramSource& source) const {
  const FileContent& content = file.content;
  std::string path = FilePath(content.hash);
  if (HasContent(path, content)) {
    NoteUse(path);
    return path;
  }
  UnfinishedFile unfinished(files_);
  ContentHasher came;
  source(file, [&](std::span<const std::byte> bytes) {
    came.Add(bytes);
    if (came.bytes() > content.bytes) {
      throw DataLoss("more came of the driver's file '{}' than the {} bytes that it has", file.path,
                     content.bytes);
    }
    unfinished.Write(bytes);
  });
  if (came.bytes() != content.bytes || came.hash() != content.hash) {
    throw DataLoss(
        "of the driver's file '{}' {} bytes came whose content is {}; it has {} bytes "
        "and is {}",
        file.path, came.bytes(), ToHex(came.hash()), content.bytes, ToHex(content.hash));
  }
  unfinished.Finish(path);
  return path;
}

void CacheFolder::RemoveUnlessLocked(const std::string& path) {
  const FileDescriptor lock = LockAlone(path);
  std::error_code ignored;  // Whatever stays goes next time.
  if (lock.valid()) fs::remove_all(path, ignored);
}

FileDescriptor CacheFolder::Hold(const std::string& program) const {
  const std::string path = ProgramPath(program) + kHoldName;
  FileDescriptor hold = OpenLock(path, 0);
  if (!TryLock(hold, LOCK_SH)) hold.Close();
  if (hold.valid()) NoteUse(path);
  return hold;
}

void CacheFolder::Make(const std::string& program,
                       const std::function<void(const std::string&)>& fill) const {
  std::string made = ProgramPath(kUnfinished) + "XXXXXX";
  if (mkdtemp(made.data()) == nullptr) {
    throw FromErrno(fmt::format("cannot make a folder in '{}'", programs_), errno);
  }
  try {
    fill(made);
    CreateFile(made + kHoldName);
    if (rename(made.c_str(), ProgramPath(program).c_str()) == 0) return;
    if (errno != EEXIST && errno != ENOTEMPTY) {
      throw FromErrno(fmt::format("cannot make '{}'", ProgramPath(program)), errno);
    }
    fs::remove_all(made);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
    throw;
  }
}

bool CacheFolder::RemoveUnlessHeld(const std::string& program) const {
  const FileDescriptor alone = LockAlone();
  if (!alone.valid()) return false;
  const FileDescriptor hold = OpenLock(ProgramPath(program) + kHoldName, 0);
  if (hold.valid() && !TryLock(hold, LOCK_EX)) return false;
  fs::remove_all(ProgramPath(program));
  return true;
}

void CacheFolder::Trim(std::uint64_t bytes_max) const {
  const FileDescriptor alone = LockAlone();
  if (!alone.valid()) return;
  DropUnfinished(files_);
  DropUnfinished(programs_);
  DropFiles(bytes_max);
  for (const Entry& program : EntriesOf(programs_, kHoldName)) {
    if (Bytes() <= bytes_max) return;
    const FileDescriptor hold = OpenLock(program.path.string() + kHoldName, 0);
    if (hold.valid() && !TryLock(hold, LOCK_EX)) continue;
    fs::remove_all(program.path);
    DropFiles(bytes_max);
  }
}

// Of files those that no program has a link to.
void CacheFolder::DropFiles(std::uint64_t bytes_max) const {
  std::uint64_t bytes = Bytes();
  for (const Entry& file : EntriesOf(files_, "")) {
    if (bytes <= bytes_max) return;
    if (fs::hard_link_count(file.path) > 1) continue;
    bytes -= fs::file_size(file.path);
    fs::remove(file.path);
  }
}

// Files with more than one link lie in files_, too.
std::uint64_t CacheFolder::Bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(files_)) bytes += file.file_size();
  for (const auto& file : fs::recursive_directory_iterator(programs_)) {
    const bool counts = !file.is_symlink() && file.is_regular_file() && file.hard_link_count() == 1;
    if (counts) bytes += file.file_size();
  }
  return bytes;
}

}  // namespace menger
