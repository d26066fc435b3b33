#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace menger {

// A zeroed array of floats that starts on a cache line, for vector kernels. Owns its memory.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::ptrdiff_t size)
      : data_(static_cast<float*>(
            ::operator new(static_cast<std::size_t>(size) * sizeof(float), kAlignment))),
        size_(size) {
    std::memset(data_.get(), 0, static_cast<std::size_t>(size) * sizeof(float));
  }

  // Makes room for `size` floats at least; what was in it is lost only if that takes new memory.
  void Reserve(std::ptrdiff_t size) {
    if (size > size_) *this = AlignedFloats(size);
  }

  float* data() const { return data_.get(); }
  std::ptrdiff_t size() const { return size_; }
  std::span<float> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };

  std::unique_ptr<float[], Free> data_;
  std::ptrdiff_t size_ = 0;
};

}  // namespace menger
