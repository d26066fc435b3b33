#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/file_testing.h"
#include "menger/runtime/cluster/describe_program.h"
#include "menger/runtime/cluster/program_cache.h"
#include "menger/runtime/cluster/program_server.h"
#include "menger/runtime/net/peer_stream_testing.h"

namespace menger {

// For tests of programs that are shipped.

using testing_files::ErrorText;
using testing_files::Folder;

inline Deadline SoonEnough() { return Deadline::After(kStreamPatience); }

inline void WriteText(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A script that prints what a file beside it says.
inline WorkerProgram ScriptIn(const Folder& folder) {
  WriteText(folder / "data/word.txt", "green\n");
  WriteText(folder / "say.sh", "cat data/word.txt; echo $WORDS\n");
  return {.arguments = {"/bin/sh", folder / "say.sh"},
          .variables = {{"WORDS", (folder / "data") + ":" + (folder / "none") + ":x"}},
          .folder = folder.path()};
}

// Reads the files where the manifest says that the driver has them, and notes which.
struct LocalSource {
  std::vector<std::string> asked;

  ProgramSource Get() {
    return [this](const ProgramFile& file, const TakeBytes& take) {
      asked.push_back(file.name);
      const std::string text = ReadFile(SourceOf(file));
      take(std::as_bytes(std::span(text)));
    };
  }
};

// What a program prints until it ends.
inline std::vector<std::string> LinesOfRun(const WorkerProgram& program,
                                           const std::vector<std::string>& more = {}) {
  std::vector<std::string> lines;
  ChildProgram child{
      .arguments = program.arguments, .variables = program.variables, .folder = program.folder};
  child.arguments.insert(child.arguments.end(), more.begin(), more.end());
  ChildProcesses processes;
  const ChildId id =
      processes.Start(child, {.on_line = [&](std::string_view line) { lines.emplace_back(line); },
                              .on_end = [&](const ChildEnd& end) { lines.push_back(end.cause); }});
  EXPECT_TRUE(processes.WaitForEnd(id, kStreamPatience));
  return lines;
}

}  // namespace menger
