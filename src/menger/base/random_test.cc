// Every expected value was drawn by NumPy: tools/record_random.py wrote random_test_values.h.
#include "menger/base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "menger/base/error.h"
#include "menger/base/random_test_values.h"

namespace menger {
namespace {

using testing::ElementsAreArray;

struct Recorded {
  uint64_t seed;
  std::span<const uint64_t> words, mixed;
  std::span<const double> doubles, uniform, normal;
  uint64_t normal_digest;
  std::span<const int64_t> integers, permutation, shuffle;
};

const std::vector<Recorded>& Streams() {
  using namespace recorded;  // NOLINT: a table of names that are written by a program.
  static const std::vector<Recorded> streams = {
      {0, kSeed0Words64, kSeed0Mixed, kSeed0Doubles, kSeed0Uniform, kSeed0Normal,
       kSeed0NormalDigest, kSeed0Integers, kSeed0Permutation, kSeed0Shuffle},
      {7, kSeed7Words64, kSeed7Mixed, kSeed7Doubles, kSeed7Uniform, kSeed7Normal,
       kSeed7NormalDigest, kSeed7Integers, kSeed7Permutation, kSeed7Shuffle},
      {42, kSeed42Words64, kSeed42Mixed, kSeed42Doubles, kSeed42Uniform, kSeed42Normal,
       kSeed42NormalDigest, kSeed42Integers, kSeed42Permutation, kSeed42Shuffle},
      {4294967296u, kSeed4294967296Words64, kSeed4294967296Mixed, kSeed4294967296Doubles,
       kSeed4294967296Uniform, kSeed4294967296Normal, kSeed4294967296NormalDigest,
       kSeed4294967296Integers, kSeed4294967296Permutation, kSeed4294967296Shuffle},
      {9223372036854775813u, kSeed9223372036854775813Words64, kSeed9223372036854775813Mixed,
       kSeed9223372036854775813Doubles, kSeed9223372036854775813Uniform,
       kSeed9223372036854775813Normal, kSeed9223372036854775813NormalDigest,
       kSeed9223372036854775813Integers, kSeed9223372036854775813Permutation,
       kSeed9223372036854775813Shuffle},
      {18446744073709551615u, kSeed18446744073709551615Words64, kSeed18446744073709551615Mixed,
       kSeed18446744073709551615Doubles, kSeed18446744073709551615Uniform,
       kSeed18446744073709551615Normal, kSeed18446744073709551615NormalDigest,
       kSeed18446744073709551615Integers, kSeed18446744073709551615Permutation,
       kSeed18446744073709551615Shuffle},
  };
  return streams;
}

TEST(SeedSequenceTest, StateEqualsNumpyForIntegersListsAndChildren) {
  EXPECT_THAT(SeedSequence(0).GenerateState(8), ElementsAreArray(recorded::kSequence0));
  EXPECT_THAT(SeedSequence(7).GenerateState64(5), ElementsAreArray(recorded::kSequence7In64));
  EXPECT_THAT((SeedSequence({1, uint64_t{1} << 40, 0, 3, 4, 5}).GenerateState(6)),
              ElementsAreArray(recorded::kSequenceList));
  const SeedSequence child = SeedSequence(7).Spawn(2);
  EXPECT_THAT(child.GenerateState(4), ElementsAreArray(recorded::kSequenceChild));
  EXPECT_THAT(child.Spawn(1).GenerateState(4), ElementsAreArray(recorded::kSequenceGrandchild));
  EXPECT_EQ(SeedSequence(7, {2, 1}).GenerateState(4), child.Spawn(1).GenerateState(4));
}

TEST(RandomTest, WordsEqualNumpyAndShareTheirHalves) {
  for (const Recorded& stream : Streams()) {
    Random random = Random::FromSeed(stream.seed);
    for (const uint64_t word : stream.words) EXPECT_EQ(random.NextUint64(), word);
    random = Random::FromSeed(stream.seed);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(random.NextUint32(), stream.mixed[i]);
    EXPECT_EQ(random.NextUint64(), stream.mixed[3]);
    EXPECT_EQ(random.NextUint32(), stream.mixed[4]);
  }
}

TEST(RandomTest, UniformEqualsNumpyBitForBit) {
  for (const Recorded& stream : Streams()) {
    Random random = Random::FromSeed(stream.seed);
    for (const double expected : stream.doubles) EXPECT_EQ(random.Double(), expected);
    random = Random::FromSeed(stream.seed);
    for (const double expected : stream.uniform) EXPECT_EQ(random.Uniform(-0.05, 0.05), expected);
  }
}

TEST(RandomTest, NormalEqualsNumpyBitForBitWedgesAndTailIncluded) {
  for (const Recorded& stream : Streams()) {
    Random random = Random::FromSeed(stream.seed);
    for (const double expected : stream.normal) EXPECT_EQ(random.Normal(1.5, 0.25), expected);
    random = Random::FromSeed(stream.seed);
    uint64_t digest = 0xcbf29ce484222325u;
    for (int i = 0; i < 200'000; ++i) {
      digest = (digest ^ std::bit_cast<uint64_t>(random.Normal())) * 0x100000001b3u;
    }
    EXPECT_EQ(digest, stream.normal_digest);
  }
}

TEST(RandomTest, IntegersEqualNumpyInThirtyTwoAndSixtyFourBits) {
  for (const Recorded& stream : Streams()) {
    Random random = Random::FromSeed(stream.seed);
    auto expected = stream.integers.begin();
    for (const auto& [low, high] : recorded::kRanges) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(random.Integers(low, high), *expected++);
    }
  }
}

TEST(RandomTest, PermutationAndShuffleEqualNumpy) {
  for (const Recorded& stream : Streams()) {
    Random random = Random::FromSeed(stream.seed);
    EXPECT_THAT(random.Permutation(12), ElementsAreArray(stream.permutation));
    random = Random::FromSeed(stream.seed);
    std::vector<int64_t> items = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    random.Shuffle(std::span<int64_t>(items));
    EXPECT_THAT(items, ElementsAreArray(stream.shuffle));
  }
}

TEST(RandomTest, ARestoredStreamGoesOnWithItsBufferedHalf) {
  static_assert(std::is_trivially_copyable_v<RandomState>);
  Random random = Random::FromSeed(3);
  random.NextUint32();
  const RandomState saved = random.Save();
  const uint32_t half = random.NextUint32();
  const double normal = random.Normal();
  Random other(saved);
  EXPECT_EQ(other.NextUint32(), half);
  EXPECT_EQ(other.Normal(), normal);
  EXPECT_EQ(other.Save(), random.Save());
}

TEST(RandomTest, DistributionsThatDoNotExistAreRefused) {
  Random random = Random::FromSeed(1);
  EXPECT_THROW(random.Integers(3, 3), Error);
  EXPECT_THROW(random.Integers(4, 3), Error);
  EXPECT_THROW(random.Uniform(0, std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(random.Uniform(1, 0), Error);
  EXPECT_THROW(random.Normal(0, -1), Error);
  EXPECT_THROW(random.Permutation(-1), Error);
  EXPECT_TRUE(random.Permutation(0).empty());
}

}  // namespace
}  // namespace menger
