#include "menger/networks/torch_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr const char* kVariable = "MENGER_TORCH_LIBRARY";

std::string TorchLibraryPath() {
  const char* const chosen = std::getenv(kVariable);
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw FromErrno("cannot read '/proc/self/exe'", failure.value());
  return program.parent_path() / "libmenger_torch.so";
}

Error CannotLoad(const NetworkSpec& spec, const std::string& path) {
  const char* const reason = dlerror();
  return FailedPrecondition(
      "network.kind = \"{}\" on device \"{}\" in precision \"{}\" needs the torch library '{}': "
      "{}. "
      "`make build` makes it beside the program; {} names another place",
      spec.options.kind, spec.device, spec.precision, path, reason != nullptr ? reason : "unusable",
      kVariable);
}

}  // namespace

std::unique_ptr<Network> MakeTorchNetwork(const NetworkSpec& spec, Random& random, int threads) {
  const std::string path = TorchLibraryPath();
  // Torch's threads would otherwise spin at every barrier, which takes the CPU from the thread they
  // wait for where cores are shared: measured 40 times slower. Read once, as the library loads.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CannotLoad(spec, path);
  void* const symbol = dlsym(library, kTorchNetworkSymbol);
  if (symbol == nullptr) throw CannotLoad(spec, path);
  try {
    return std::unique_ptr<Network>(
        reinterpret_cast<TorchNetworkFactory*>(symbol)(&spec, &random, threads));
  } catch (...) {
    throw TranslateCurrentException();
  }
}

}  // namespace menger
