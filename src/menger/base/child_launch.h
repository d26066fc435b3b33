#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace menger {

// A program to start, and how its process differs from this one.
struct ChildProgram {
  std::vector<std::string> arguments;  // The first names the program where `file` does not.
  std::string file;                    // A path, or a name searched in PATH.
  std::vector<std::pair<std::string, std::string>> variables;  // Put over this process's own.
  std::string folder;          // To work in; "" for that of this process.
  std::vector<int> inherited;  // Descriptors that it has under the same numbers, and no others.
  std::vector<int> cpus;       // That it may use; none for all that this process may.
  bool heeds_signals = false;  // SIGINT, SIGTERM and SIGHUP do to it what they do to any program.
  bool outlives = false;       // That this process is killed is nothing to it.

  const std::string& name() const { return file.empty() ? arguments.front() : file; }
};

// Starts the program and returns its process once it runs. `output` becomes its standard output and
// error; its standard input is empty.
//
// It leads a process group of its own, so that an interrupt at the terminal reaches this process
// alone, and what it leaves behind can be killed with it. Unless it outlives this process the
// kernel kills it when the calling thread ends, which it takes for the end of this process. SIGINT,
// SIGTERM and SIGHUP it ignores unless it heeds them: a batch system that ends a job may send them
// to every process of it, and this one saves what it holds before it ends its children. Which CPUs
// the calling thread may use is nothing to it.
//
// This process's memory is not copied, so the time to start does not grow with it. Throws
// FailedPrecondition where the program cannot be started.
pid_t LaunchChild(const ChildProgram& program, int output);

}  // namespace menger
