#pragma once

#include "menger/base/random.h"
#include "menger/networks/network.h"

// What libmenger_torch.so exports, all of it: networks on libtorch. Kinds mlp, nature_cnn, a3c_cnn
// and lstm, on the CPU or on a CUDA device, in fp32 or with hidden layers in bf16 (weights,
// gradients, heads and the LSTM layer stay fp32).
//
// The caller owns the result, and must keep the library open as long as it lives. Beyond the
// contract of Network: Backward may be called once a Forward, because the graph is freed on the
// way; what computes sets the calling thread's intra-op thread count to `threads`. Only
// menger::Error leaves: InvalidArgument for a wrong spec or batch, FailedPrecondition for a device
// that is not there and a Backward without its Forward, Unavailable when memory runs out, Internal
// for anything else that libtorch refuses.
extern "C" [[gnu::visibility("default")]] menger::Network* menger_make_torch_network(
    const menger::NetworkSpec* spec, menger::Random* random, int threads);
