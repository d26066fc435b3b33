#pragma once

#include <filesystem>
#include <string>

namespace menger {

// An environment variable, or "".
std::string Variable(const char* name);

// The first that exists of: what the variable says (whether or not it exists), the place relative
// to the running program's folder, the place where this was built; "" if there is none. Absolute,
// but for what the variable says.
std::string FindBesideProgram(const char* variable, const std::filesystem::path& relative,
                              const char* built);

}  // namespace menger
