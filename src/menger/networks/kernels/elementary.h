#pragma once

#include <bit>
#include <cstdint>

namespace menger {

// Elementary functions without branches or calls, so that a compiler can run a loop over them on
// whole vectors. Fused multiply-adds are explicit: the same bits alone and in a vector. The
// coefficients minimise the largest relative error over the reduced range.

// e^x within 2 units in the last place for x in [-87, 88]; exactly 0 below, e^88 above.
inline float Exp(float x) {
  const float low = x < -87.0f ? -87.0f : x;
  const float clamped = low > 88.0f ? 88.0f : low;
  constexpr float kRound = 0x1.8p23f;  // Adding it leaves the nearest integer in the low bits.
  const float shifted = __builtin_fmaf(clamped, 1.44269504088896341f, kRound);
  const float power = shifted - kRound;
  float r = __builtin_fmaf(power, -0x1.62e4p-1f, clamped);  // ln 2 in two parts, the first short.
  r = __builtin_fmaf(power, -0x1.7f7d1cp-20f, r);
  float p = 0.0013814598564573246f;
  p = __builtin_fmaf(p, r, 0.00836871698368112f);
  p = __builtin_fmaf(p, r, 0.04166838805442216f);
  p = __builtin_fmaf(p, r, 0.16666520630833825f);
  p = __builtin_fmaf(p, r, 0.499999934477353f);
  const float mantissa = __builtin_fmaf(r * r, p, r) + 1.0f;
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127) << 23);
  return x < -87.0f ? 0.0f : mantissa * scale;
}

// The natural logarithm within 2 units in the last place, for finite normal x > 0; NaN stays NaN.
inline float Log(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::int32_t exponent =
      static_cast<std::int32_t>(bits - 0x3F3504F3u) >> 23;  // Mantissa in [sqrt(1/2), sqrt(2)).
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1.0f;
  float p = -0.07634499985106363f;
  p = __builtin_fmaf(p, f, 0.12761582451376827f);
  p = __builtin_fmaf(p, f, -0.13160183675322998f);
  p = __builtin_fmaf(p, f, 0.14201757369117302f);
  p = __builtin_fmaf(p, f, -0.1662335715776486f);
  p = __builtin_fmaf(p, f, 0.20001226896215396f);
  p = __builtin_fmaf(p, f, -0.2500082103962431f);
  p = __builtin_fmaf(p, f, 0.33333331707549385f);
  const float square = f * f;
  const float power = static_cast<float>(exponent);
  float result = __builtin_fmaf(square * f, p, power * 0x1.7f7d1cp-20f);
  result = __builtin_fmaf(square, -0.5f, result) + f;
  result = __builtin_fmaf(power, 0x1.62e4p-1f, result);
  return x == x ? result : x;
}

}  // namespace menger
