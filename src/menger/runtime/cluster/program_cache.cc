#include "menger/runtime/cluster/program_cache.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/program_files.h"
#include "menger/runtime/cluster/loadable.h"
#include "menger/runtime/cluster/shipped_paths.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using Role = ProgramFile::Role;

constexpr int kVariantsMax = 8;
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

ProgramCacheOptions WithFolder(ProgramCacheOptions options) {
  options.folder = ProgramCacheFolder(options.folder);
  return options;
}

bool IsFolder(const std::string& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

// In the folder of a program.
std::string PlaceOf(const ProgramFile& file) {
  switch (file.role) {
    case Role::kExecutable:
      return "program";
    case Role::kLibrary:
      return "lib/" + file.name;
    case Role::kFolderFile:
      break;
  }
  return "folder/" + file.name;
}

// Programs of the same files are one, whatever they are told.
std::string NameOf(const std::vector<const ProgramFile*>& files) {
  ContentHasher hasher;
  for (const ProgramFile* file : files) {
    const std::string line = fmt::format("{}\n{} {} {:o}\n", PlaceOf(*file), file->content.bytes,
                                         ToHex(file->content.hash), file->mode);
    hasher.Add(std::as_bytes(std::span(line)));
  }
  return ToHex(hasher.hash());
}

void Copy(const std::string& from, const std::string& to, fs::perms mode) {
  fs::copy_file(from, to);
  fs::permissions(to, mode);
}

void Link(const std::string& from, const std::string& to) {
  // There are file systems without links, and a file has so many at most.
  if (link(from.c_str(), to.c_str()) != 0) Copy(from, to, fs::perms(0755));
}

void PutInFront(std::vector<std::pair<std::string, std::string>>& variables, const char* name,
                const std::string& folder) {
  const auto found =
      std::ranges::find(variables, name, &std::pair<std::string, std::string>::first);
  const std::string before = found != variables.end() ? found->second : Variable(name);
  const std::string value = before.empty() ? folder : folder + ":" + before;
  if (found != variables.end()) {
    found->second = value;
  } else {
    variables.emplace_back(name, value);
  }
}

}  // namespace

