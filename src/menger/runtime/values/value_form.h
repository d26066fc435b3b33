#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// How values of a type are encoded (runtime/serialise.h says what that means). The standard's
// containers are known by what they offer, not by name, so that nobody pays for their headers and
// those of other libraries work too.

namespace menger {

class SizeArchive;

// Whether a type says itself what it consists of: by a member or a function Serialize.
template <typename T>
concept HasSerializeMember = requires(T& value, SizeArchive& archive) {
  value.Serialize(archive);
};
template <typename T>
concept HasSerializeFunction = requires(T& value, SizeArchive& archive) {
  Serialize(archive, value);  // Found in the namespace of T.
};
template <typename T>
concept HasSerialize = HasSerializeMember<T> || HasSerializeFunction<T>;

template <typename T>
consteval bool MayBeSentAsBytes();

// Whether a T is copied byte by byte: numbers, enumerations, and structs of nothing else.
// Specialise it for a class that you know to be so: `template <> inline constexpr bool
// kSentAsBytes<T> = true`.
template <typename T>
inline constexpr bool kSentAsBytes = MayBeSentAsBytes<T>();

// Stand for a field of a struct: the first for any, the second only for one that must not be copied
// byte by byte. Never called.
struct AnyField {
  template <typename T>
  operator T() const;  // NOLINT: implicit.
};
struct FieldWithoutBytes {
  template <typename T>
  requires(!kSentAsBytes<T>) operator T() const;  // NOLINT: implicit.
};

// Looks at the fields of T one by one, the first kFieldsMax (elements of C arrays count each): a
// pointer among them would be copied as an address.
inline constexpr int kFieldsMax = 16;
template <typename T, typename... Before>
consteval bool FieldsAreBytes() {
  if constexpr (sizeof...(Before) == kFieldsMax || !requires { T{Before{}..., {}}; }) {
    return true;  // There are no more.
  } else if constexpr (
      requires {
        T{Before{}..., AnyField{}};
      } &&
      !requires {
        T{Before{}..., FieldWithoutBytes{}};
      }) {
    return FieldsAreBytes<T, Before..., AnyField>();
  } else {
    return false;
  }
}

// Of std::chrono, by what they offer: they are sent as the number that they hold.
template <typename T>
concept IsDuration = requires {
  typename T::period;
  requires std::is_arithmetic_v<typename T::rep> && std::is_trivially_copyable_v<T>;
};
template <typename T>
concept IsTimePoint = requires {
  typename T::clock;
  requires IsDuration<typename T::duration> && std::is_trivially_copyable_v<T>;
};

template <typename T>
consteval bool MayBeSentAsBytes() {
  if constexpr (std::is_array_v<T>) {
    return kSentAsBytes<std::remove_extent_t<T>>;
  } else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
                       std::is_default_constructible_v<T> && std::is_aggregate_v<T> &&
                       !HasSerialize<T>) {
    return FieldsAreBytes<T>();
  } else {
    // Not: closures, views, iterators.
    return std::is_arithmetic_v<T> || std::is_enum_v<T> || IsDuration<T> || IsTimePoint<T>;
  }
}

enum class ValueForm {
  kUnsendable,
  kSerialize,    // By the type's own Serialize.
  kBool,         // One byte, which is checked.
  kBytes,        // As they lie in memory.
  kOptional,     // A flag, then the value.
  kOwned,        // The same: std::unique_ptr.
  kVariant,      // The index, then the value.
  kAssociative,  // The number of elements, then these: maps and sets.
  kSequence,     // Likewise: vectors, strings, lists, deques.
  kArray,        // The elements.
  kTuple,        // Likewise: pairs and tuples.
};

template <typename T>
concept IsOptional = requires(T value) {
  value.has_value();
  value.reset();
  *value;
};
// Of a class with virtual functions only the base would arrive.
template <typename T>
concept IsOwned = requires(T value) {
  typename T::deleter_type;
  value.release();
  *value;
  requires !std::is_polymorphic_v<typename T::element_type>;
};
template <typename T>
concept IsVariant = requires(T value) {
  value.index();
  value.valueless_by_exception();
};
template <typename T>
concept IsAssociative = requires(T value) {
  typename T::key_type;
  value.clear();
  value.size();
};
template <typename T>
concept IsSequence = requires(T value, typename T::value_type element) {
  value.push_back(std::move(element));
  value.clear();
  value.size();
};
template <typename T>
concept IsTuple = requires {
  std::tuple_size<T>::value;
};
template <typename T>
concept IsArray = std::is_array_v<T> ||(IsTuple<T>&& requires(T value) { value.data(); });

template <typename T>
consteval ValueForm FormOf() {
  if constexpr (HasSerialize<T>) {
    return ValueForm::kSerialize;
  } else if constexpr (std::is_same_v<T, bool>) {
    return ValueForm::kBool;
  } else if constexpr (kSentAsBytes<T>) {
    return ValueForm::kBytes;
  } else if constexpr (IsOptional<T>) {
    return ValueForm::kOptional;
  } else if constexpr (IsOwned<T>) {
    return ValueForm::kOwned;
  } else if constexpr (IsVariant<T>) {
    return ValueForm::kVariant;
  } else if constexpr (IsAssociative<T>) {
    return ValueForm::kAssociative;
  } else if constexpr (IsSequence<T>) {
    return ValueForm::kSequence;
  } else if constexpr (IsArray<T>) {
    return ValueForm::kArray;
  } else if constexpr (IsTuple<T>) {
    return ValueForm::kTuple;
  } else {
    return ValueForm::kUnsendable;
  }
}

template <typename T>
inline constexpr ValueForm kFormOf = FormOf<T>();

}  // namespace menger
