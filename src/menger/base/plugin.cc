#include "menger/base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "menger/base/error.h"

namespace menger {
namespace {

std::string PathOf(const Plugin& plugin) {
  const char* const chosen = std::getenv(plugin.variable.c_str());
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw FromErrno("cannot read '/proc/self/exe'", failure.value());
  return program.parent_path() / plugin.file;
}

}  // namespace

void* LoadPlugin(const Plugin& plugin) {
  const std::string path = PathOf(plugin);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library != nullptr ? dlsym(library, plugin.symbol.c_str()) : nullptr;
  if (symbol == nullptr) {
    const char* const reason = dlerror();
    throw FailedPrecondition("cannot use '{}' ({} names another place): {}", path, plugin.variable,
                             reason != nullptr ? reason : "it is no library of ours");
  }
  return symbol;
}

}  // namespace menger
