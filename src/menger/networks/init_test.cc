#include "menger/networks/init.h"

#include <gtest/gtest.h>

#include <vector>

namespace menger {
namespace {

// The product of row (or column) i with row (or column) j.
double Product(const std::vector<float>& m, int rows, int columns, int i, int j) {
  const bool wide = rows <= columns;
  double sum = 0;
  for (int k = 0; k < (wide ? columns : rows); ++k) {
    sum += wide ? static_cast<double>(m[i * columns + k]) * m[j * columns + k]
                : static_cast<double>(m[k * columns + i]) * m[k * columns + j];
  }
  return sum;
}

TEST(InitTest, RowsOfWideAndColumnsOfTallMatricesAreOrthonormalTimesTheGain) {
  struct Case {
    int rows, columns;
    double gain;
  };
  for (const auto& [rows, columns, gain] :
       {Case{64, 64, 1.0}, Case{4, 64, 1.5}, Case{64, 2, 0.01}, Case{1, 1, 2.0}, Case{7, 5, 1.0}}) {
    Random random = Random::FromSeed(3);
    std::vector<float> m(rows * columns);
    FillOrthogonal(m.data(), rows, columns, gain, random);
    for (int i = 0; i < std::min(rows, columns); ++i) {
      for (int j = 0; j <= i; ++j) {
        EXPECT_NEAR(Product(m, rows, columns, i, j), i == j ? gain * gain : 0.0, 1e-6);
      }
    }
  }
}

TEST(InitTest, SignsAreBalancedSoThatNoDirectionIsPreferred) {
  Random random = Random::FromSeed(4);
  int positive = 0;
  for (int i = 0; i < 1000; ++i) {
    float m[9];
    FillOrthogonal(m, 3, 3, 1.0, random);
    positive += (m[0] > 0) + (m[4] > 0) + (m[8] > 0);
  }
  EXPECT_NEAR(positive, 1500, 120);  // More than four standard deviations.
}

TEST(InitTest, TheSameSeedGivesTheSameMatrix) {
  std::vector<float> a(12), b(12);
  Random first = Random::FromSeed(5);
  Random second = Random::FromSeed(5);
  FillOrthogonal(a.data(), 3, 4, 1.0, first);
  FillOrthogonal(b.data(), 3, 4, 1.0, second);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace menger
