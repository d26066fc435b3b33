#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace menger {

// Elementary functions as NumPy 2 computes them, where it differs from plain C++ in the last bit:
// environments are promised to equal Gymnasium's. Checked on x86-64 with AVX2 against NumPy 2.4.

// x ** 2 of a float64 scalar. NumPy calls the C library's pow, which rounds about one square in a
// thousand the other way than x * x. glibc documents an error of at most 0.54 units in the last
// place, so the two can differ only where the exact square lies within 0.04 units of a rounding
// boundary; elsewhere the product is the answer, at a tenth of the cost.
inline double NumpySquare(double x) {
  constexpr std::uint64_t kExponentBits = 0x7FF0000000000000;
  const double product = x * x;
  const double error = std::fma(x, x, -product);  // Exact.
  const double half_unit =
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(product) & kExponentBits) * 0x1p-53;
  if (std::abs(error) <= 0.9 * half_unit) return product;
  const volatile double exponent = 2.0;  // Or the compiler would turn it into x * x.
  return std::pow(x, exponent);
}

// x ** 2 of a float32 scalar.
inline float NumpySquare(float x) {
  const volatile float exponent = 2.0F;
  return std::pow(x, exponent);
}

// sin and cos of a float32 scalar below pi / 4: NumPy's own vector code, which is the minimax
// polynomials below in fused arithmetic without a range reduction.
inline float NumpySinSmall(float x) {
  const float square = x * x;
  float sum = 0x1.7d3bbcp-19F;
  sum = std::fma(sum, square, -0x1.a06bbap-13F);
  sum = std::fma(sum, square, 0x1.11119ap-7F);
  sum = std::fma(sum, square, -0x1.555556p-3F);
  return std::fma(sum * square, x, x);
}

inline float NumpyCosSmall(float x) {
  const float square = x * x;
  float sum = 0x1.98e616p-16F;
  sum = std::fma(sum, square, -0x1.6c06dcp-10F);
  sum = std::fma(sum, square, 0x1.55553cp-5F);
  sum = std::fma(sum, square, -0.5F);
  return std::fma(sum, square, 1.0F);
}

}  // namespace menger
