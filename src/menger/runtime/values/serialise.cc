#include "menger/runtime/values/serialise.h"

#include "menger/base/error.h"

namespace menger {

void SizeArchive::Refer(const ObjectHandle& handle) {
  if (!handle.valid()) return;
  if (references_ == nullptr) {
    throw FailedPrecondition(
        "a value of type '{}' refers to object {}, but is kept where references are not counted: "
        "get what it refers to and keep that",
        PrettyName(type_), ToString(handle.id()));
  }
  references_->push_back(handle);
}

void SizeArchive::FailNesting() const {
  throw InvalidArgument(
      "a value of type '{}' has more than {} values in one another: send them side by side, in a "
      "vector for example",
      PrettyName(type_), kNestingMax);
}

void SizeArchive::FailEmptyElements() const {
  throw InvalidArgument(
      "a value of type '{}' holds a sequence of elements whose Serialize names nothing: leave it "
      "out, or send how many there are",
      PrettyName(type_));
}

void SizeArchive::FailVariant() const {
  throw InvalidArgument("a value of type '{}' holds a variant without a value", PrettyName(type_));
}

void WriteArchive::FailSize() const {
  throw Internal(
      "a value of type '{}' needed {} bytes, and another number when it was written: its Serialize "
      "does not always do the same, or another thread changes it",
      PrettyName(type_), out_.size());
}

ObjectHandle ReadArchive::Adopt(ObjectId id) {
  if (!id.valid()) return ObjectHandle();
  if (owner_ == nullptr) {
    throw FailedPrecondition(
        "a value of type '{}' refers to object {}, and is read where references mean nothing",
        PrettyName(type_), ToString(id));
  }
  return owner_->Adopt(id);
}

void ReadArchive::Fail(const char* reason) const {
  throw DataLoss("{} bytes are not a value of type '{}': {} (at byte {})", bytes_.size(),
                 PrettyName(type_), reason, position_);
}

void ReadArchive::FailShort(std::size_t size) const {
  throw DataLoss("{} bytes are not a value of type '{}': {} are wanted at byte {}, {} are left",
                 bytes_.size(), PrettyName(type_), size, position_, left());
}

void ReadArchive::FailCount(std::uint64_t count, std::size_t element_size) const {
  throw DataLoss(
      "{} bytes are not a value of type '{}': {} elements of at least {} bytes are announced at "
      "byte {}, {} bytes are left",
      bytes_.size(), PrettyName(type_), count, element_size, position_, left());
}

void ReadArchive::FailBorrow() const {
  throw FailedPrecondition(
      "a value of type '{0}' has views in it, which would outlive what they show: put `template <> "
      "inline constexpr bool menger::kBorrows<{0}> = true;` after the type, or let it own its data",
      PrettyName(type_));
}

void ReadArchive::FailAlignment() const {
  throw Internal("the encoding of a '{}' does not begin at a multiple of {} bytes",
                 PrettyName(type_), kValueAlignment);
}

const std::byte* ReadTensorData(ReadArchive& archive, const TensorView& view) {
  std::size_t size = 0;
  try {
    size = view.bytes();
  } catch (const Error& error) {
    archive.Fail(error.what());
  }
  return archive.Block(size, kTensorAlignment);
}

}  // namespace menger
