#include "menger/runtime/cluster/program_manifest.h"

#include <algorithm>
#include <limits>
#include <set>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

using Role = ProgramFile::Role;

constexpr std::size_t kNameBytesMax = 4'095;  // Of a path, as the system has it.
constexpr std::uint32_t kModeMax = 0777;
constexpr std::size_t kTextBytesMin = sizeof(std::uint32_t);
constexpr std::size_t kFileBytesMin =
    1 + 2 * kTextBytesMin + sizeof(std::uint32_t) + 3 * sizeof(std::uint64_t);

std::string_view MinorVersion(std::string_view version) {
  const std::size_t major = version.find('.');
  return major == std::string_view::npos ? version
                                         : version.substr(0, version.find('.', major + 1));
}

bool HasZero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

std::string TakePlainText(WireReader& reader, const char* name) {
  std::string text = reader.TakeText(name);
  if (HasZero(text)) throw InvalidArgument("a program's manifest has a 0 in its '{}'", name);
  return text;
}

std::size_t TakeCountAtMost(WireReader& reader, std::size_t most, std::size_t element_bytes,
                            const char* name) {
  const std::size_t count = reader.TakeCount(element_bytes, name);
  if (count > most) {
    throw InvalidArgument("a program's manifest has {} {}; it may have {}", count, name, most);
  }
  return count;
}

void CheckAbsolute(const std::string& path, const char* name) {
  if (!path.starts_with('/') || path.size() > kNameBytesMax) {
    throw InvalidArgument(
        "a program's manifest has '{}' as '{}'; it must be an absolute path of "
        "at most {} bytes",
        path.substr(0, kNameBytesMax), name, kNameBytesMax);
  }
}

// Of a name that is joined to that of a folder: it must stay inside.
void CheckBelow(const std::string& name) {
  std::string_view rest = name;
  bool right = name.size() <= kNameBytesMax;
  for (bool last = false; right && !last;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    right = !part.empty() && part != "." && part != "..";
    last = slash == std::string_view::npos;
    if (!last) rest.remove_prefix(slash + 1);
  }
  if (!right) {
    throw InvalidArgument(
        "a program's manifest has a file '{}'; it must be a path below a folder, "
        "without '.' and '..', of at most {} bytes",
        name.substr(0, kNameBytesMax), kNameBytesMax);
  }
}

void CheckName(const ProgramFile& file) {
  switch (file.role) {
    case Role::kExecutable:
      if (!file.name.empty()) {
        throw InvalidArgument("a program's manifest names its executable '{}'; it has no name",
                              file.name);
      }
      return;
    case Role::kLibrary:
      CheckBelow(file.name);
      if (file.name.find('/') != std::string::npos) {
        throw InvalidArgument("a program's manifest has a library '{}'; it must have a plain name",
                              file.name);
      }
      return;
    case Role::kFolderFile:
      return CheckBelow(file.name);
  }
}

// No two files are in one place, and none is where another has a folder.
void CheckPlaces(const std::vector<ProgramFile>& files) {
  std::set<std::pair<Role, std::string>> places;
  for (const ProgramFile& file : files) {
    if (!places.emplace(file.role, file.name).second) {
      throw InvalidArgument("a program's manifest has the file '{}' twice", file.name);
    }
  }
  for (const ProgramFile& file : files) {
    for (std::size_t slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1)) {
      if (places.contains({file.role, file.name.substr(0, slash)})) {
        throw InvalidArgument("a program's manifest has '{}', of which a part is a file, too",
                              file.name);
      }
    }
  }
}

void CheckManifest(const ProgramManifest& manifest) {
  std::size_t counts[3] = {};
  for (const ProgramFile& file : manifest.files) {
    CheckName(file);
    ++counts[static_cast<std::size_t>(file.role)];
  }
  CheckPlaces(manifest.files);
  const std::size_t executables = manifest.arguments.empty() ? 1 : 0;
  if (counts[0] != executables) {
    throw InvalidArgument(
        "a program's manifest has {} arguments and {} executables; it must have "
        "the one or the other",
        manifest.arguments.size(), counts[0]);
  }
  const bool shipped = manifest.folder_is == ProgramManifest::Folder::kShipped;
  if (counts[2] > 0 && !shipped) {
    throw InvalidArgument("a program's manifest has {} files of a folder that is not shipped",
                          counts[2]);
  }
  if (!manifest.folder.empty()) {
    CheckAbsolute(manifest.folder, "folder");
  } else if (manifest.folder_is != ProgramManifest::Folder::kIfThere) {
    throw InvalidArgument("a program's manifest needs a folder that has no path");
  }
  for (const auto& [name, value] : manifest.variables) {
    if (name.empty() || name.find('=') != std::string::npos) {
      throw InvalidArgument(
          "a program's manifest has a variable '{}'; it must have a name without "
          "'='",
          name);
    }
  }
}

