#include "menger/tensor/tensor_view.h"

#include <utility>

#include "menger/base/error.h"

namespace menger {

std::size_t TensorView::bytes() const {
  std::size_t bytes = SizeOf(dtype);
  if (bytes == 0) throw InvalidArgument("there is no data type {}", static_cast<int>(dtype));
  bool fits = true;
  for (const std::int64_t size : shape) {
    fits =
        fits && size >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes);
  }
  if (!fits || bytes > PTRDIFF_MAX) {
    throw InvalidArgument(
        "there is no tensor of shape {}: sizes are at least 0 and their product "
        "must fit into memory",
        ToString(shape));
  }
  return bytes;
}

void TensorView::CheckType(DataType wanted) const {
  if (dtype == wanted) return;
  throw InvalidArgument("a tensor of {} is read as {}", NameOf(dtype), NameOf(wanted));
}

TensorView ViewOf(DataType dtype, Shape shape, std::span<const std::byte> values) {
  TensorView view;
  view.dtype = dtype;
  view.shape = std::move(shape);
  view.data = values.data();
  if (view.bytes() != values.size()) {
    throw InvalidArgument("a tensor of {} and shape {} has {} bytes, not {}", NameOf(dtype),
                          ToString(view.shape), view.bytes(), values.size());
  }
  return view;
}

}  // namespace menger
