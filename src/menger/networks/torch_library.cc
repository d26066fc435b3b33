#include "menger/networks/torch_library.h"

#include <cstdlib>

#include "menger/base/error.h"
#include "menger/base/plugin.h"

namespace menger {
namespace {

void* LoadTorchLibrary(const NetworkSpec& spec) {
  try {
    return LoadPlugin({.file = "libmenger_torch.so",
                       .variable = "MENGER_TORCH_LIBRARY",
                       .symbol = kTorchNetworkSymbol});
  } catch (const Error& error) {
    throw FailedPrecondition(
        "network.kind = \"{}\" on device \"{}\" in precision \"{}\" needs the torch library: {}. "
        "`make build` makes it beside the program",
        spec.options.kind, spec.device, spec.precision, error.what());
  }
}

}  // namespace

std::unique_ptr<Network> MakeTorchNetwork(const NetworkSpec& spec, Random& random, int threads) {
  // Torch's threads would otherwise spin at every barrier, which takes the CPU from the thread they
  // wait for where cores are shared: measured 40 times slower. Read once, as the library loads.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  auto* const make = reinterpret_cast<TorchNetworkFactory*>(LoadTorchLibrary(spec));
  try {
    return std::unique_ptr<Network>(make(&spec, &random, threads));
  } catch (...) {
    throw TranslateCurrentException();
  }
}

}  // namespace menger
