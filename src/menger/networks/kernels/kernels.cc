#include "menger/networks/kernels/kernels.h"

#include "menger/networks/kernels/bf16.h"

namespace menger {

// What x86-64-v4 adds, feature by feature: Clang 14 (clang-tidy) does not know the level by its
// name.
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}

bool HasAvx512Bf16() { return HasAvx512() && __builtin_cpu_supports("avx512bf16") != 0; }

const Kernels& BestKernels() { return HasAvx512() ? Avx512Kernels() : Avx2Kernels(); }

}  // namespace menger
