#include "menger/runtime/calls/client.h"

#include <algorithm>

#include "menger/base/error.h"

namespace menger {

bool Client::AreKnownReady(std::span<const ObjectHandle> objects) const {
  return std::all_of(objects.begin(), objects.end(), [this](const ObjectHandle& object) {
    CheckOwn(object);
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
  CheckOwn(contained);
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

void Client::FailForeign(const ObjectHandle& handle) {
  handle.reference()->owner->CheckOpen();
  throw InvalidArgument(
      "object {} is of another Runtime: Get its value from the one that it is of, and give that "
      "(of an actor or a placement group, make one here)",
      ToString(handle.id()));
}

void Client::FailFork() {
  throw FailedPrecondition(
      "this process is a fork of one that has a Runtime, which it cannot use: do this in the "
      "process that made the Runtime or the call, or start another program instead of a fork");
}

}  // namespace menger
