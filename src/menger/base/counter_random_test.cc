#include "menger/base/counter_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace menger {
namespace {

using Words = std::array<uint32_t, 4>;

// The published known answers of the Random123 library for philox4x32, 10 rounds.
TEST(CounterRandomTest, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandomTest, EveryPartOfTheAddressChangesTheDraw) {
  std::set<Words> draws;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32}) {
    for (const uint32_t stream : {0u, 1u}) {
      const CounterRandom random(seed, stream);
      for (const uint64_t environment : {uint64_t{0}, uint64_t{1}, uint64_t{0xffffffff}}) {
        for (const uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
          for (const uint32_t block : {0u, 1u}) {
            EXPECT_TRUE(draws.insert(random.Draw(environment, step, block)).second);
          }
        }
      }
    }
  }
  EXPECT_EQ(draws.size(), 3u * 2 * 3 * 3 * 2);
}

TEST(CounterRandomTest, TheSameAddressGivesTheSameDrawInAnyOrder) {
  const CounterRandom random(9, 4);
  const Words later = random.Draw(5, 100);
  random.Draw(5, 99);
  EXPECT_EQ(random.Draw(5, 100), later);
  EXPECT_EQ(CounterRandom(9, 4).Draw(5, 100), later);
}

TEST(CounterRandomTest, UniformNumbersStayBelowOne) {
  EXPECT_EQ(CounterRandom::Uniform01(0), 0.0f);
  EXPECT_EQ(CounterRandom::Uniform01(0xffffffff), 0x0.ffffffp0f);
  EXPECT_LT(CounterRandom::Uniform01(0xffffffff), 1.0f);
}

TEST(CounterRandomTest, NormalsAreFiniteAndHaveTheMomentsOfTheNormalDistribution) {
  for (const uint32_t word : {0u, 255u, 256u, 0x80000000u, 0xffffffffu}) {
    const auto [first, second] = CounterRandom::Normals(word, word);
    EXPECT_TRUE(std::isfinite(first) && std::isfinite(second));
    EXPECT_LT(std::hypot(first, second), 5.9f);
  }
  const CounterRandom random(11, 0);
  constexpr int kDraws = 100'000;
  double sums[5] = {};
  for (int step = 0; step < kDraws; ++step) {
    const Words words = random.Draw(3, step);
    const auto [first, second] = CounterRandom::Normals(words[0], words[1]);
    for (const double value : {first, second}) {
      for (int power = 1; power <= 4; ++power) sums[power] += std::pow(value, power);
    }
    sums[0] += double{first} * second;
  }
  const double count = 2.0 * kDraws;  // Bounds: five standard errors of each moment.
  EXPECT_NEAR(sums[1] / count, 0, 5 * std::sqrt(1 / count));
  EXPECT_NEAR(sums[2] / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(sums[3] / count, 0, 5 * std::sqrt(15 / count));
  EXPECT_NEAR(sums[4] / count, 3, 5 * std::sqrt(96 / count));
  EXPECT_NEAR(sums[0] / kDraws, 0, 5 * std::sqrt(1.0 / kDraws));
}

}  // namespace
}  // namespace menger
