#pragma once

#include <cstddef>

#include "menger/networks/kernels/kernels.h"
#include "menger/networks/kernels/layer_norm.h"
#include "menger/networks/kernels/vector_kernels.h"

namespace menger {

// The kernels of layer normalisation, written once over the vectors of an instruction set as
// VectorKernels is.
template <typename Isa>
struct LayerNormKernels {
  using Wide = typename Isa::Wide;
  using Narrow = typename Isa::Narrow;
  using Plain = VectorKernels<Isa>;

  // The sum over `count` numbers, a multiple of kPadding; add(lanes, offset, sum) is a vector of
  // sums plus the summands from the offset on. Summand i goes to lane i % kLanes whatever the width
  // of the vectors.
  template <typename Add>
  static float Sum(int count, Add add) {
    constexpr int kLanes = 32;
    constexpr int kVectors = kLanes / Wide::kLanes;
    typename Wide::Vector sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = Wide::Broadcast(0.0f);
    int i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int v = 0; v < kVectors; ++v) sum[v] = add(Wide(), i + v * Wide::kLanes, sum[v]);
    }
    float lanes[kLanes];
    for (int v = 0; v < kVectors; ++v) Wide::Store(lanes + v * Wide::kLanes, sum[v]);
    for (float* rest = lanes; i < count; i += Narrow::kLanes, rest += Narrow::kLanes) {
      Narrow::Store(rest, add(Narrow(), i, Narrow::Load(rest)));
    }
    const auto even = Narrow::Load(lanes) + Narrow::Load(lanes + 16);
    const auto odd = Narrow::Load(lanes + 8) + Narrow::Load(lanes + 24);
    Narrow::Store(lanes, even + odd);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }

  // Mean first, then variance: the difference of two sums would lose the digits of a row whose mean
  // is large.
  static void Normalise(const LayerNormRows& all) {
    const int width = Padded(all.columns);
    const auto columns = static_cast<float>(all.columns);
    for (std::ptrdiff_t row = 0; row < all.rows; ++row) {
      const float* const input = all.input + row * width;
      float* const normalised = all.normalised + row * width;
      const float mean =
          Sum(width, [input](auto lanes, int i,
                             auto sum) { return sum + decltype(lanes)::Load(input + i); }) /
          columns;
      Plain::ForEach(width, [=](auto lanes, std::ptrdiff_t i) {
        using Lanes = decltype(lanes);
        Lanes::Store(normalised + i, Lanes::Load(input + i) - Lanes::Broadcast(mean));
      });
      for (int i = all.columns; i < width; ++i) normalised[i] = 0.0f;
      const float variance = Sum(width,
                                 [normalised](auto lanes, int i, auto sum) {
                                   const auto centred = decltype(lanes)::Load(normalised + i);
                                   return decltype(lanes)::Fma(centred, centred, sum);
                                 }) /
                             columns;
      const float inverse = 1.0f / __builtin_sqrtf(variance + kLayerNormEpsilon);
      if (all.inverse_deviations != nullptr) all.inverse_deviations[row] = inverse;
      float* const output = all.output + row * width;
      Plain::ForEach(width, [=, &all](auto lanes, std::ptrdiff_t i) {
        using Lanes = decltype(lanes);
        const auto scaled = Lanes::Load(normalised + i) * Lanes::Broadcast(inverse);
        Lanes::Store(normalised + i, scaled);
        Lanes::Store(output + i,
                     Lanes::Fma(scaled, Lanes::Load(all.gain + i), Lanes::Load(all.bias + i)));
      });
    }
  }

  // With n the normalised row and h = gain * d(loss)/d(output):
  // d(loss)/d(input) = (h - mean(h) - n mean(h n)) / deviation.
  static void Gradient(const LayerNormSlopes& all) {
    const int width = Padded(all.columns);
    const auto columns = static_cast<float>(all.columns);
    const float* const gain = all.gain;
    for (std::ptrdiff_t row = 0; row < all.rows; ++row) {
      const float* const slope = all.output_gradients + row * width;
      const float* const normalised = all.normalised + row * width;
      float* const to = all.input_gradients + row * width;
      Plain::ForEach(width, [=](auto lanes, std::ptrdiff_t i) {
        using Lanes = decltype(lanes);
        Lanes::Store(to + i, Lanes::Load(slope + i) * Lanes::Load(gain + i));
      });
      const float mean =
          Sum(width,
              [to](auto lanes, int i, auto sum) { return sum + decltype(lanes)::Load(to + i); }) /
          columns;
      const float share =
          Sum(width,
              [to, normalised](auto lanes, int i, auto sum) {
                using Lanes = decltype(lanes);
                return Lanes::Fma(Lanes::Load(to + i), Lanes::Load(normalised + i), sum);
              }) /
          columns;
      const float inverse = all.inverse_deviations[row];
      Plain::ForEach(width, [=](auto lanes, std::ptrdiff_t i) {
        using Lanes = decltype(lanes);
        const auto centred = Lanes::Load(to + i) - Lanes::Broadcast(mean);
        const auto rest =
            Lanes::Fma(-Lanes::Load(normalised + i), Lanes::Broadcast(share), centred);
        Lanes::Store(to + i, rest * Lanes::Broadcast(inverse));
      });
    }
  }

  static void SumGradients(const LayerNormSums& all) {
    const int width = Padded(all.columns);
    Plain::ForEach(width, [&all, width](auto lanes, std::ptrdiff_t i) {
      using Lanes = decltype(lanes);
      auto gain = Lanes::Broadcast(0.0f);
      auto bias = Lanes::Broadcast(0.0f);
      const float* slope = all.output_gradients + i;
      const float* normalised = all.normalised + i;
      for (int row = 0; row < all.rows; ++row) {
        const auto given = Lanes::Load(slope);
        gain = Lanes::Fma(given, Lanes::Load(normalised), gain);
        bias = bias + given;
        slope += width;
        normalised += width;
      }
      const int left = all.columns - static_cast<int>(i);
      Plain::template StoreSome<Lanes>(all.gain_gradients + i, left, gain);
      Plain::template StoreSome<Lanes>(all.bias_gradients + i, left, bias);
    });
  }
};

}  // namespace menger