void AddFile(WireWriter& writer, const ProgramFile& file) {
  const auto& [role, path, name, mode, content] = file;
  writer.Add(static_cast<std::uint8_t>(role));
  writer.AddText(path);
  writer.AddText(name);
  writer.Add(mode);
  writer.Add(content.bytes);
  writer.Add(content.hash.high);
  writer.Add(content.hash.low);
}

ProgramFile TakeFile(WireReader& reader) {
  ProgramFile file;
  file.role = reader.TakeEnumerator(Role::kFolderFile, "file.role");
  file.path = TakePlainText(reader, "file.path");
  CheckAbsolute(file.path, "file.path");
  file.name = TakePlainText(reader, "file.name");
  file.mode = reader.Take<std::uint32_t>("file.mode");
  if (file.mode > kModeMax) {
    throw InvalidArgument("a program's manifest has {:o} as 'file.mode'; it must be at most {:o}",
                          file.mode, kModeMax);
  }
  file.content.bytes = reader.Take<std::uint64_t>("file.bytes");
  if (file.content.bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgument("a program's manifest has a file of {} bytes, which no system can have",
                          file.content.bytes);
  }
  file.content.hash.high = reader.Take<std::uint64_t>("file.hash");
  file.content.hash.low = reader.Take<std::uint64_t>("file.hash");
  return file;
}

}  // namespace

void CheckProgramVersion(std::string_view of_driver) {
  const std::string& own = ThisBuild().version;
  if (MinorVersion(of_driver) == MinorVersion(own)) return;
  throw FailedPrecondition(
      "the driver's program has menger {} and this node has menger {}: both "
      "must be of one version, at least in its first two numbers",
      of_driver.substr(0, 32), own);
}

std::vector<std::byte> EncodeManifest(const ProgramManifest& manifest) {
  // Names all fields, so that one more does not compile until it travels, too.
  const auto& [version, arguments, variables, memory, folder, folder_is, unshipped, copied, files] =
      manifest;
  WireWriter writer;
  writer.AddText(version);
  writer.Add(static_cast<std::uint32_t>(arguments.size()));
  for (const std::string& argument : arguments) writer.AddText(argument);
  writer.Add(static_cast<std::uint32_t>(variables.size()));
  for (const auto& [name, value] : variables) {
    writer.AddText(name);
    writer.AddText(value);
  }
  writer.Add(memory);
  writer.AddText(folder);
  writer.Add(static_cast<std::uint8_t>(folder_is));
  writer.AddText(unshipped);
  writer.AddFlag(copied);
  writer.Add(static_cast<std::uint32_t>(files.size()));
  for (const ProgramFile& file : files) AddFile(writer, file);
  if (writer.bytes().size() > kManifestBytesMax) {
    throw InvalidArgument(
        "what a program needs takes {} bytes to say; it may take {}: have fewer "
        "or shorter arguments, variables and names of files",
        writer.bytes().size(), kManifestBytesMax);
  }
  return writer.Take();
}

ProgramManifest DecodeManifest(std::span<const std::byte> bytes) {
  if (bytes.size() > kManifestBytesMax) {
    throw InvalidArgument("a program's manifest has {} bytes; it may have {}", bytes.size(),
                          kManifestBytesMax);
  }
  WireReader reader("a program's manifest", bytes);
  ProgramManifest manifest;
  manifest.version = TakePlainText(reader, "version");
  CheckProgramVersion(manifest.version);
  manifest.arguments.resize(TakeCountAtMost(reader, kManifestTextsMax, kTextBytesMin, "arguments"));
  for (std::string& argument : manifest.arguments) argument = TakePlainText(reader, "arguments");
  manifest.variables.resize(
      TakeCountAtMost(reader, kManifestTextsMax, 2 * kTextBytesMin, "variables"));
  for (auto& [name, value] : manifest.variables) {
    name = TakePlainText(reader, "variables");
    value = TakePlainText(reader, "variables");
  }
  manifest.memory_bytes_max = reader.Take<std::uint64_t>("memory_bytes_max");
  manifest.folder = TakePlainText(reader, "folder");
  manifest.folder_is = reader.TakeEnumerator(ProgramManifest::Folder::kShipped, "folder_is");
  manifest.unshipped = TakePlainText(reader, "unshipped");
  manifest.copied = reader.TakeFlag("copied");
  manifest.files.resize(TakeCountAtMost(reader, kManifestFilesMax, kFileBytesMin, "files"));
  for (ProgramFile& file : manifest.files) file = TakeFile(reader);
  reader.Finish();
  CheckManifest(manifest);
  return manifest;
}

}  // namespace menger
