#include "menger/base/program_files.h"

#include <cstdlib>

namespace menger {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FindBesideProgram(const char* variable, const fs::path& relative, const char* built) {
  if (std::string chosen = Variable(variable); !chosen.empty()) return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& path : {program.parent_path() / relative, fs::path(built)}) {
    if (fs::exists(path, error)) return fs::absolute(path, error).lexically_normal().string();
  }
  return "";
}

}  // namespace menger
