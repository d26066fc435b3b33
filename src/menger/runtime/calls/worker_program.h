#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace menger {

// What a worker process runs.
struct WorkerProgram {
  std::vector<std::string> arguments;                          // None: this program's own image.
  std::vector<std::pair<std::string, std::string>> variables;  // Put over the driver's own.
  std::string folder;                                          // To work in; "" for the driver's.
  std::uint64_t memory_bytes_max = 0;  // As ChildProcesses::LimitMemory; 0: no limit.

  bool operator==(const WorkerProgram&) const = default;
};

}  // namespace menger
