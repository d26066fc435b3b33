// Compiled for x86-64-v4: AVX-512, 32 registers of 16 floats. Nothing in here may run before
// HasAvx512() was asked.
#include <immintrin.h>

#include "menger/networks/kernels/kernel_table.h"
#include "menger/networks/kernels/kernels.h"

namespace menger {
namespace {

struct Lanes16 {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr __mmask16 kAll = 0xFFFF;
  static Vector Load(const float* from) { return _mm512_loadu_ps(from); }
  static void Store(float* to, Vector vector) { _mm512_storeu_ps(to, vector); }
  static Vector Broadcast(float value) { return _mm512_set1_ps(value); }
  static Vector Fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  // b if either is NaN. The plain forms make GCC 12 warn of an uninitialised register.
  static Vector Min(Vector a, Vector b) { return _mm512_maskz_min_ps(kAll, a, b); }
  static Vector Max(Vector a, Vector b) { return _mm512_maskz_max_ps(kAll, a, b); }
  static Vector WherePositive(Vector condition, Vector value) {  // 0 elsewhere.
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(condition, _mm512_setzero_ps(), _CMP_GT_OQ),
                               value);
  }
};

struct Lanes8 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static Vector Load(const float* from) { return _mm256_loadu_ps(from); }
  static void Store(float* to, Vector vector) { _mm256_storeu_ps(to, vector); }
  static Vector Broadcast(float value) { return _mm256_set1_ps(value); }
  static Vector Fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector Min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  static Vector Max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector WherePositive(Vector condition, Vector value) {
    return _mm256_and_ps(_mm256_cmp_ps(condition, _mm256_setzero_ps(), _CMP_GT_OQ), value);
  }
};

struct Avx512 {
  using Wide = Lanes16;
  using Narrow = Lanes8;
  static constexpr int kRowsOf4 = 6;
  static constexpr int kRowsOf2 = 8;
};

constexpr Kernels kKernels = KernelTable<Avx512>("avx512");

}  // namespace

const Kernels& Avx512Kernels() { return kKernels; }

}  // namespace menger
