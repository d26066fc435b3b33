#include "menger/base/random.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/ziggurat_tables.h"

namespace menger {
namespace {

__extension__ typedef unsigned __int128 Uint128;  // Not in the standard; -Wpedantic would ask.

constexpr int kPoolSize = 4;

// The mixing of numpy.random.SeedSequence, which is O'Neill's seed_seq_fe.
class Hash {
 public:
  Hash(uint32_t start, uint32_t multiplier) : constant_(start), multiplier_(multiplier) {}

  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    value *= constant_;
    return value ^ (value >> 16);
  }

 private:
  uint32_t constant_;
  const uint32_t multiplier_;
};

uint32_t Mix(uint32_t x, uint32_t y) {
  const uint32_t result = x * 0xca01f9ddu - y * 0x4973f715u;
  return result ^ (result >> 16);
}

// Little-endian 32-bit words without leading zeros, at least one: how numpy splits a Python
// integer.
void AppendWords(uint64_t value, std::vector<uint32_t>& words) {
  words.push_back(static_cast<uint32_t>(value));
  if (value >> 32 != 0) words.push_back(static_cast<uint32_t>(value >> 32));
}

Uint128 Join(uint64_t high, uint64_t low) { return (Uint128{high} << 64) | low; }

constexpr uint64_t kMultiplierHigh = 2549297995355413924u;
constexpr uint64_t kMultiplierLow = 4865540595714422341u;

void Step(RandomState& state) {
  const Uint128 next =
      Join(state.state_high, state.state_low) * Join(kMultiplierHigh, kMultiplierLow) +
      Join(state.increment_high, state.increment_low);
  state.state_high = static_cast<uint64_t>(next >> 64);
  state.state_low = static_cast<uint64_t>(next);
}

}  // namespace

SeedSequence::SeedSequence(uint64_t entropy, std::vector<uint64_t> spawn_key)
    : SeedSequence(std::span<const uint64_t>(&entropy, 1), std::move(spawn_key)) {}

SeedSequence::SeedSequence(std::span<const uint64_t> entropy, std::vector<uint64_t> spawn_key)
    : spawn_key_(std::move(spawn_key)) {
  for (const uint64_t value : entropy) AppendWords(value, entropy_);
  MixPool();
}

void SeedSequence::MixPool() {
  std::vector<uint32_t> words = entropy_;
  if (!spawn_key_.empty() && words.size() < kPoolSize) words.resize(kPoolSize, 0);
  for (const uint64_t key : spawn_key_) AppendWords(key, words);

  Hash hash(0x43b0d7e5u, 0x931e8875u);
  for (size_t i = 0; i < kPoolSize; ++i) pool_[i] = hash(i < words.size() ? words[i] : 0);
  for (int source = 0; source < kPoolSize; ++source) {
    for (int target = 0; target < kPoolSize; ++target) {
      if (source != target) pool_[target] = Mix(pool_[target], hash(pool_[source]));
    }
  }
  for (size_t source = kPoolSize; source < words.size(); ++source) {
    for (uint32_t& target : pool_) target = Mix(target, hash(words[source]));
  }
}

SeedSequence SeedSequence::Spawn(uint64_t index) const {
  SeedSequence child = *this;
  child.spawn_key_.push_back(index);
  child.MixPool();
  return child;
}

std::vector<uint32_t> SeedSequence::GenerateState(int words) const {
  Hash hash(0x8b51f9ddu, 0x58f38dedu);
  std::vector<uint32_t> state(words);
  for (int i = 0; i < words; ++i) state[i] = hash(pool_[i % kPoolSize]);
  return state;
}

std::vector<uint64_t> SeedSequence::GenerateState64(int words) const {
  const std::vector<uint32_t> halves = GenerateState(2 * words);
  std::vector<uint64_t> state(words);
  for (int i = 0; i < words; ++i) state[i] = halves[2 * i] | (uint64_t{halves[2 * i + 1]} << 32);
  return state;
}

Random::Random(const SeedSequence& sequence) {
  const std::vector<uint64_t> words = sequence.GenerateState64(4);
  const Uint128 increment = (Join(words[2], words[3]) << 1) | 1;
  state_.increment_high = static_cast<uint64_t>(increment >> 64);
  state_.increment_low = static_cast<uint64_t>(increment);
  Step(state_);
  const Uint128 start = Join(state_.state_high, state_.state_low) + Join(words[0], words[1]);
  state_.state_high = static_cast<uint64_t>(start >> 64);
  state_.state_low = static_cast<uint64_t>(start);
  Step(state_);
}

