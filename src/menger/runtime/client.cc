#include "menger/runtime/client.h"

#include <algorithm>

namespace menger {

bool AreKnownReady(std::span<const ObjectHandle> objects) {
  return std::all_of(objects.begin(), objects.end(), [](const ObjectHandle& object) {
    return object.valid() && object.reference()->ready.load(std::memory_order_relaxed);
  });
}

CallContext*& ThisCall() {
  static thread_local CallContext* call = nullptr;
  return call;
}

ObjectHandle Client::PutAs(ObjectId id, std::size_t bytes,
                           FunctionRef<void(std::span<std::byte>)> fill,
                           std::span<const ObjectHandle> contained) {
  ObjectHandle object = NewObject(id);
  ObjectValue value;
  const std::span<std::byte> out = Allocate(bytes, value);
  try {
    fill(out);
  } catch (...) {
    Discard(value);
    throw;
  }
  Publish(object, std::move(value), contained);
  return object;
}

}  // namespace menger
