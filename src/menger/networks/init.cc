#include "menger/networks/init.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace menger {
namespace {

// Four sums side by side, which the processor can overlap.
double Dot(const double* a, const double* b, int size) {
  double sums[4] = {};
  int i = 0;
  for (; i + 4 <= size; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < size; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

void FillOrthogonal(float* matrix, int rows, int columns, double gain, Random& random) {
  // `count` vectors of `size` normal numbers, made orthonormal by Gram and Schmidt's method in its
  // modified form: the same as a QR decomposition whose R has a positive diagonal.
  const int count = std::min(rows, columns);
  const int size = std::max(rows, columns);
  std::vector<double> vectors(static_cast<std::size_t>(count) * size);
  for (double& value : vectors) value = random.Normal();
  for (int i = 0; i < count; ++i) {
    double* const vector = vectors.data() + static_cast<std::ptrdiff_t>(i) * size;
    for (int j = 0; j < i; ++j) {
      const double* const other = vectors.data() + static_cast<std::ptrdiff_t>(j) * size;
      const double projection = Dot(vector, other, size);
      for (int k = 0; k < size; ++k) vector[k] -= projection * other[k];
    }
    const double norm = std::sqrt(Dot(vector, vector, size));
    for (int k = 0; k < size; ++k) vector[k] /= norm;
  }
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const std::ptrdiff_t index = rows <= columns
                                       ? static_cast<std::ptrdiff_t>(row) * size + column
                                       : static_cast<std::ptrdiff_t>(column) * size + row;
      matrix[static_cast<std::ptrdiff_t>(row) * columns + column] =
          static_cast<float>(gain * vectors[index]);
    }
  }
}

}  // namespace menger
