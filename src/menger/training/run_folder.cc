#include "menger/training/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr int kRunsMax = 1'000'000;
constexpr const char* kRemoving = ".removing";
constexpr const char* kPrevious = ".previous";  // As ArchiveWriter has it.

std::optional<std::int64_t> StepsOf(std::string_view name) {
  if (name.ends_with(kPrevious)) name.remove_suffix(std::string_view(kPrevious).size());
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), steps);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return steps;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) LogWarning("cannot remove '{}': {}", path, error.message());
}

}  // namespace

void RunFolder::CheckPlace(const std::string& path) {
  if (RunFolder(path).Contains("experiment.toml")) {
    throw FailedPrecondition(
        "'{}' already holds a run: go on with it by `menger train --resume {}`, or give another "
        "folder to --out",
        path, path);
  }
  CheckCanKeepRuns(path);
}

RunFolder RunFolder::Create(const std::string& path) {
  CheckPlace(path);
  RunFolder folder(path);
  CreateFolders(folder.path_ + "/checkpoints");
  return folder;
}

namespace {

// Runs of several seeds lie below the folder that was given to them.
std::string RunsText(const RunFolder& folder) {
  std::vector<std::string> runs;
  for (const std::string& name : NamesIn(folder.path())) {
    if (folder.Contains(name + "/experiment.toml")) runs.push_back(folder.file(name));
  }
  if (runs.empty()) return "";
  std::ranges::sort(runs);
  return fmt::format("; there are runs in it: {}", fmt::join(runs, ", "));
}

}  // namespace

RunFolder RunFolder::Open(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  RunFolder folder(trimmed);
  if (!folder.Contains("experiment.toml")) {
    throw NotFound("'{}' is not a run folder: it has no experiment.toml{}", path, RunsText(folder));
  }
  for (const std::string& name : NamesIn(folder.path_ + "/checkpoints")) {
    if (name.ends_with(kRemoving)) Remove(folder.checkpoint(name));
  }
  return folder;
}

bool RunFolder::Contains(const std::string& name) const {
  std::error_code error;
  return fs::exists(file(name), error);
}

bool RunFolder::ContainsCheckpoint(const std::string& name) const {
  return Contains("checkpoints/" + name) || Contains("checkpoints/" + name + kPrevious);
}

FileDescriptor RunFolder::Lock() const {
  try {
    return LockFolder(path_, "a run");
  } catch (const Error& error) {
    if (!IsTrainedNow(path_)) throw;  // It cannot be written, for example.
    throw FailedPrecondition(
        "another process trains in '{}' now: let it end, or stop it by Ctrl-C; one process at a "
        "time works in a run folder",
        path_);
  }
}

std::vector<std::int64_t> RunFolder::Checkpoints() const {
  std::vector<std::int64_t> found;
  for (const std::string& name : NamesIn(path_ + "/checkpoints")) {
    if (const auto steps = StepsOf(name)) found.push_back(*steps);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

ArchiveReader RunFolder::NewestWholeCheckpoint(const Check& check) const {
  const std::vector<std::int64_t> found = Checkpoints();
  std::vector<std::string> names;
  for (auto steps = found.rbegin(); steps != found.rend(); ++steps) {
    names.push_back(std::to_string(*steps));
  }
  if (ContainsCheckpoint("best")) names.emplace_back("best");
  if (names.empty()) {
    throw NotFound("'{}' has no checkpoint{}", path_,
                   IsTrainedNow(path_)
                       ? " yet: it is being trained now, and will have one soon"
                       : ": the run ended before the first one; remove it, and train "
                         "again");
  }
  std::string damage;
  for (const std::string& name : names) {
    try {
      ArchiveReader archive(checkpoint(name));
      archive.Verify();
      if (check) check(archive);
      return archive;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss && error.code() != ErrorCode::kNotFound) throw;
      LogWarning("checkpoint '{}' cannot be used: {}", checkpoint(name), error.what());
      if (damage.empty()) damage = error.what();
    }
  }
  throw DataLoss("none of the {} checkpoints of '{}' is whole; the newest: {}", names.size(), path_,
                 damage);
}

void RunFolder::Prune(std::int64_t keep, std::int64_t newest) const {
  std::vector<std::int64_t> found = Checkpoints();
  std::erase_if(found, [newest](std::int64_t steps) { return steps > newest; });
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i) {
    // First out of the way in one step, so that a killed process leaves no half checkpoint.
    const std::string path = checkpoint(found[i]);
    for (const std::string& archive : {path + kPrevious, path}) {
      std::error_code error;
      fs::rename(archive, archive + kRemoving, error);
      Remove(error ? archive : archive + kRemoving);
    }
  }
}

bool IsTrainedNow(const std::string& path) {
  const FileDescriptor lock(open((path + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void CheckCanKeepRuns(const std::string& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, error)) {
    throw InvalidArgument(
        "no run can be kept in '{}': '{}' is no folder; give another one with --out", folder,
        there.string());
  }
  if (access(there.c_str(), W_OK | X_OK) == 0) return;
  throw FromErrno(
      fmt::format("no run can be kept in '{}': '{}' must not be written", folder, there.string()),
      errno);
}

std::string MakeNumberedFolder(const std::string& parent, const std::string& name) {
  CreateFolders(parent);
  for (int number = 1; number <= kRunsMax; ++number) {
    std::string path = fmt::format("{}/{}-{}", parent, name, number);
    if (mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) throw FromErrno(fmt::format("cannot make folder '{}'", path), errno);
  }
  throw FailedPrecondition("'{}' holds {} runs of '{}': remove some, or give a folder with --out",
                           parent, kRunsMax, name);
}

}  // namespace menger