std::string DefaultProgramCacheFolder() {
  constexpr const char* kBelow = "/menger/programs";
  // One that is not absolute is to be ignored (XDG Base Directory Specification).
  if (const std::string cache = Variable("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return cache + kBelow;
  }
  const std::string home = Variable("HOME");
  if (!home.starts_with('/')) {
    throw FailedPrecondition(
        "neither XDG_CACHE_HOME nor HOME names a folder where programs of "
        "drivers could be kept: set one, or name a folder for them");
  }
  return home + "/.cache" + kBelow;
}

// Workers have another working folder.
std::string ProgramCacheFolder(const std::string& folder) {
  return fs::absolute(folder.empty() ? DefaultProgramCacheFolder() : folder).lexically_normal();
}

ProgramCache::ProgramCache(ProgramCacheOptions options)
    : options_(WithFolder(std::move(options))), folder_(options_.folder) {}

ReadyProgram ProgramCache::Prepare(const ProgramManifest& manifest, const ProgramSource& source,
                                   const Deadline& deadline) const {
  if (manifest.copied && options_.in_place) {
    ProgramCacheOptions copying = options_;
    copying.in_place = false;
    return ProgramCache(copying).Prepare(manifest, source, deadline);
  }
  CheckProgramVersion(manifest.version);
  ReadyProgram ready{.program = {.arguments = manifest.arguments,
                                 .variables = manifest.variables,
                                 .memory_bytes_max = manifest.memory_bytes_max}};
  try {
    PrepareFolder(manifest, source, deadline, ready);
    if (manifest.arguments.empty()) PrepareImage(manifest, source, deadline, ready);
  } catch (const fs::filesystem_error&) {
    throw TranslateCurrentException();
  }
  return ready;
}

void ProgramCache::PrepareFolder(const ProgramManifest& manifest, const ProgramSource& source,
                                 const Deadline& deadline, ReadyProgram& ready) const {
  switch (manifest.folder_is) {
    case ProgramManifest::Folder::kIfThere:
      if (IsFolder(manifest.folder)) ready.program.folder = manifest.folder;
      return;
    case ProgramManifest::Folder::kNeeded:
      if (!IsFolder(manifest.folder)) {
        throw FailedPrecondition(
            "this node has no folder '{}', where the program's workers are to "
            "work ({})",
            manifest.folder, manifest.unshipped);
      }
      ready.program.folder = manifest.folder;
      return;
    case ProgramManifest::Folder::kShipped:
      break;
  }
  if (FolderIsHere(manifest)) {
    ready.program.folder = manifest.folder;
    return;
  }
  Files files;
  for (const ProgramFile& file : manifest.files) {
    if (file.role == Role::kFolderFile) files.push_back(&file);
  }
  ready.program.folder = MakeOfUnchanged(std::move(files), source, deadline, ready) + "/folder";
  const ShippedPaths paths(manifest, ready.program.folder);
  for (std::string& argument : ready.program.arguments) argument = paths.Here(argument);
  for (auto& [name, value] : ready.program.variables) value = paths.Here(value);
}

std::string ProgramCache::MakeOfUnchanged(Files files, const ProgramSource& source,
                                          const Deadline& deadline, ReadyProgram& ready) const {
  const ProgramFile* changed = nullptr;
  const ProgramSource noting = [&](const ProgramFile& file, const TakeBytes& take) {
    try {
      source(file, take);
    } catch (const Error& error) {
      const bool is_other =
          error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kNotFound;
      if (is_other) changed = &file;
      throw;
    }
  };
  for (;;) {
    try {
      return Make(files, noting, deadline, ready);
    } catch (const Error& error) {
      if (changed == nullptr) throw;
      LogWarning("workers of the program do without a file of its folder: {}", error.what());
      std::erase(files, std::exchange(changed, nullptr));
    }
  }
}

void ProgramCache::PrepareImage(const ProgramManifest& manifest, const ProgramSource& source,
                                const Deadline& deadline, ReadyProgram& ready) const {
  Files files;
  for (const ProgramFile& file : manifest.files) {
    if (file.role == Role::kFolderFile) continue;
    const bool here = file.role == Role::kExecutable && IsHere(file.path, file) &&
                      access(file.path.c_str(), X_OK) == 0;
    if (here) {
      ready.program.arguments = {file.path};
    } else {
      files.push_back(&file);
    }
  }
  if (!files.empty()) {
    const std::string made = Make(files, source, deadline, ready);
    if (ready.program.arguments.empty()) ready.program.arguments = {made + "/program"};
    PutInFront(ready.program.variables, kLibraryPath, made + "/lib");
  }
  CheckLoadable(ready.program, deadline);
}

bool ProgramCache::IsHere(const std::string& path, const ProgramFile& file) const {
  return options_.in_place && HasContent(path, file.content);
}

bool ProgramCache::FolderIsHere(const ProgramManifest& manifest) const {
  return options_.in_place && IsFolder(manifest.folder) &&
         std::ranges::all_of(manifest.files, [&](const ProgramFile& file) {
           return file.role != Role::kFolderFile || IsHere(manifest.folder + "/" + file.name, file);
         });
}

void ProgramCache::CheckSize(const Files& files) const {
  std::uint64_t left = options_.bytes_max;
  for (const ProgramFile* file : files) {
    if (file->content.bytes > left) {
      throw FailedPrecondition(
          "the driver's program is larger than the {} bytes that this node "
          "may keep of programs in '{}'",
          options_.bytes_max, options_.folder);
    }
    left -= file->content.bytes;
  }
}

std::string ProgramCache::Make(const Files& files, const ProgramSource& source,
                               const Deadline& deadline, ReadyProgram& ready) const {
  CheckSize(files);
  const std::string name = NameOf(files);
  for (int variant = 0; variant < kVariantsMax; ++variant) {
    const std::string own = variant == 0 ? name : fmt::format("{}.{}", name, variant);
    FileDescriptor hold = UseOrMake(own, files, source, deadline);
    // Somebody has changed it. Where workers of another driver still run there, it stays.
    if (!hold.valid() && folder_.RemoveUnlessHeld(own)) {
      hold = UseOrMake(own, files, source, deadline);
    }
    if (!hold.valid()) continue;
    ready.holds.push_back(std::move(hold));
    Trim();
    return folder_.ProgramPath(own);
  }
  throw FailedPrecondition(
      "the program '{}' was changed wherever it is kept in '{}', and is in use", name,
      options_.folder);
}

void ProgramCache::Trim() const {
  try {
    folder_.Trim(options_.bytes_max);
  } catch (const std::exception& error) {  // The program is there.
    LogWarning("programs that nobody uses stay in '{}': {}", options_.folder, error.what());
  }
}

FileDescriptor ProgramCache::UseOrMake(const std::string& name, const Files& files,
                                       const ProgramSource& source,
                                       const Deadline& deadline) const {
  const FileDescriptor lock = folder_.Lock(deadline);
  FileDescriptor hold = folder_.Hold(name);
  if (!hold.valid()) {
    folder_.Make(name, [&](const std::string& folder) { Fill(folder, files, source); });
    hold = folder_.Hold(name);
  }
  const bool intact = std::ranges::all_of(files, [&](const ProgramFile* file) {
    return HasContent(folder_.ProgramPath(name) + "/" + PlaceOf(*file), file->content);
  });
  if (!intact) hold.Close();
  return hold;
}

void ProgramCache::Fill(const std::string& folder, const Files& files,
                        const ProgramSource& source) const {
  for (const char* each : {"/lib", "/folder"}) CreateFolders(folder + each);
  for (const ProgramFile* file : files) {
    const std::string place = folder + "/" + PlaceOf(*file);
    if (file->role == Role::kLibrary && IsHere(file->path, *file)) {
      fs::create_symlink(file->path, place);
      continue;
    }
    const std::string stored = folder_.Store(*file, source);
    if (file->role == Role::kFolderFile) {
      CreateFolders(ParentFolder(place));
      Copy(stored, place, fs::perms((file->mode & 0755) | 0600));
    } else {
      Link(stored, place);
    }
  }
}

}  // namespace menger
