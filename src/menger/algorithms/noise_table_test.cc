#include "menger/algorithms/noise_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(NoiseTableTest, ItIsStandardNormal) {
  const std::vector<float> table = MakeNoiseTable(1'000'003, 1);
  double sum = 0;
  double squares = 0;
  double neighbours = 0;
  double fourth = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double value = table[i];
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    if (i > 0) neighbours += value * table[i - 1];
  }
  const auto count = static_cast<double>(table.size());
  // Five standard errors each.
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96 / count));
  EXPECT_NEAR(neighbours / count, 0, 5 / std::sqrt(count));
}

TEST(NoiseTableTest, ItIsAFunctionOfTheSeed) {
  EXPECT_EQ(MakeNoiseTable(101, 1), MakeNoiseTable(101, 1));
  EXPECT_NE(MakeNoiseTable(101, 1), MakeNoiseTable(101, 2));
  const std::vector<float> longer = MakeNoiseTable(1000, 1);
  const std::vector<float> table = MakeNoiseTable(101, 1);
  EXPECT_TRUE(std::equal(table.begin(), table.end(), longer.begin()));
}

TEST(PairStreamTest, EveryPlaceInTheTableIsDrawnAndNoneBeyond) {
  const PairStream stream(/*seed=*/3, /*entries=*/10, /*parameters=*/4, 0);
  std::set<std::int64_t> drawn;
  for (int pair = 0; pair < 500; ++pair) drawn.insert(stream.Draw(0, pair).noise_index);
  EXPECT_EQ(drawn, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(PairStreamTest, PairsAndIterationsDifferAndRepeat) {
  const PairStream stream(3, 1'000'000, 100, 0.25);
  std::set<std::uint64_t> seeds;
  std::set<std::uint64_t> action_seeds;
  int observed = 0;
  for (int iteration = 0; iteration < 40; ++iteration) {
    for (int pair = 0; pair < 100; ++pair) {
      const PairDraws draws = stream.Draw(iteration, pair);
      EXPECT_LT(draws.environment_seed, std::uint64_t{1} << 48);
      seeds.insert(draws.environment_seed);
      action_seeds.insert(draws.action_seed);
      observed += (draws.observe[0] ? 1 : 0) + (draws.observe[1] ? 1 : 0);
      EXPECT_EQ(draws.noise_index,
                PairStream(3, 1'000'000, 100, 1.0).Draw(iteration, pair).noise_index);
    }
  }
  EXPECT_EQ(seeds.size(), 4000U);
  EXPECT_EQ(action_seeds.size(), 4000U);
  EXPECT_NEAR(observed, 2000, 5 * std::sqrt(8000 * 0.25 * 0.75));
}

TEST(PairStreamTest, ATableThatIsTooSmallIsRefused) {
  EXPECT_NO_THROW(PairStream(1, 100, 100, 0));
  EXPECT_THROW(PairStream(1, 99, 100, 0), Error);
}

}  // namespace
}  // namespace menger
