#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "menger/runtime/ids.h"

namespace menger {

class ReferenceOwner;

// How often this process refers to one object. Made and deleted by its ReferenceOwner; everybody
// else holds an ObjectHandle.
struct Reference {
  ObjectId id;
  ReferenceOwner* owner;
  std::atomic<std::int64_t> handles{0};
};

// A process's table of the objects that it refers to. The node keeps an object for as long as some
// process, some value or some waiting call refers to it.
class ReferenceOwner {
 public:
  // A handle on an object whose id came from elsewhere (inside a value). The caller must know that
  // something keeps the object meanwhile: the value that named it, for example.
  virtual class ObjectHandle Adopt(ObjectId id) = 0;

  // The last handle of this process has gone. Called on any thread.
  virtual void Forget(Reference* reference) noexcept = 0;

 protected:
  ~ReferenceOwner() = default;
};

// Counts as one reference. Copies are cheap and may be made and dropped on any thread; one handle
// is used by one thread at a time. It may outlive its runtime, and means nothing then.
class ObjectHandle {
 public:
  ObjectHandle() = default;  // Refers to nothing.
  explicit ObjectHandle(Reference* reference) : reference_(reference) { Increment(); }
  ObjectHandle(const ObjectHandle& other) : reference_(other.reference_) { Increment(); }
  ObjectHandle(ObjectHandle&& other) noexcept
      : reference_(std::exchange(other.reference_, nullptr)) {}
  ObjectHandle& operator=(ObjectHandle other) noexcept {
    std::swap(reference_, other.reference_);
    return *this;
  }
  ~ObjectHandle() {
    if (reference_ == nullptr) return;
    if (reference_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      reference_->owner->Forget(reference_);
    }
  }

  bool valid() const { return reference_ != nullptr; }
  ObjectId id() const { return reference_ != nullptr ? reference_->id : ObjectId{}; }
  Reference* reference() const { return reference_; }

 private:
  void Increment() {
    if (reference_ != nullptr) reference_->handles.fetch_add(1, std::memory_order_relaxed);
  }

  Reference* reference_ = nullptr;
};

// A T that is there or will be: the result of a call, or what was put. It keeps its object; it can
// be an argument of calls, part of values, and waited for (Runtime::Get, Wait).
template <typename T>
class ObjectRef {
 public:
  using Value = T;

  ObjectRef() = default;  // Refers to nothing.
  explicit ObjectRef(ObjectHandle handle) : handle_(std::move(handle)) {}

  bool valid() const { return handle_.valid(); }
  ObjectId id() const { return handle_.id(); }
  const ObjectHandle& handle() const { return handle_; }

 private:
  ObjectHandle handle_;
};

}  // namespace menger
