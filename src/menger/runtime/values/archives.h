#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "menger/runtime/values/object_ref.h"

// The three archives that walk through a value (runtime/serialise.h). Each is used by one thread.
// What a type's own Serialize may call is `archive(a, b, ...)`, `kReads`, and Block.

namespace menger {

// Where an encoding begins; offsets of what is read in place are multiples of the alignment that it
// needs.
inline constexpr std::size_t kValueAlignment = 16;

// How many types with a Serialize of their own may lie in one another: a list of a million nodes
// that own one another would overflow the stack.
inline constexpr int kNestingMax = 500;

constexpr std::size_t AlignUp(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

// Adds up what a value needs, and collects the references in it.
class SizeArchive {
 public:
  static constexpr bool kReads = false;

  SizeArchive(const char* type, std::vector<ObjectHandle>* references)
      : type_(type), references_(references) {}

  template <typename... Values>
  void operator()(const Values&... values);

  // `size` bytes that a reader will use in place. All archives: at a multiple of `alignment`.
  void Block(const void* data, std::size_t size, std::size_t alignment) {
    size_ = AlignUp(size_, alignment);
    Bytes(data, size);
  }

  void Bytes(const void*, std::size_t size) { size_ += size; }
  void Refer(const ObjectHandle& handle);
  void Enter() {
    if (++depth_ > kNestingMax) FailNesting();
  }
  void Leave() { --depth_; }
  // `count` elements follow `begin`: a reader wants a byte of each.
  void CheckElements(std::size_t begin, std::size_t count) const {
    if (size_ - begin < count) FailEmptyElements();
  }
  [[noreturn]] void FailVariant() const;

  std::size_t size() const { return size_; }

 private:
  [[noreturn]] void FailNesting() const;
  [[noreturn]] void FailEmptyElements() const;

  const char* type_;  // CompilerName of the whole.
  std::vector<ObjectHandle>* references_;
  std::size_t size_ = 0;
  int depth_ = 0;
};

// Writes a value where it belongs.
class WriteArchive {
 public:
  static constexpr bool kReads = false;

  WriteArchive(const char* type, std::span<std::byte> out) : type_(type), out_(out) {}

  template <typename... Values>
  void operator()(const Values&... values);

  void Block(const void* data, std::size_t size, std::size_t alignment) {
    const std::size_t padding = AlignUp(size_, alignment) - size_;
    std::memset(Take(padding), 0, padding);
    Bytes(data, size);
  }

  void Bytes(const void* data, std::size_t size) {
    std::byte* const out = Take(size);
    if (size > 0) std::memcpy(out, data, size);
  }
  void Refer(const ObjectHandle&) {}
  void Enter() {}
  void Leave() {}
  void CheckElements(std::size_t, std::size_t) const {}
  [[noreturn]] void FailVariant() const { FailSize(); }
  void Finish() const {
    if (size_ != out_.size()) FailSize();
  }

  std::size_t size() const { return size_; }

 private:
  std::byte* Take(std::size_t size) {
    if (size > out_.size() - size_) FailSize();
    std::byte* const taken = out_.data() + size_;
    size_ += size;
    return taken;
  }
  [[noreturn]] void FailSize() const;

  const char* type_;
  std::span<std::byte> out_;
  std::size_t size_ = 0;  // Written so far.
};

// Reads a value from bytes that anybody may have written.
class ReadArchive {
 public:
  static constexpr bool kReads = true;

  // `owner` may be null where no references are expected; `may_borrow`: whether a value may point
  // into `bytes`.
  ReadArchive(const char* type, std::span<const std::byte> bytes, ReferenceOwner* owner,
              bool may_borrow)
      : type_(type), bytes_(bytes), owner_(owner), may_borrow_(may_borrow) {}

  template <typename... Values>
  void operator()(Values&... values);

  // Valid for as long as the encoding is. Throws FailedPrecondition, naming the type, unless the
  // value may point into it.
  const std::byte* Block(std::size_t size, std::size_t alignment) {
    if (!may_borrow_) FailBorrow();
    return Aligned(size, alignment);
  }

  void Bytes(void* out, std::size_t size) {
    const std::byte* const taken = Take(size);
    if (size > 0) std::memcpy(out, taken, size);
  }
  const std::byte* Aligned(std::size_t size, std::size_t alignment) {
    Take(AlignUp(position_, alignment) - position_);
    const std::byte* const taken = Take(size);
    const std::size_t promised = alignment < kValueAlignment ? alignment : kValueAlignment;
    if (reinterpret_cast<std::uintptr_t>(taken) % promised != 0) FailAlignment();
    return taken;
  }
  // The number of elements that follow, of at least `element_size` bytes each.
  std::size_t Count(std::size_t element_size) {
    std::uint64_t count;
    Bytes(&count, sizeof(count));
    if (count > left() / element_size) FailCount(count, element_size);
    return static_cast<std::size_t>(count);
  }
  ObjectHandle Adopt(ObjectId id);
  void Enter() {
    if (++depth_ > kNestingMax) Fail("too many values lie in one another");
  }
  void Leave() { --depth_; }
  void Finish() const {
    if (left() != 0) Fail("it ends before its bytes do");
  }
  // DataLoss that names the type, the place and the sizes.
  [[noreturn]] void Fail(const char* reason) const;

  std::size_t left() const { return bytes_.size() - position_; }

 private:
  const std::byte* Take(std::size_t size) {
    if (size > left()) FailShort(size);
    const std::byte* const taken = bytes_.data() + position_;
    position_ += size;
    return taken;
  }
  [[noreturn]] void FailShort(std::size_t size) const;
  [[noreturn]] void FailCount(std::uint64_t count, std::size_t element_size) const;
  [[noreturn]] void FailBorrow() const;
  [[noreturn]] void FailAlignment() const;

  const char* type_;
  std::span<const std::byte> bytes_;
  ReferenceOwner* owner_;
  std::size_t position_ = 0;
  int depth_ = 0;
  bool may_borrow_;
};

}  // namespace menger
