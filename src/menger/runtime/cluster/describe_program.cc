#include "menger/runtime/cluster/describe_program.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/working_folder.h"

namespace menger {
namespace {

namespace fs = std::filesystem;
using Role = ProgramFile::Role;

constexpr const char* kOwnImage = "/proc/self/exe";
constexpr std::uint32_t kModeOfPrograms = 0755;

// Also below /usr.
constexpr std::array<std::string_view, 4> kSystemFolders = {"/lib", "/lib32", "/lib64", "/libx32"};

// "libc.so.6" and its like go with the loader, which is the node's.
constexpr std::array<std::string_view, 13> kCLibrary = {
    "ld-",       "ld.so",    "libc.so",           "libm.so",      "libmvec.so",
    "libdl.so",  "librt.so", "libpthread.so",     "libresolv.so", "libutil.so",
    "libanl.so", "libnss_",  "libBrokenLocale.so"};

bool IsOfSystem(std::string_view path, std::string_view name) {
  if (path.starts_with("/usr/")) path.remove_prefix(4);
  const std::string_view top = path.substr(0, path.find('/', 1));
  const auto begins = [&](std::string_view beginning) { return name.starts_with(beginning); };
  return std::ranges::find(kSystemFolders, top) != kSystemFolders.end() ||
         std::ranges::any_of(kCLibrary, begins);
}

int NoteLibrary(dl_phdr_info* module, std::size_t, void* paths) {
  static_cast<std::vector<std::string>*>(paths)->emplace_back(module->dlpi_name);
  return 0;
}

ProgramFile FileOf(Role role, std::string path, std::string name) {
  ProgramFile file{
      .role = role, .path = std::move(path), .name = std::move(name), .mode = kModeOfPrograms};
  file.content = ReadContent(SourceOf(file));
  return file;
}

std::vector<ProgramFile> FilesOfOwnImage() {
  std::vector<ProgramFile> files = {FileOf(Role::kExecutable, fs::read_symlink(kOwnImage), "")};
  std::vector<std::string> paths;
  dl_iterate_phdr(&NoteLibrary, &paths);
  for (const std::string& noted : paths) {
    // The program itself has no name, and what the kernel brings has no file.
    if (noted.find('/') == std::string::npos) continue;
    const std::string path = fs::absolute(noted).lexically_normal();
    const std::string name = fs::path(path).filename();
    // Of two of one name the first is the one that is found by it.
    const bool there =
        std::ranges::any_of(files, [&](const auto& file) { return file.name == name; });
    if (!there && !IsOfSystem(path, name)) files.push_back(FileOf(Role::kLibrary, path, name));
  }
  return files;
}

std::string AbsoluteFolder(const std::string& folder) {
  std::error_code none;  // Somebody may have removed the one this process works in.
  const fs::path path = folder.empty() ? fs::current_path(none) : fs::absolute(folder, none);
  std::string text = path.lexically_normal();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

void DescribeFolder(ProgramManifest& manifest) {
  const std::vector<ProgramFile> before = manifest.files;
  try {
    std::ranges::move(ListWorkingFolder(manifest.folder), std::back_inserter(manifest.files));
    manifest.folder_is = ProgramManifest::Folder::kShipped;
    EncodeManifest(manifest);
  } catch (const Error& error) {
    manifest.files = before;
    manifest.folder_is = ProgramManifest::Folder::kNeeded;
    manifest.unshipped = error.what();
  }
}

}  // namespace

ProgramManifest DescribeProgram(const WorkerProgram& program) {
  ProgramManifest manifest{.version = ThisBuild().version,
                           .arguments = program.arguments,
                           .variables = program.variables,
                           .memory_bytes_max = program.memory_bytes_max,
                           .folder = AbsoluteFolder(program.folder)};
  const bool own_image = program.arguments.empty();
  if (own_image) manifest.files = FilesOfOwnImage();
  const bool has_folder = !own_image || !program.folder.empty();
  if (has_folder && !manifest.folder.empty()) DescribeFolder(manifest);
  EncodeManifest(manifest);  // What cannot be said is better known now.
  return manifest;
}

std::string SourceOf(const ProgramFile& file) {
  return file.role == Role::kExecutable ? kOwnImage : file.path;
}

}  // namespace menger
