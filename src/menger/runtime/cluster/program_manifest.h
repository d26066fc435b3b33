#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/runtime/cluster/content_hash.h"

namespace menger {

// A file of a program, as it is at the driver.
struct ProgramFile {
  enum class Role : std::uint8_t {
    kExecutable,
    kLibrary,     // That the executable has loaded.
    kFolderFile,  // Below the folder that workers work in.
  };
  Role role = Role::kExecutable;
  std::string path;  // Absolute.
  std::string name;  // kLibrary: by which it is loaded. kFolderFile: the path below the folder.
  std::uint32_t mode = 0;  // Who may do what, at most 0777.
  FileContent content;

  bool operator==(const ProgramFile&) const = default;
};

// What a node needs to know to run workers of a driver's program: a WorkerProgram, and the files
// that it is made of, by their content. See describe_program.h for which these are.
struct ProgramManifest {
  enum class Folder : std::uint8_t {
    kIfThere,  // Workers work in it where the node has it, else where the node does.
    kNeeded,   // The node must have it: its files are not shipped, because of `unshipped`.
    kShipped,  // The files that have the role kFolderFile are all of it that is shipped.
  };

  std::string version;                 // Of menger.
  std::vector<std::string> arguments;  // None: there is an executable, and it has none.
  std::vector<std::pair<std::string, std::string>> variables;
  std::uint64_t memory_bytes_max = 0;
  std::string folder;  // Absolute, or "" where there is none, which is kIfThere.
  Folder folder_is = Folder::kIfThere;
  std::string unshipped;
  bool copied = false;  // Nodes use none of its files in place: they may go while it runs.
  std::vector<ProgramFile> files;

  bool operator==(const ProgramManifest&) const = default;
};

// So that it fits into a frame.
inline constexpr std::size_t kManifestBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kManifestFilesMax = 4'096;
inline constexpr std::size_t kManifestTextsMax = 4'096;  // Arguments, and variables.

// Throws InvalidArgument for one that is longer than it may be.
std::vector<std::byte> EncodeManifest(const ProgramManifest& manifest);

// Of bytes that anybody may have written. Throws FailedPrecondition as CheckProgramVersion, since
// other versions may lay it out otherwise, and InvalidArgument for whatever is not as it should be:
// names of files that lead out of the folder, and two of one name, among it.
ProgramManifest DecodeManifest(std::span<const std::byte> bytes);

// Driver and node must be of one minor version ("0.3"). Throws FailedPrecondition that names both.
void CheckProgramVersion(std::string_view of_driver);

}  // namespace menger
