#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace menger::bench {

// What a benchmark's main does: runs `function`, and turns an error into one line and status 1.
inline int RunProgram(const char* name, int (*function)(int argc, char** argv), int argc,
                      char** argv) {
  try {
    return function(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace menger::bench
