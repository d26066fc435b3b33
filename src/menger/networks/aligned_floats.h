#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace menger {

// A zeroed array of numbers that starts on a cache line, for vector kernels. Owns its memory.
template <typename Number>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::ptrdiff_t size)
      : data_(static_cast<Number*>(
            ::operator new(static_cast<std::size_t>(size) * sizeof(Number), kAlignment))),
        size_(size) {
    std::memset(data_.get(), 0, static_cast<std::size_t>(size) * sizeof(Number));
  }

  // Makes room for `size` numbers at least; what was in it is lost only if that takes new memory.
  void Reserve(std::ptrdiff_t size) {
    if (size > size_) *this = AlignedArray(size);
  }

  Number* data() const { return data_.get(); }
  std::ptrdiff_t size() const { return size_; }
  std::span<Number> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(Number* data) const { ::operator delete(data, kAlignment); }
  };

  std::unique_ptr<Number[], Free> data_;
  std::ptrdiff_t size_ = 0;
};

using AlignedFloats = AlignedArray<float>;

}  // namespace menger
