#include "menger/algorithms/epsilon.h"

#include <gtest/gtest.h>

#include <utility>

namespace menger {
namespace {

TEST(EpsilonTest, ItGoesFromStartToEndInAShareOfTheRun) {
  const Epsilon epsilon({.start = 0.8, .end = 0.2, .fraction = 0.5});
  for (const auto& [progress, expected] :
       {std::pair{0.0, 0.8F}, std::pair{0.25, 0.5F}, std::pair{0.5, 0.2F}, std::pair{1.0, 0.2F}}) {
    EXPECT_FLOAT_EQ(epsilon.At(progress), expected) << progress;
  }
  EXPECT_FLOAT_EQ(Epsilon({.start = 0.4, .end = 0.4, .fraction = 0}).At(0), 0.4F);
}

// .4^(1 + 7 i / (N - 1)) for N = 8, by Python.
TEST(EpsilonTest, EnvironmentsExploreByPowersOfIt) {
  const double expected[] = {0.4, 0.16, 0.064, 0.0256, 0.01024, 0.004096, 0.0016384, 0.00065536};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(Epsilon::Of(i, 8, 0.4, 7), expected[i], 1e-12) << i;
  EXPECT_EQ(Epsilon::Of(0, 1, 0.4, 7), 0.4);
  EXPECT_EQ(Epsilon::Of(5, 8, 0.4, 0), 0.4);
}

}  // namespace
}  // namespace menger
