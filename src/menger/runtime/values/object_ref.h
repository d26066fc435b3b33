#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "menger/runtime/values/ids.h"

namespace menger {

class ReferenceOwner;

// How often this process refers to one object. Made and deleted by its ReferenceOwner; everybody
// else holds an ObjectHandle.
struct Reference {
  ObjectId id;
  ReferenceOwner* owner;
  std::atomic<std::int64_t> handles{0};
  // The object was ready when this process heard of it last: nobody need ask once more.
  std::atomic<bool> ready{false};
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

  // Whether its references are of any use: neither has its runtime ended, nor is this process a
  // fork of the one that they were made in. CheckOpen throws FailedPrecondition if they are not.
  virtual bool open() const noexcept { return true; }
  virtual void CheckOpen() const {}

 protected:
  ~ReferenceOwner() = default;
};

// Counts as one reference. Copies are cheap and may be made and dropped on any thread; one handle
// is used by one thread at a time. It means something to its own runtime alone, which it may
// outlive.
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
  template <typename T>
  friend class ObjectRef;

  // Both then have what `other` had; whoever calls knows of which of them to forget it. So many
  // that move by a place cost what it takes to move their bytes.
  void TakeOver(const ObjectHandle& other) { reference_ = other.reference_; }
  void Abandon() { reference_ = nullptr; }

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

  // Takes out those at `places`, of which there are some in ascending order and which were moved
  // from. The others keep their order.
  static void CloseGaps(std::vector<ObjectRef>& references, std::span<const std::size_t> places) {
    if (places.empty()) return;
    ObjectRef* to = references.data() + places.front();
    for (std::size_t i = 0; i < places.size(); ++i) {
      ObjectRef* const from = references.data() + places[i] + 1;
      ObjectRef* const end =
          references.data() + (i + 1 < places.size() ? places[i + 1] : references.size());
      for (ObjectRef* next = from; next != end; ++next, ++to) to->handle_.TakeOver(next->handle_);
    }
    for (std::size_t i = 0; i < places.size(); ++i) to[i].handle_.Abandon();
    references.resize(references.size() - places.size());
  }

 private:
  ObjectHandle handle_;
};

}  // namespace menger
