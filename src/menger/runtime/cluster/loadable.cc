#include "menger/runtime/cluster/loadable.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

constexpr std::size_t kLinesMax = 10'000;
constexpr std::size_t kMissingMax = 10;  // That are named.

template <typename T>
T ReadPlain(const FileDescriptor& file, std::uint64_t offset, const std::string& path) {
  T value;
  ReadAllAt(file, offset, std::as_writable_bytes(std::span(&value, 1)), path);
  return value;
}

Elf64_Ehdr ReadHeader(const FileDescriptor& file, const std::string& path) {
  const auto header = ReadPlain<Elf64_Ehdr>(file, 0, path);
  const bool right = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     header.e_ident[EI_CLASS] == ELFCLASS64 &&
                     header.e_phentsize == sizeof(Elf64_Phdr);
  if (!right) throw FailedPrecondition("'{}' is no program of a 64-bit Linux", path);
  return header;
}

// "" where it names none.
std::string LoaderOf(const FileDescriptor& file, const Elf64_Ehdr& header,
                     const std::string& path) {
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = ReadPlain<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr), path);
    if (segment.p_type != PT_INTERP || segment.p_filesz > 4'096) continue;
    std::string name(segment.p_filesz, '\0');
    ReadAllAt(file, segment.p_offset, std::as_writable_bytes(std::span(name)), path);
    return name.c_str();  // It ends with a 0.
  }
  return "";
}

std::vector<std::string> LinesOf(const ChildProgram& program, const Deadline& deadline) {
  std::vector<std::string> lines;
  ChildProcesses processes;
  const ChildId child = processes.Start(program, {.on_line = [&lines](std::string_view line) {
                                          if (lines.size() < kLinesMax) lines.emplace_back(line);
                                        }});
  if (!processes.WaitForEnd(child, deadline.remaining())) {
    throw DeadlineExceeded("'{}' did not say in time which libraries '{}' loads", program.name(),
                           program.arguments.back());
  }
  return lines;
}

// What the loader prints of a library that is not there: "\tlibx.so.1 => not found", or "...
// version `X_1.2' not found (required by ...)".
std::string Missing(const std::vector<std::string>& lines) {
  std::string missing;
  std::size_t count = 0;
  for (const std::string& line : lines) {
    if (line.find("not found") == std::string::npos || ++count > kMissingMax) continue;
    std::string name = line.substr(0, line.find(" => not found"));
    name.erase(0, name.find_first_not_of(" \t"));
    missing += (missing.empty() ? "" : ", ") + name;
  }
  return missing;
}

}  // namespace

void CheckLoadable(const WorkerProgram& program, const Deadline& deadline) {
  const std::string& path = program.arguments.front();
  const FileDescriptor file = OpenForReading(path);
  const Elf64_Ehdr header = ReadHeader(file, path);
  const std::string self = "/proc/self/exe";
  const Elf64_Half own = ReadHeader(OpenForReading(self), self).e_machine;
  if (header.e_machine != own) {
    throw FailedPrecondition(
        "the driver's program is for machines of kind {} (ELF), this node is "
        "of kind {}",
        header.e_machine, own);
  }
  const std::string loader = LoaderOf(file, header, path);
  if (loader.empty()) return;
  if (access(loader.c_str(), X_OK) != 0) {
    throw FailedPrecondition("the driver's program needs '{}', which this node does not have",
                             loader);
  }
  if (loader.find("/ld-linux") == std::string::npos) return;
  // As `ldd` does: with this variable the GNU C library's loader says what it loads, and no more.
  ChildProgram asked{.arguments = {loader, path}, .variables = program.variables};
  asked.variables.emplace_back("LD_TRACE_LOADED_OBJECTS", "1");
  const std::string missing = Missing(LinesOf(asked, deadline));
  if (!missing.empty()) {
    throw FailedPrecondition(
        "the driver's program needs libraries that this node does not have, "
        "or in another version: {}",
        missing);
  }
}

}  // namespace menger