// PCG XSL-RR 128/64 (O'Neill 2014).
uint64_t Random::NextUint64() {
  Step(state_);
  const uint64_t value = state_.state_high ^ state_.state_low;
  const int rotation = static_cast<int>(state_.state_high >> 58);
  return (value >> rotation) | (value << ((64 - rotation) & 63));
}

uint32_t Random::NextUint32() {
  if (state_.has_buffered != 0) {
    state_.has_buffered = 0;
    return state_.buffered;
  }
  const uint64_t word = NextUint64();
  state_.buffered = static_cast<uint32_t>(word >> 32);
  state_.has_buffered = 1;
  return static_cast<uint32_t>(word);
}

double Random::Double() { return static_cast<double>(NextUint64() >> 11) * 0x1p-53; }

double Random::Uniform(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low) || high < low) {
    throw InvalidArgument("uniform bounds are {} and {}; they must be finite and in order", low,
                          high);
  }
  return low + (high - low) * Double();
}

double Random::Normal(double mean, double standard_deviation) {
  if (!(standard_deviation >= 0)) {
    throw InvalidArgument("the standard deviation is {}; it must be at least 0",
                          standard_deviation);
  }
  return mean + standard_deviation * StandardNormal();
}

double Random::StandardNormal() {
  constexpr double kTail = 3.6541528853610088;  // Where the lowest layer hands over to the tail.
  constexpr double kInverseTail = 0.27366123732975828;
  for (;;) {
    const uint64_t word = NextUint64();
    const int layer = static_cast<int>(word & 0xff);
    const bool negative = (word >> 8 & 1) != 0;
    const uint64_t position = word >> 9 & 0x000fffffffffffff;
    double x = static_cast<double>(position) * ziggurat::kWidth[layer];
    if (negative) x = -x;
    if (position < ziggurat::kAccept[layer]) return x;
    if (layer == 0) {
      for (;;) {
        const double beyond = -kInverseTail * std::log1p(-Double());
        const double y = -std::log1p(-Double());
        if (y + y <= beyond * beyond) continue;
        // Numpy takes the sign from another bit here than above.
        return (position >> 8 & 1) != 0 ? -(kTail + beyond) : kTail + beyond;
      }
    }
    const double below = ziggurat::kHeight[layer];
    const double above = ziggurat::kHeight[layer - 1];
    if ((above - below) * Double() + below < std::exp(-0.5 * x * x)) return x;
  }
}

int64_t Random::Integers(int64_t low, int64_t high) {
  if (low >= high) {
    throw InvalidArgument("integers from {} to below {}: there are none", low, high);
  }
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) - 1;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + Bounded(range));
}

// Lemire's method (2019) in 32 bits where they are enough, else in 64, as numpy chooses.
uint64_t Random::Bounded(uint64_t range) {
  if (range == 0) return 0;
  if (range == 0xffffffffu) return NextUint32();
  if (range == std::numeric_limits<uint64_t>::max()) return NextUint64();
  if (range < 0xffffffffu) {
    const uint32_t count = static_cast<uint32_t>(range) + 1;
    uint64_t product = uint64_t{NextUint32()} * count;
    if (static_cast<uint32_t>(product) < count) {
      const uint32_t threshold = (0xffffffffu - static_cast<uint32_t>(range)) % count;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{NextUint32()} * count;
    }
    return product >> 32;
  }
  const uint64_t count = range + 1;
  Uint128 product = Uint128{NextUint64()} * count;
  if (static_cast<uint64_t>(product) < count) {
    const uint64_t threshold = (std::numeric_limits<uint64_t>::max() - range) % count;
    while (static_cast<uint64_t>(product) < threshold) product = Uint128{NextUint64()} * count;
  }
  return static_cast<uint64_t>(product >> 64);
}

uint64_t Random::Masked(uint64_t range) {
  if (range == 0) return 0;
  const uint64_t mask = std::numeric_limits<uint64_t>::max() >> std::countl_zero(range);
  for (;;) {
    const uint64_t value = (range <= 0xffffffffu ? NextUint32() : NextUint64()) & mask;
    if (value <= range) return value;
  }
}

std::vector<int64_t> Random::Permutation(int64_t count) {
  if (count < 0) throw InvalidArgument("a permutation of {} items; at least 0", count);
  std::vector<int64_t> items(count);
  std::iota(items.begin(), items.end(), int64_t{0});
  Shuffle(std::span<int64_t>(items));
  return items;
}

}  // namespace menger
