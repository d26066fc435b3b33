#include "menger/runtime/cluster/working_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "menger/base/error.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

class FolderWalk {
 public:
  FolderWalk(const std::string& folder, const WorkingFolderLimits& limits)
      : root_(fs::canonical(folder)), limits_(limits) {
    Walk(root_, folder, "");
  }

  std::vector<ProgramFile> TakeFiles() {
    std::ranges::sort(files_, {}, &ProgramFile::name);
    return std::move(files_);
  }

 private:
  // `real` is where the folder lies once links are followed.
  void Walk(const fs::path& real, const std::string& path, const std::string& before) {
    open_.push_back(real);
    for (const fs::directory_entry& entry : fs::directory_iterator(real)) {
      if (++looked_at_ > limits_.looked_at) {
        throw FailedPrecondition("it has more than {} files and folders", limits_.looked_at);
      }
      const std::string name = entry.path().filename().string();
      Look(entry.path(), fmt::format("{}/{}", path, name), before + name);
    }
    open_.pop_back();
  }

  void Look(const fs::path& entry, const std::string& path, const std::string& name) {
    std::error_code gone;  // Or a link to nothing.
    const fs::path real = fs::is_symlink(entry) ? fs::canonical(entry, gone) : entry;
    if (gone || !IsInside(real)) return;
    const fs::file_status status = fs::status(real, gone);
    if (fs::is_regular_file(status)) {
      Add(path, name, fs::file_size(real));
    } else if (fs::is_directory(status) && !IsLeftOut(real, entry.filename().string(), name)) {
      if (std::ranges::find(open_, real) == open_.end()) Walk(real, path, name + "/");
    }
  }

  bool IsInside(const fs::path& real) const {
    return std::mismatch(root_.begin(), root_.end(), real.begin(), real.end()).first == root_.end();
  }

  static bool IsLeftOut(const fs::path& real, const std::string& base, const std::string& name) {
    return base.starts_with('.') || base == "__pycache__" || base == "node_modules" ||
           name == "build" || fs::exists(real / "pyvenv.cfg");
  }

  void Add(const std::string& path, const std::string& name, std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > limits_.bytes) {
      throw FailedPrecondition("its files have more than {} bytes", limits_.bytes);
    }
    if (files_.size() == limits_.files) {
      throw FailedPrecondition("it has more than {} files", limits_.files);
    }
    files_.push_back({.role = ProgramFile::Role::kFolderFile, .path = path, .name = name});
  }

  const fs::path root_;
  const WorkingFolderLimits& limits_;
  std::vector<fs::path> open_;  // That are being walked through.
  std::vector<ProgramFile> files_;
  std::uint64_t bytes_ = 0;
  std::size_t looked_at_ = 0;
};

}  // namespace

std::vector<ProgramFile> ListWorkingFolder(const std::string& folder,
                                           const WorkingFolderLimits& limits) {
  try {
    // Sizes first: what is beyond the limits is not read.
    std::vector<ProgramFile> files = FolderWalk(folder, limits).TakeFiles();
    for (ProgramFile& file : files) {
      file.mode = static_cast<std::uint32_t>(fs::status(file.path).permissions() & fs::perms::all);
      file.content = ReadContent(file.path);
    }
    return files;
  } catch (const std::exception& error) {
    throw FailedPrecondition("the folder '{}' is not shipped: {}", folder, error.what());
  }
}

}  // namespace menger
