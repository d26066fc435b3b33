#pragma once

#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <utility>

namespace menger {

// The Philox4x32-10 bijection (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011).
inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Random draws for acting that depend only on (seed, stream, environment, step, block), never on
// who draws, in what order or in which batch: so slabs are the same for any number of workers, and
// nothing has to be saved.
//
// `stream` separates uses (action noise, epsilon, decorrelation, ...). Immutable, any thread; no
// allocation; about 10 ns a draw of four words.
class CounterRandom {
 public:
  // Each (seed, stream) has its own 64-bit key, itself a Philox draw.
  CounterRandom(uint64_t seed, uint32_t stream) {
    const auto words = Philox4x32({stream, 0, 0, 0}, Split(seed));
    key_ = {words[0], words[1]};
  }

  // Four uniform words. `environment` is below 2^32; `block` counts further draws for the same
  // environment and step.
  std::array<uint32_t, 4> Draw(uint64_t environment, uint64_t step, uint32_t block = 0) const {
    assert(environment >> 32 == 0);
    const auto [step_low, step_high] = Split(step);
    return Philox4x32({block, static_cast<uint32_t>(environment), step_low, step_high}, key_);
  }

  // [0, 1) in steps of 2^-24: every value is exact and 1 cannot come out by rounding.
  static float Uniform01(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

  // Two independent standard normal numbers (Box and Muller 1958); magnitudes stay below 5.9.
  static std::pair<float, float> Normals(uint32_t first, uint32_t second) {
    const float uniform = (static_cast<float>(first >> 8) + 1.0f) * 0x1p-24f;  // (0, 1]: no log(0).
    const float radius = std::sqrt(-2.0f * std::log(uniform));
    const float angle = 6.2831853071795865f * Uniform01(second);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

  // The first word of a draw as a number in [0, 1).
  float Uniform(uint64_t environment, uint64_t step, uint32_t block = 0) const {
    return Uniform01(Draw(environment, step, block)[0]);
  }

 private:
  static std::array<uint32_t, 2> Split(uint64_t value) {
    return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
  }

  std::array<uint32_t, 2> key_;
};

}  // namespace menger
