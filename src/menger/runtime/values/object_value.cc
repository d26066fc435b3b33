#include "menger/runtime/values/object_value.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "menger/base/error.h"

namespace menger {

Payload Payload::Allocate(std::size_t bytes) {
  void* const memory = std::malloc(sizeof(Buffer) + bytes);
  if (memory == nullptr) throw Unavailable("no memory for a value of {} bytes", bytes);
  Payload payload;
  payload.buffer_ = new (memory) Buffer{.count = 1, .bytes = bytes};
  return payload;
}

Payload Payload::Copy(std::span<const std::byte> bytes) {
  Payload payload = Allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(payload.Data(), bytes.data(), bytes.size());
  return payload;
}

void Payload::Free() {
  buffer_->~Buffer();
  std::free(buffer_);
}

}  // namespace menger
