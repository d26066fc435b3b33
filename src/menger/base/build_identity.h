#pragma once

#include <string>

namespace menger {

// What this program was built from: written into every run folder and printed by `menger
// --version`, so that a result can be traced to the code that made it. A field that could not be
// found out (sources without git) is "unknown".
struct BuildIdentity {
  std::string version;  // As in CMakeLists.txt, e.g. "0.1.0".
  std::string commit;   // Twelve hexadecimal digits, with "+dirty" if a tracked file differed from
                        // that commit.
  std::string commit_date;  // The day of that commit, e.g. "2026-11-21".
  std::string compiler;     // E.g. "GNU 12.2.0".
  std::string build_type;   // "Release", "Debug", "RelWithDebInfo"; with "+address" or "+thread" if
                            // instrumented.
};

// The same reference on every call; safe from any thread.
const BuildIdentity& ThisBuild();

// One line: "menger 0.1.0 (commit 0123456789ab of 2026-11-21, GNU 12.2.0, Release)".
std::string ToString(const BuildIdentity& build);

}  // namespace menger
