#pragma once

#include <cstddef>

#include "menger/networks/kernels/kernels.h"

namespace menger {

// The kernels, written once over the vectors of an instruction set. `Isa` has two vector widths,
// Isa::Wide and Isa::Narrow (8 floats), each with Vector, kLanes, Load, Store, Broadcast, Fma, Min,
// Max, and two lists of row counts that fit the registers.
//
// Every `Isa` lives in the anonymous namespace of its .cc file, so that no instantiation can be
// merged with one that was compiled for another processor; for the same reason nothing of the
// standard library is called here.
template <typename Isa>
struct VectorKernels {
  using Wide = typename Isa::Wide;
  using Narrow = typename Isa::Narrow;

  // One block of c, kept in registers: kRows rows by kVectors vectors, from (row, column) on.
  // `stored` columns of it exist.
  template <typename Lanes, int kRows, int kVectors>
  static void Block(const MatrixProduct& product, int row, int column, int stored) {
    using Vector = typename Lanes::Vector;
    Vector sum[kRows][kVectors];
    float* const c = product.c + row * product.c_row + column;
    if (product.bias != nullptr) {
      for (int v = 0; v < kVectors; ++v) {
        const Vector start = Lanes::Load(product.bias + column + v * Lanes::kLanes);
        for (int r = 0; r < kRows; ++r) sum[r][v] = start;
      }
    } else {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sum[r][v] = Lanes::Broadcast(0.0f);
      }
      if (product.accumulate) {
        for (int r = 0; r < kRows; ++r) {
          for (int v = 0; v < kVectors; ++v) {
            const int lane = v * Lanes::kLanes;
            sum[r][v] = LoadSome<Lanes>(c + r * product.c_row + lane, stored - lane);
          }
        }
      }
    }
    const float* a = product.a + row * product.a_row;
    const float* b = product.b + column;
    for (int k = 0; k < product.inner; ++k) {
      Vector right[kVectors];
      for (int v = 0; v < kVectors; ++v) right[v] = Lanes::Load(b + v * Lanes::kLanes);
      for (int r = 0; r < kRows; ++r) {
        const Vector left = Lanes::Broadcast(a[r * product.a_row]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = Lanes::Fma(left, right[v], sum[r][v]);
      }
      a += product.a_inner;
      b += product.b_row;
    }
    if (stored >= kVectors * Lanes::kLanes) {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          Lanes::Store(c + r * product.c_row + v * Lanes::kLanes, sum[r][v]);
        }
      }
    } else {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          const int lane = v * Lanes::kLanes;
          StoreSome<Lanes>(c + r * product.c_row + lane, stored - lane, sum[r][v]);
        }
      }
    }
  }

  template <typename Lanes>
  static typename Lanes::Vector LoadSome(const float* from, int count) {
    if (count >= Lanes::kLanes) return Lanes::Load(from);
    float lanes[Lanes::kLanes] = {};
    for (int i = 0; i < count; ++i) lanes[i] = from[i];
    return Lanes::Load(lanes);
  }

  template <typename Lanes>
  static void StoreSome(float* to, int count, typename Lanes::Vector vector) {
    if (count >= Lanes::kLanes) {
      Lanes::Store(to, vector);
      return;
    }
    float lanes[Lanes::kLanes];
    Lanes::Store(lanes, vector);
    for (int i = 0; i < count; ++i) to[i] = lanes[i];
  }

  // All rows of one strip of columns: as many as possible kRows at a time, the rest by 4, 2 and 1.
  template <typename Lanes, int kRows, int kVectors>
  static void Strip(const MatrixProduct& product, int column) {
    const int stored = product.columns - column;
    int row = 0;
    for (; row + kRows <= product.rows; row += kRows) {
      Block<Lanes, kRows, kVectors>(product, row, column, stored);
    }
    for (; row + 4 <= product.rows; row += 4)
      Block<Lanes, 4, kVectors>(product, row, column, stored);
    for (; row + 2 <= product.rows; row += 2)
      Block<Lanes, 2, kVectors>(product, row, column, stored);
    if (row < product.rows) Block<Lanes, 1, kVectors>(product, row, column, stored);
  }

  static void Multiply(const MatrixProduct& product) {
    const int columns = Padded(product.columns);
    int column = 0;
    for (; column + 4 * Wide::kLanes <= columns; column += 4 * Wide::kLanes) {
      Strip<Wide, Isa::kRowsOf4, 4>(product, column);
    }
    for (; column + 2 * Wide::kLanes <= columns; column += 2 * Wide::kLanes) {
      Strip<Wide, Isa::kRowsOf2, 2>(product, column);
    }
    for (; column + Wide::kLanes <= columns; column += Wide::kLanes) {
      Strip<Wide, 8, 1>(product, column);
    }
    if (column < columns) Strip<Narrow, 8, 1>(product, column);
  }

  // tanh(x) = x P(x^2) / Q(x^2) on [-8, 8], +-(1 - 1e-7) beyond. The coefficients minimise the
  // largest relative error (6e-9, below float's rounding); all are positive, so nothing cancels.
  // NaN stays NaN.
  template <typename Lanes>
  static typename Lanes::Vector Tanh(typename Lanes::Vector x) {
    const auto constant = [](float value) { return Lanes::Broadcast(value); };
    x = Lanes::Max(constant(-8.0f), Lanes::Min(constant(8.0f), x));
    const auto t = x * x;
    auto p = constant(1.5230463784222202e-08f);
    p = Lanes::Fma(p, t, constant(2.1894694804690244e-05f));
    p = Lanes::Fma(p, t, constant(0.0035716000148692402f));
    p = Lanes::Fma(p, t, constant(0.13444499656461945f));
    p = Lanes::Fma(p, t, constant(0.9999999935732824f));
    auto q = constant(8.522465339590913e-07f);
    q = Lanes::Fma(q, t, constant(0.0003411295274967389f));
    q = Lanes::Fma(q, t, constant(0.026164450509882496f));
    q = Lanes::Fma(q, t, constant(0.46777826976891074f));
    q = Lanes::Fma(q, t, constant(1.0f));
    return (x * p) / q;
  }

  // Calls function(lanes, offset) for every vector of `count` floats.
  template <typename Function>
  static void ForEach(std::ptrdiff_t count, Function function) {
    std::ptrdiff_t i = 0;
    for (; i + Wide::kLanes <= count; i += Wide::kLanes) function(Wide(), i);
    for (; i < count; i += Narrow::kLanes) function(Narrow(), i);
  }

  static void TanhInPlace(float* values, std::ptrdiff_t count) {
    ForEach(count, [values](auto lanes, std::ptrdiff_t i) {
      using Lanes = decltype(lanes);
      Lanes::Store(values + i, Tanh<Lanes>(Lanes::Load(values + i)));
    });
  }

  static void ReluInPlace(float* values, std::ptrdiff_t count) {
    ForEach(count, [values](auto lanes, std::ptrdiff_t i) {
      using Lanes = decltype(lanes);
      Lanes::Store(values + i, Lanes::Max(Lanes::Broadcast(0.0f), Lanes::Load(values + i)));
    });
  }

  static void TanhGradient(const float* outputs, float* gradients, std::ptrdiff_t count) {
    ForEach(count, [=](auto lanes, std::ptrdiff_t i) {
      using Lanes = decltype(lanes);
      const auto output = Lanes::Load(outputs + i);
      const auto slope = Lanes::Fma(-output, output, Lanes::Broadcast(1.0f));
      Lanes::Store(gradients + i, Lanes::Load(gradients + i) * slope);
    });
  }

  static void ReluGradient(const float* outputs, float* gradients, std::ptrdiff_t count) {
    ForEach(count, [=](auto lanes, std::ptrdiff_t i) {
      using Lanes = decltype(lanes);
      Lanes::Store(gradients + i,
                   Lanes::WherePositive(Lanes::Load(outputs + i), Lanes::Load(gradients + i)));
    });
  }
};

}  // namespace menger
