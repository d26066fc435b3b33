#pragma once

#include <memory>

#include "menger/base/random.h"
#include "menger/networks/network.h"

namespace menger {

// Makes the network that the spec asks for by libmenger_torch.so: everything that MakeNetwork has
// no kernels of ours for. So a program that needs none of that starts without torch.
//
// The library is $MENGER_TORCH_LIBRARY or lies beside the program. It is loaded at the first call
// and never unloaded: torch keeps threads and static state. Throws FailedPrecondition, saying how
// to get it, where it is missing or does not fit; errors of the library pass through as menger's.
std::unique_ptr<Network> MakeTorchNetwork(const NetworkSpec& spec, Random& random, int threads);

// What the library exports with C linkage, under this name.
inline constexpr const char* kTorchNetworkSymbol = "menger_make_torch_network";
using TorchNetworkFactory = Network*(const NetworkSpec* spec, Random* random, int threads);

}  // namespace menger
