#pragma once

#include "menger/base/error.h"
#include "menger/networks/network.h"

namespace menger {

// What networks check of a batch alike. All throw InvalidArgument.

// Of one that reads no vector beside its observations.
inline void RefuseVector(const NetworkInput& input) {
  if (input.vector == nullptr) return;
  throw InvalidArgument(
      "a vector was given beside the observations to a network that reads none: what it is made "
      "from has vector_elements = 0; lay the numbers into the observations, or make one with as "
      "many vector_elements");
}
inline void RefuseVectorGradient(const GradientRequest& request) {
  if (request.vector == nullptr) return;
  throw InvalidArgument(
      "the gradient of a vector was asked of a network that reads none: what it is made from has "
      "vector_elements = 0; ask for that of its inputs");
}

// The gradient of a head's output, which has so many rows.
inline void CheckGradient(const HeadSpec& head, const Matrix& gradient, int rows) {
  if (gradient.rows != rows || gradient.columns != head.width) {
    throw InvalidArgument("the gradient of head '{}' is [{}, {}]; its output was [{}, {}]",
                          head.name, gradient.rows, gradient.columns, rows, head.width);
  }
  if (gradient.data != nullptr && gradient.stride < gradient.columns) {
    throw InvalidArgument(
        "the gradient of head '{}' has stride {}; from one row to the next there are at least its "
        "{} columns",
        head.name, gradient.stride, gradient.columns);
  }
}

}  // namespace menger
