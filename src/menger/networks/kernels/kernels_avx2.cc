// Compiled for x86-64-v3: AVX2 and FMA, 16 registers of 8 floats.
#include <immintrin.h>

#include "menger/networks/kernels/kernel_table.h"
#include "menger/networks/kernels/kernels.h"

namespace menger {
namespace {

struct Lanes8 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static Vector Load(const float* from) { return _mm256_loadu_ps(from); }
  static void Store(float* to, Vector vector) { _mm256_storeu_ps(to, vector); }
  static Vector Broadcast(float value) { return _mm256_set1_ps(value); }
  static Vector Fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector Min(Vector a, Vector b) { return _mm256_min_ps(a, b); }  // b if either is NaN.
  static Vector Max(Vector a, Vector b) { return _mm256_max_ps(a, b); }  // b if either is NaN.
  static Vector WherePositive(Vector condition, Vector value) {          // 0 elsewhere.
    return _mm256_and_ps(_mm256_cmp_ps(condition, _mm256_setzero_ps(), _CMP_GT_OQ), value);
  }
};

struct Avx2 {
  using Wide = Lanes8;
  using Narrow = Lanes8;
  static constexpr int kRowsOf4 = 3;
  static constexpr int kRowsOf2 = 6;
};

constexpr Kernels kKernels = KernelTable<Avx2>("avx2");

}  // namespace

const Kernels& Avx2Kernels() { return kKernels; }

}  // namespace menger
