#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "menger/runtime/values/archives.h"
#include "menger/runtime/values/object_ref.h"
#include "menger/runtime/values/pretty_name.h"
#include "menger/runtime/values/value_form.h"
#include "menger/tensor/tensor_view.h"

namespace menger {

// Values as bytes: arguments and results of tasks, and what is put.
//
// What can be sent: numbers, enumerations, structs of these (and of no pointers), the standard's
// containers, optional, variant, pair, tuple, unique_ptr, durations, ObjectRef, anything of
// anything. Other types say what they consist of, once for all directions, by one function in their
// namespace or, with the same body, by a public member `Serialize(archive)`:
//
//     template <class Archive>
//     void Serialize(Archive& archive, Trajectory& value) {
//       archive(value.rewards, value.seed);
//     }
//
// It may ask `Archive::kReads`, but must do the same steps in all directions, and change the value
// only where it reads. Types are default-constructible, or they could not be read.
//
// The bytes are those of this machine's and this build's types: for processes of one program, not
// for files. A sequence is its 64-bit count and its elements; there is no type information. Reading
// checks every length, so that damaged bytes throw DataLoss and never allocate more than a small
// multiple of their own size; enumerators, and flags in structs that are sent as bytes, are taken
// as they come.
//
// A view (TensorView, std::string_view, std::span of constants) is written as what it shows, and
// read as a view into the encoding: no copy, valid for as long as that is. So a parameter of type
// std::span<const float> may be given a std::vector<float>, and std::string_view a std::string.

// Whether a T that was read may point into its encoding. A struct with views in it specialises this
// as true; reading it fails otherwise.
template <typename T>
inline constexpr bool kBorrows = false;
template <>
inline constexpr bool kBorrows<TensorView> = true;
template <>
inline constexpr bool kBorrows<std::string_view> = true;
template <typename T>
inline constexpr bool kBorrows<std::span<const T>> = true;
template <typename T>
inline constexpr bool kBorrows<ObjectRef<T>> = false;
template <template <typename...> typename Container, typename... Ts>
inline constexpr bool kBorrows<Container<Ts...>> = (kBorrows<Ts> || ...);
template <template <typename, std::size_t> typename Array, typename T, std::size_t kSize>
inline constexpr bool kBorrows<Array<T, kSize>> = kBorrows<T>;

// Bytes that Encode will write. References in the value are appended to `references`; throws
// FailedPrecondition if there are some and it is null, since nobody would keep their objects.
template <typename T>
std::size_t EncodedSize(const T& value, std::vector<ObjectHandle>* references = nullptr);

// `out` has EncodedSize(value) bytes. Throws Internal if the value needs another size now.
template <typename T>
void Encode(const T& value, std::span<std::byte> out);

// `bytes` begin at a multiple of kValueAlignment (a TensorView's data then lie at a multiple of 64
// bytes from there). References are adopted by `owner`. Throws DataLoss, naming the type and the
// sizes, if the bytes are not exactly one T; FailedPrecondition if there is a reference and no
// owner.
template <typename T>
T Decode(std::span<const std::byte> bytes, ReferenceOwner* owner = nullptr);

// The same, into a value that is there, whatever it holds.
template <typename T>
void DecodeInto(T& value, std::span<const std::byte> bytes, ReferenceOwner* owner = nullptr);

// ---- From here on: how.

// Views and references are values with a Serialize like any other.
inline constexpr std::size_t kTensorAlignment = 64;
const std::byte* ReadTensorData(ReadArchive& archive, const TensorView& view);

template <typename Archive>
void Serialize(Archive& archive, TensorView& view) {
  archive(view.dtype, view.shape);
  if constexpr (Archive::kReads) {
    view.data = ReadTensorData(archive, view);
  } else {
    archive.Block(view.data, view.bytes(), kTensorAlignment);
  }
}

template <typename Archive>
void Serialize(Archive& archive, std::string_view& view) {
  if constexpr (Archive::kReads) {
    const std::size_t count = archive.Count(1);
    view = {reinterpret_cast<const char*>(archive.Block(count, 1)), count};
  } else {
    const std::uint64_t count = view.size();
    archive(count);
    archive.Block(view.data(), count, 1);
  }
}

template <typename Archive, typename T>
void Serialize(Archive& archive, std::span<const T>& view) {
  static_assert(kSentAsBytes<T> && alignof(T) <= kValueAlignment,
                "menger: a std::span can be sent only if its elements can be used where they lie: "
                "numbers, enumerations, and structs of these; take a std::vector instead");
  if constexpr (Archive::kReads) {
    const std::size_t count = archive.Count(sizeof(T));
    view = {reinterpret_cast<const T*>(archive.Block(count * sizeof(T), alignof(T))), count};
  } else {
    const std::uint64_t count = view.size();
    archive(count);
    archive.Block(view.data(), view.size_bytes(), alignof(T));
  }
}

template <typename Archive>
void Serialize(Archive& archive, ObjectHandle& handle) {
  ObjectId id;
  if constexpr (Archive::kReads) {
    archive(id);
    handle = archive.Adopt(id);
  } else {
    id = handle.id();
    archive.Refer(handle);
    archive(id);
  }
}

template <typename Archive, typename T>
void Serialize(Archive& archive, ObjectRef<T>& reference) {
  if constexpr (Archive::kReads) {
    ObjectHandle handle;
    archive(handle);
    reference = ObjectRef<T>(std::move(handle));
  } else {
    archive(reference.handle());
  }
}

// A sequence whose elements are copied at once.
template <typename T>
concept BulkSequence = requires(T value, const typename T::value_type* elements) {
  requires kSentAsBytes<typename T::value_type>;
  requires std::is_same_v<decltype(std::as_const(value).data()), const typename T::value_type*>;
  value.assign(elements, elements);
};
// Of such elements: reading assigns them from where they lie.
template <typename T>
inline constexpr std::size_t kBulkAlignment = alignof(T) < kValueAlignment ? alignof(T)
                                                                           : kValueAlignment;

template <typename T>
consteval bool IsSendable() {
  constexpr bool kSendable = kFormOf<T> != ValueForm::kUnsendable;
  static_assert(
      kSendable,
      "menger: a value of this type (T, below) cannot be sent. Give it `template <class "
      "Archive> void Serialize(Archive& archive, T& value) { archive(value.a, value.b); }` "
      "in its namespace. Pointers, references, and lambdas with captures cannot be sent: "
      "what they refer to is not there in another process");
  return kSendable;
}

template <typename Archive, typename T>
void SerialiseByType(Archive& archive, T& value) {
  archive.Enter();
  if constexpr (HasSerializeMember<T>) {
    value.Serialize(archive);
  } else {
    Serialize(archive, value);
  }
  archive.Leave();
}

// One element of a value, into a SizeArchive or a WriteArchive.
template <typename Archive, typename T>
void EncodeValue(Archive& archive, const T& value) {
  constexpr ValueForm kForm = kFormOf<T>;
  if constexpr (!IsSendable<T>()) {
    return;
  } else if constexpr (kForm == ValueForm::kSerialize) {
    // One function serves all directions, so it takes what it could change; here it must not.
    SerialiseByType(archive, const_cast<T&>(value));
  } else if constexpr (kForm == ValueForm::kBool || kForm == ValueForm::kBytes) {
    archive.Bytes(&value, sizeof(T));
  } else if constexpr (kForm == ValueForm::kOptional || kForm == ValueForm::kOwned) {
    const bool present = static_cast<bool>(value);
    EncodeValue(archive, present);
    if (present) EncodeValue(archive, *value);
  } else if constexpr (kForm == ValueForm::kVariant) {
    if (value.valueless_by_exception()) archive.FailVariant();
    EncodeValue(archive, static_cast<std::uint8_t>(value.index()));
    visit([&](const auto& alternative) { EncodeValue(archive, alternative); }, value);
  } else if constexpr (kForm == ValueForm::kTuple) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (EncodeValue(archive, get<kIndex>(value)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (kForm == ValueForm::kArray) {
    for (const auto& element : value) EncodeValue(archive, element);
  } else if constexpr (BulkSequence<T>) {
    using Element = typename T::value_type;
    const std::uint64_t count = value.size();
    EncodeValue(archive, count);
    archive.Block(value.data(), count * sizeof(Element), kBulkAlignment<Element>);
  } else {
    const std::uint64_t count = value.size();
    EncodeValue(archive, count);
    const std::size_t begin = archive.size();
    for (const typename T::value_type& element : value) EncodeValue(archive, element);
    archive.CheckElements(begin, count);
  }
}

template <typename T>
T MakeEmpty() {
  constexpr bool kEmpty = std::is_default_constructible_v<T>;
  static_assert(kEmpty,
                "menger: a value of this type (T, below) cannot be received: it needs a default "
                "constructor, whose value is then filled");
  if constexpr (kEmpty) return T();
}

template <typename T>
void DecodeValue(ReadArchive& archive, T& value);

template <typename T, std::size_t... kIndex>
void DecodeVariant(ReadArchive& archive, T& value, std::index_sequence<kIndex...>) {
  static_assert(sizeof...(kIndex) <= 256,
                "menger: a variant of more than 256 types cannot be sent");
  std::uint8_t index;
  DecodeValue(archive, index);
  if (index >= sizeof...(kIndex)) archive.Fail("a variant has no type of this index");
  const auto decode_as = [&]<std::size_t kChosen>(std::in_place_index_t<kChosen>) {
    value.template emplace<kChosen>();
    DecodeValue(archive, get<kChosen>(value));
  };
  ((index == kIndex ? decode_as(std::in_place_index<kIndex>) : void()), ...);
}

// Of maps and sets, whose elements cannot be changed where they are.
template <typename T>
void DecodeAssociative(ReadArchive& archive, T& value) {
  const std::size_t count = archive.Count(1);
  value.clear();
  for (std::size_t i = 0; i < count; ++i) {
    auto key = MakeEmpty<typename T::key_type>();
    DecodeValue(archive, key);
    if constexpr (requires { typename T::mapped_type; }) {
      auto mapped = MakeEmpty<typename T::mapped_type>();
      DecodeValue(archive, mapped);
      value.emplace_hint(value.end(), std::move(key), std::move(mapped));
    } else {
      value.emplace_hint(value.end(), std::move(key));
    }
  }
}

template <typename T>
void DecodeSequence(ReadArchive& archive, T& value) {
  using Element = typename T::value_type;
  if constexpr (BulkSequence<T>) {
    const std::size_t count = archive.Count(sizeof(Element));
    const std::byte* const bytes =
        archive.Aligned(count * sizeof(Element), kBulkAlignment<Element>);
    if constexpr (alignof(Element) <= kValueAlignment) {
      // Neither fills the memory with zeros first, as resize would.
      const auto* const elements = reinterpret_cast<const Element*>(bytes);
      value.assign(elements, elements + count);
    } else {
      value.resize(count);
      if (count > 0) std::memcpy(value.data(), bytes, count * sizeof(Element));
    }
  } else {
    const std::size_t count = archive.Count(1);
    value.clear();
    if constexpr (requires { value.reserve(count); }) {
      // As many as the bytes surely hold; what is small in bytes and large in memory grows.
      const std::size_t likely = archive.left() / sizeof(Element);
      value.reserve(count < likely ? count : likely);
    }
    for (std::size_t i = 0; i < count; ++i) {
      auto element = MakeEmpty<Element>();
      DecodeValue(archive, element);
      value.push_back(std::move(element));
    }
  }
}

template <typename T>
void DecodeValue(ReadArchive& archive, T& value) {
  constexpr ValueForm kForm = kFormOf<T>;
  if constexpr (!IsSendable<T>()) {
    return;
  } else if constexpr (kForm == ValueForm::kSerialize) {
    SerialiseByType(archive, value);
  } else if constexpr (kForm == ValueForm::kBytes) {
    archive.Bytes(&value, sizeof(T));
  } else if constexpr (kForm == ValueForm::kBool) {
    std::uint8_t flag;
    DecodeValue(archive, flag);
    if (flag > 1) archive.Fail("a flag is neither 0 nor 1");
    value = flag == 1;
  } else if constexpr (kForm == ValueForm::kOptional || kForm == ValueForm::kOwned) {
    bool present;
    DecodeValue(archive, present);
    value.reset();
    if (!present) return;
    if constexpr (kForm == ValueForm::kOptional) {
      value.emplace();
    } else {
      value.reset(new typename T::element_type());
    }
    DecodeValue(archive, *value);
  } else if constexpr (kForm == ValueForm::kVariant) {
    []<template <typename...> typename Variant, typename... Ts>(ReadArchive& archive,
                                                                Variant<Ts...>& value) {
      DecodeVariant(archive, value, std::index_sequence_for<Ts...>());
    }(archive, value);
  } else if constexpr (kForm == ValueForm::kTuple) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (DecodeValue(archive, get<kIndex>(value)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (kForm == ValueForm::kArray) {
    for (auto& element : value) DecodeValue(archive, element);
  } else if constexpr (kForm == ValueForm::kAssociative) {
    DecodeAssociative(archive, value);
  } else {
    DecodeSequence(archive, value);
  }
}

template <typename... Values>
void SizeArchive::operator()(const Values&... values) {
  (EncodeValue(*this, values), ...);
}
template <typename... Values>
void WriteArchive::operator()(const Values&... values) {
  (EncodeValue(*this, values), ...);
}
template <typename... Values>
void ReadArchive::operator()(Values&... values) {
  (DecodeValue(*this, values), ...);
}

template <typename T>
std::size_t EncodedSize(const T& value, std::vector<ObjectHandle>* references) {
  if constexpr (kFormOf<T> == ValueForm::kBytes) {
    return sizeof(T);
  } else {
    SizeArchive archive(CompilerName<T>(), references);
    EncodeValue(archive, value);
    return archive.size();
  }
}

template <typename T>
void Encode(const T& value, std::span<std::byte> out) {
  WriteArchive archive(CompilerName<T>(), out);
  EncodeValue(archive, value);
  archive.Finish();
}

template <typename T>
void DecodeInto(T& value, std::span<const std::byte> bytes, ReferenceOwner* owner) {
  ReadArchive archive(CompilerName<T>(), bytes, owner, kBorrows<T>);
  DecodeValue(archive, value);
  archive.Finish();
}

template <typename T>
T Decode(std::span<const std::byte> bytes, ReferenceOwner* owner) {
  auto value = MakeEmpty<T>();
  DecodeInto(value, bytes, owner);
  return value;
}

}  // namespace menger
