#include "menger/runtime/calls/allocation.h"

#include <algorithm>

#include "menger/base/error.h"
#include "menger/runtime/values/serialise.h"

namespace menger {

TensorAllocation::TensorAllocation(Client& client, DataType dtype, const Shape& shape)
    : client_(&client), object_(client.NewObject(client.Caller().NextPut())) {
  TensorView view{.dtype = dtype, .shape = shape};
  const std::size_t data_bytes = view.bytes();
  const std::span<std::byte> out = client.Allocate(EncodedSize(view), value_);
  // The encoding of a tensor ends with its data.
  const std::span<std::byte> head = out.first(out.size() - data_bytes);
  std::fill(head.begin(), head.end(), std::byte{0});
  WriteArchive archive("TensorView", head);
  archive(view.dtype, view.shape);
  data_ = out.subspan(head.size());
}

TensorAllocation::~TensorAllocation() {
  if (client_ != nullptr) client_->Discard(value_);
}

ObjectRef<TensorView> TensorAllocation::Seal() {
  if (client_ == nullptr) throw FailedPrecondition("a tensor is sealed that was sealed before");
  std::exchange(client_, nullptr)->Publish(object_, std::move(value_), {});
  return ObjectRef<TensorView>(std::move(object_));
}

}  // namespace menger
