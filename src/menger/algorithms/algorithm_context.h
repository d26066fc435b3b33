#pragma once

#include <cstdint>
#include <string>

#include "menger/algorithms/transforms.h"
#include "menger/base/shared_worker_pool.h"
#include "menger/environments/environment.h"
#include "menger/networks/network.h"

namespace menger {

// Everything that an algorithm, or a policy of it, is made from beside its own options.
struct AlgorithmContext {
  EnvironmentSpec environment;
  NetworkOptions network;
  TransformOptions transforms;
  int environments = 1;  // Columns of the slabs it will learn from.
  std::string device = "cpu";
  std::string precision = "fp32";
  std::uint64_t seed = 0;
  SharedWorkerPool threads = 1;  // For learning, while collection pauses.
};

}  // namespace menger
