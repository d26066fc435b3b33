#pragma once

#include <cstdio>
#include <exception>

namespace menger {

// The status of a program of these tests: `run` does what the arguments ask for, or returns false
// if they ask for nothing that it knows.
int RunCrashProgram(const char* usage, auto run) {
  try {
    if (run()) return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "%s\n", usage);
  return 2;
}

}  // namespace menger
