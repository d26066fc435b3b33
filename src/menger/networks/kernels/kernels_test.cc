#include "menger/networks/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "menger/networks/kernels/elementary.h"
#include "menger/networks/recorded_input.h"

namespace menger {
namespace {

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all = {&Avx2Kernels()};
  if (HasAvx512()) all.push_back(&Avx512Kernels());
  return all;
}

struct Sizes {
  int rows, inner, columns;
};
constexpr Sizes kSizes[] = {{1, 1, 1},  {7, 4, 64},  {13, 64, 2},  {64, 64, 64},
                            {5, 9, 18}, {11, 3, 40}, {23, 17, 72}, {8, 5, 130},
                            {3, 64, 8}, {6, 20, 33}, {2, 256, 100}};

struct Operands {
  explicit Operands(const Sizes& s)
      : a(RecordedInput(s.rows * s.inner, 1, 1.0f)),
        b(RecordedInput(s.inner * Padded(s.columns), 2, 1.0f)),
        bias(RecordedInput(Padded(s.columns), 3, 1.0f)) {}
  std::vector<float> a, b, bias;
};

MatrixProduct Product(const Operands& x, const Sizes& s, std::vector<float>& c) {
  c.assign(s.rows * s.columns, -7.0f);
  return {.a = x.a.data(),
          .a_row = s.inner,
          .a_inner = 1,
          .b = x.b.data(),
          .b_row = Padded(s.columns),
          .c = c.data(),
          .c_row = s.columns,
          .bias = x.bias.data(),
          .rows = s.rows,
          .inner = s.inner,
          .columns = s.columns};
}

TEST(KernelsTest, AProductIsOneChainOfFusedMultiplyAddsAnElement) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Sizes& s : kSizes) {
      const Operands x(s);
      std::vector<float> c;
      kernels->multiply(Product(x, s, c));
      for (int i = 0; i < s.rows; ++i) {
        for (int j = 0; j < s.columns; ++j) {
          float expected = x.bias[j];
          for (int k = 0; k < s.inner; ++k) {
            expected = std::fma(x.a[i * s.inner + k], x.b[k * Padded(s.columns) + j], expected);
          }
          ASSERT_EQ(c[i * s.columns + j], expected) << kernels->name << " " << i << " " << j;
        }
      }
    }
  }
}

TEST(KernelsTest, ATransposedLeftSideIsReadThroughItsStrides) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Sizes& s : kSizes) {
      const Operands x(s);
      std::vector<float> c, transposed_c;
      kernels->multiply(Product(x, s, c));
      std::vector<float> a(x.a.size());
      for (int i = 0; i < s.rows; ++i) {
        for (int k = 0; k < s.inner; ++k) a[k * s.rows + i] = x.a[i * s.inner + k];
      }
      MatrixProduct product = Product(x, s, transposed_c);
      product.a = a.data();
      product.a_row = 1;
      product.a_inner = s.rows;
      kernels->multiply(product);
      EXPECT_EQ(c, transposed_c);
    }
  }
}

TEST(KernelsTest, AccumulatingTwoHalvesGivesTheWholeToTheLastBit) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Sizes& s : kSizes) {
      const Operands x(s);
      std::vector<float> whole, halves;
      MatrixProduct product = Product(x, s, whole);
      product.bias = nullptr;
      kernels->multiply(product);
      product = Product(x, s, halves);
      product.bias = nullptr;
      const int first = s.inner / 2;
      product.inner = first;
      kernels->multiply(product);
      product.a += first;
      product.b += first * product.b_row;
      product.inner = s.inner - first;
      product.accumulate = true;
      kernels->multiply(product);
      EXPECT_EQ(whole, halves);
    }
  }
}

