#include "menger/training/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "menger/base/error.h"

namespace menger {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  file_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.valid()) throw FromErrno(fmt::format("cannot write '{}'", path_), errno);
  size_ = FileSize(file_, path_);
}

void AppendFile::CheckThere() const {
  struct stat status {};
  if (fstat(file_.get(), &status) == 0 && status.st_nlink > 0) return;
  throw NotFound("'{}' was removed while it was written to: what follows could not be kept", path_);
}

void AppendFile::Append(std::string_view bytes) {
  CheckThere();
  WriteAll(file_, std::as_bytes(std::span<const char>(bytes)), path_);
  size_ += bytes.size();
}

void AppendFile::Sync() {
  CheckThere();
  SyncFile(file_, path_);
}

void AppendFile::TruncateTo(std::uint64_t size) {
  if (size > size_) {
    throw DataLoss("'{}' has {} bytes, but the checkpoint was made when it had {}: rows are lost",
                   path_, size_, size);
  }
  if (ftruncate(file_.get(), static_cast<off_t>(size)) != 0) {
    throw FromErrno(fmt::format("cannot cut '{}' back to its checkpoint", path_), errno);
  }
  size_ = size;
}

}  // namespace menger
