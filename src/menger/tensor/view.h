#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace menger {

// `count` items of `item` bytes each, `stride` bytes apart: one row of a slab's leaf, a column
// through its rows, a chunk's slice. Borrowed: whoever owns the memory must outlive the view.
struct StridedView {
  const std::byte* data = nullptr;
  std::size_t item = 0;
  std::ptrdiff_t stride = 0;
  int count = 0;

  const std::byte* operator[](int index) const { return data + stride * index; }
  bool dense() const { return stride == static_cast<std::ptrdiff_t>(item); }
};

// Copies the items named by `indices` into `out`, densely, in that order. `out` holds
// indices.size() * view.item bytes; indices are not checked.
inline void Gather(const StridedView& view, std::span<const std::int32_t> indices, std::byte* out) {
  for (const std::int32_t index : indices) {
    std::memcpy(out, view[index], view.item);
    out += view.item;
  }
}

}  // namespace menger
