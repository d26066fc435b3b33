#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/library/menger_runtime.h"
#include "menger/runtime/runtime.h"

// What the handles of the C interface stand for, and what its sources share.

struct menger_runtime {
  std::unique_ptr<menger::Runtime> owned;  // Of a driver.
  menger::Runtime* runtime = nullptr;
};

struct menger_pin {
  menger::PinnedBytes bytes;
};

namespace menger {

// What a handle stands for; null is one that was closed.
inline Runtime& RuntimeOf(menger_runtime* handle) {
  if (handle == nullptr) throw FailedPrecondition("the runtime that this is of was shut down");
  return *handle->runtime;
}
inline Client& ClientOf(menger_runtime* handle) { return RuntimeOf(handle).client(); }

// Of calls that the C interface makes: what a worker of another language does them with.
const Function& ForeignFunction(int kind);

// A reference of C is a Reference that has been counted for it.
inline Reference* ReferenceOf(const menger_reference* reference) {
  return const_cast<Reference*>(reinterpret_cast<const Reference*>(reference));
}
inline ObjectHandle HandleOf(const menger_reference* reference) {
  return ObjectHandle(ReferenceOf(reference));
}
inline menger_reference* Counted(const ObjectHandle& handle) {
  handle.reference()->handles.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<menger_reference*>(handle.reference());
}

inline std::span<const std::byte> BytesOf(const menger_bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data), static_cast<std::size_t>(bytes.size)};
}
inline ObjectId ObjectIdOf(const menger_id& id) { return {{.high = id.high, .low = id.low}}; }
inline menger_id ToC(const Id& id) { return {.high = id.high, .low = id.low}; }

// A value on its way into the store, as C passes it.
struct ForeignValue {
  std::span<const std::byte> head;
  std::span<const menger_bytes> buffers;
  std::span<menger_reference* const> references;

  std::size_t size() const;  // With the layout that menger_runtime.h says.
  void Write(std::span<std::byte> out) const;
};

std::vector<ObjectHandle> HandlesOf(std::span<menger_reference* const> references);
// The same of those that must be the client's.
std::vector<ObjectHandle> OwnHandles(const Client& client,
                                     std::span<menger_reference* const> references);

// Notes the exception that is being handled for menger_runtime_error.
void NoteError() noexcept;

// Runs it; what it gives, or `failed` with the error noted.
template <typename Do, typename Result>
Result Guarded(Result failed, const Do& run) noexcept {
  try {
    return run();
  } catch (...) {
    NoteError();
    return failed;
  }
}

inline std::chrono::nanoseconds Duration(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3e7) * 1e9));
}

}  // namespace menger
