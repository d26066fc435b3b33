#pragma once

#include "menger/base/random.h"

namespace menger {

// Fills the row-major matrix with a random orthogonal one times `gain`: its rows are orthonormal
// where it is wide, its columns where it is tall (Saxe, McClelland, Ganguli 2014; the distribution
// of torch.nn.init.orthogonal_). Computed in double precision.
void FillOrthogonal(float* matrix, int rows, int columns, double gain, Random& random);

}  // namespace menger
