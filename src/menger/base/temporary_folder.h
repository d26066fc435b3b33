#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "menger/base/error.h"

namespace menger {

// Where the system's temporary files are. Throws NotFound or FailedPrecondition, naming it, if
// there is no such folder.
inline std::string FolderOfTemporaryFiles() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder.string();
  const char* const named = std::getenv("TMPDIR");
  throw FromErrno(std::string("the folder for temporary files, '") +
                      (named != nullptr ? named : "/tmp") + "' (TMPDIR), is none",
                  error.value());
}

// A folder of its own, "menger-<purpose>-..." among the system's temporary files (TMPDIR), removed
// with all that is in it. Throws as FolderOfTemporaryFiles, and Unavailable where it cannot be
// made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& purpose) {
    path_ = FolderOfTemporaryFiles() + "/menger-" + purpose + "-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) throw FromErrno("cannot make '" + path_ + "'", errno);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace menger
