#pragma once

#include <cstddef>
#include <span>

#include "menger/tensor/data_type.h"
#include "menger/tensor/spec.h"

namespace menger {

// An array of numbers in memory that belongs to somebody else, who must outlive the view: dense, in
// C order, and aligned for its type.
struct TensorView {
  DataType dtype = DataType::kFloat32;
  Shape shape = {0};
  const std::byte* data = nullptr;

  // Throws InvalidArgument if there is no such tensor: an unknown type, a negative size, or more
  // bytes than an address can name.
  std::size_t bytes() const;

  // All elements. Throws InvalidArgument if T is not of `dtype`.
  template <typename T>
  std::span<const T> values() const {
    CheckType(kDataTypeOf<T>);
    return {reinterpret_cast<const T*>(data), bytes() / sizeof(T)};
  }

 private:
  void CheckType(DataType wanted) const;
};

// Of `values`, which must outlive it. Throws InvalidArgument if they are not as many as the shape
// says.
TensorView ViewOf(DataType dtype, Shape shape, std::span<const std::byte> values);

template <typename T>
TensorView ViewOf(Shape shape, std::span<const T> values) {
  return ViewOf(kDataTypeOf<T>, std::move(shape), std::as_bytes(values));
}

}  // namespace menger
