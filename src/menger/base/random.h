#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace menger {

// Turns one or several integers into any number of well-mixed seed words, exactly as
// numpy.random.SeedSequence does. Immutable; the same entropy and spawn key give the same words on
// every machine.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t entropy, std::vector<uint64_t> spawn_key = {});
  explicit SeedSequence(std::span<const uint64_t> entropy, std::vector<uint64_t> spawn_key = {});
  explicit SeedSequence(std::initializer_list<uint64_t> entropy)
      : SeedSequence(std::span<const uint64_t>(entropy.begin(), entropy.size())) {}

  // The child that numpy's spawn() would return as number `index` of a fresh sequence: an
  // independent stream.
  SeedSequence Spawn(uint64_t index) const;

  std::vector<uint32_t> GenerateState(int words) const;    // generate_state(words, uint32)
  std::vector<uint64_t> GenerateState64(int words) const;  // generate_state(words, uint64)

 private:
  void MixPool();

  std::vector<uint32_t> entropy_;  // As little-endian 32-bit words.
  std::vector<uint64_t> spawn_key_;
  uint32_t pool_[4];
};

// Everything a Random remembers: save it, restore it, and the stream goes on bit for bit. Plain
// bytes, for archives and shared memory.
struct RandomState {
  uint64_t state_high = 0;
  uint64_t state_low = 0;
  uint64_t increment_high = 0;
  uint64_t increment_low = 0;
  uint32_t buffered = 0;      // The upper half of the last 64-bit draw that served a 32-bit one.
  uint32_t has_buffered = 0;  // 0 or 1.

  bool operator==(const RandomState&) const = default;
};

// A stream of random numbers, bit-identical to numpy.random.Generator(PCG64(SeedSequence(seed)))
// for every method below, called in the same order. So environments reset exactly as Gymnasium's
// do. One thread at a time; cheap to copy (a copy repeats the stream). For per-environment streams
// that do not depend on batching use CounterRandom.
class Random {
 public:
  static Random FromSeed(uint64_t seed) { return Random(SeedSequence(seed)); }
  explicit Random(const SeedSequence& sequence);
  explicit Random(const RandomState& state) { Restore(state); }

  uint64_t NextUint64();
  uint32_t NextUint32();  // Two 32-bit draws share one 64-bit draw, low half first.

  double Double();  // random(): [0, 1) in steps of 2^-53.
  double Uniform(
      double low,
      double high);  // uniform(low, high); throws InvalidArgument unless finite and in order.
  double Normal(double mean = 0.0,
                double standard_deviation = 1.0);  // normal(mean, standard_deviation)

  // integers(low, high): uniform in [low, high). Throws InvalidArgument unless low < high.
  int64_t Integers(int64_t low, int64_t high);

  // shuffle(x) and permutation(n).
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[Masked(i)]);
  }
  std::vector<int64_t> Permutation(int64_t count);

  RandomState Save() const { return state_; }
  void Restore(const RandomState& state) { state_ = state; }

 private:
  // Uniform in [0, range], both ends included. Numpy has two ways, which draw differently.
  uint64_t Bounded(uint64_t range);  // Lemire's, for integers.
  uint64_t Masked(uint64_t range);   // By masking and rejection, for shuffles.
  double StandardNormal();

  RandomState state_;
};

}  // namespace menger