TEST(KernelsTest, TanhIsWithinFiveUnitsOfTheExactValueAndNeverBeyondOne) {
  for (const Kernels* kernels : AllKernels()) {
    std::vector<float> x;
    for (int i = 0; i < 400000; ++i) x.push_back(static_cast<float>(i - 200000) * 1e-4f);
    for (float small = 1.0f; small > 1e-37f; small *= 0.9f) x.push_back(small);
    x.resize(Padded(static_cast<int>(x.size())));
    std::vector<float> y = x;
    kernels->tanh(y.data(), static_cast<std::ptrdiff_t>(y.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::tanh(static_cast<double>(x[i]));
      ASSERT_LE(std::abs(y[i] - exact), 6e-7 * std::abs(exact)) << x[i];
      ASSERT_LE(std::abs(y[i]), 1.0f) << x[i];
    }
  }
}

TEST(KernelsTest, ActivationsKeepNaN) {
  for (const Kernels* kernels : AllKernels()) {
    for (const auto function : {kernels->tanh, kernels->relu}) {
      for (const int count : {8, 16, 24}) {
        std::vector<float> x(count, std::numeric_limits<float>::quiet_NaN());
        function(x.data(), count);
        for (const float value : x) EXPECT_TRUE(std::isnan(value));
      }
    }
  }
}

TEST(KernelsTest, BothInstructionSetsAgreeToTheLastBit) {
  if (!HasAvx512()) GTEST_SKIP() << "this processor has no AVX-512";
  const Kernels& a = Avx2Kernels();
  const Kernels& b = Avx512Kernels();
  const auto x = RecordedInput(4096 + 8, 1, 4.0f);
  const auto gradient = RecordedInput(4096 + 8, 2, 4.0f);
  const auto count = static_cast<std::ptrdiff_t>(x.size());
  auto x1 = x, x2 = x;
  a.tanh(x1.data(), count);
  b.tanh(x2.data(), count);
  EXPECT_EQ(x1, x2);
  auto g1 = gradient, g2 = gradient;
  a.tanh_gradient(x1.data(), g1.data(), count);
  b.tanh_gradient(x1.data(), g2.data(), count);
  EXPECT_EQ(g1, g2);
  x1 = x, x2 = x;
  a.relu(x1.data(), count);
  b.relu(x2.data(), count);
  EXPECT_EQ(x1, x2);
  g1 = gradient, g2 = gradient;
  a.relu_gradient(x1.data(), g1.data(), count);
  b.relu_gradient(x1.data(), g2.data(), count);
  EXPECT_EQ(g1, g2);
}

TEST(KernelsTest, TranspositionsTouchNothingElse) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Sizes& s : {Sizes{1, 0, 1},
                           {8, 0, 8},
                           {16, 0, 16},
                           {23, 0, 17},
                           {7, 0, 40},
                           {64, 0, 24},
                           {9, 0, 130}}) {
      const int from_row = s.columns + 3;
      const int to_row = s.rows + 5;
      const auto from = RecordedInput(s.rows * from_row, 1, 1.0f);
      std::vector<float> to(s.columns * to_row, -7.0f);
      std::vector<float> expected = to;
      for (int i = 0; i < s.rows; ++i) {
        for (int j = 0; j < s.columns; ++j) expected[j * to_row + i] = from[i * from_row + j];
      }
      kernels->transpose({.from = from.data(),
                          .from_row = from_row,
                          .to = to.data(),
                          .to_row = to_row,
                          .rows = s.rows,
                          .columns = s.columns});
      EXPECT_EQ(to, expected) << kernels->name << " " << s.rows << " x " << s.columns;
    }
  }
}

TEST(ElementaryTest, ExpIsWithinTwoUnitsInTheLastPlace) {
  for (float x = -86.9f; x < 88.0f; x += 0.00037f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::abs(Exp(x) - exact), 2.4e-7 * exact) << x;
  }
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ElementaryTest, LogIsWithinTwoUnitsInTheLastPlace) {
  for (float x = 1e-30f; x < 1e30f; x *= 1.00013f) {
    const double exact = std::log(static_cast<double>(x));
    ASSERT_LE(std::abs(Log(x) - exact), 2.4e-7 * std::abs(exact)) << x;
  }
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(Log(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace menger
