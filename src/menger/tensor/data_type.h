#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace menger {

// The element types that a slab, a spec or an archive can hold. Flags (`terminated`, `valid`,
// masks) are kUint8: 0 or 1.
enum class DataType : std::uint8_t { kUint8, kInt32, kInt64, kFloat32, kFloat64 };

// Bytes of one element.
constexpr std::size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return 1;
    case DataType::kInt32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kFloat64:
      return 8;
  }
  return 0;
}

// NumPy's name: "uint8", "int32", "int64", "float32", "float64".
constexpr std::string_view NameOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return "uint8";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
  }
  return "unknown";
}

// The DataType of a C++ type: kDataTypeOf<float> == DataType::kFloat32.
template <typename T>
inline constexpr DataType kDataTypeOf = [] { static_assert(sizeof(T) == 0, "no such DataType"); }();
template <>
inline constexpr DataType kDataTypeOf<std::uint8_t> = DataType::kUint8;
template <>
inline constexpr DataType kDataTypeOf<std::int32_t> = DataType::kInt32;
template <>
inline constexpr DataType kDataTypeOf<std::int64_t> = DataType::kInt64;
template <>
inline constexpr DataType kDataTypeOf<float> = DataType::kFloat32;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::kFloat64;

}  // namespace menger
