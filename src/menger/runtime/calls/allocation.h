#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "menger/runtime/calls/client.h"
#include "menger/tensor/tensor_view.h"

namespace menger {

// Room for a tensor where values lie, before it is one that others can read. Dropped, it is given
// back. Movable; one thread at a time.
class TensorAllocation {
 public:
  TensorAllocation(Client& client, DataType dtype, const Shape& shape);
  TensorAllocation(TensorAllocation&& other) noexcept
      : client_(std::exchange(other.client_, nullptr)),
        object_(std::move(other.object_)),
        value_(std::move(other.value_)),
        data_(other.data_) {}
  TensorAllocation& operator=(TensorAllocation&&) = delete;
  ~TensorAllocation();

  std::span<std::byte> data() const { return data_; }

  // From now on it is a value and must not be written any longer. Once; throws FailedPrecondition.
  ObjectRef<TensorView> Seal();

 private:
  Client* client_;       // Null once it is sealed or moved from.
  ObjectHandle object_;  // Keeps the client.
  ObjectValue value_;
  std::span<std::byte> data_;
};

// The same, of Ts.
template <typename T>
class Allocation : public TensorAllocation {
 public:
  Allocation(Client& client, const Shape& shape)
      : TensorAllocation(client, kDataTypeOf<T>, shape) {}

  // Uninitialised, in C order, aligned to 64 bytes where the tensor has more than 64 KiB.
  std::span<T> values() const {
    return {reinterpret_cast<T*>(data().data()), data().size() / sizeof(T)};
  }
};

}  // namespace menger
