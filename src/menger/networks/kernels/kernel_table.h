#pragma once

#include "menger/networks/kernels/kernels.h"
#include "menger/networks/kernels/layer_norm_kernels.h"
#include "menger/networks/kernels/transpose_kernel.h"
#include "menger/networks/kernels/vector_kernels.h"

namespace menger {

// All kernels of an instruction set, which VectorKernels describes.
template <typename Isa>
constexpr Kernels KernelTable(const char* name) {
  using Plain = VectorKernels<Isa>;
  using Norm = LayerNormKernels<Isa>;
  return {.name = name,
          .multiply = &Plain::Multiply,
          .tanh = &Plain::TanhInPlace,
          .relu = &Plain::ReluInPlace,
          .tanh_gradient = &Plain::TanhGradient,
          .relu_gradient = &Plain::ReluGradient,
          .transpose = &TransposeKernel<Isa>::Transpose,
          .layer_norm = &Norm::Normalise,
          .layer_norm_gradient = &Norm::Gradient,
          .layer_norm_sums = &Norm::SumGradients};
}

}  // namespace menger
