#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The file that `menger export --format bundle` writes, without anything of this program: the C
// library compiles this header, python/menger/policy.py says the same in Python.
//
// Everything is little-endian and a multiple of four bytes. `text` is a uint32 number of bytes, the
// bytes (UTF-8) and zeros up to the multiple; `floats` is a uint32 count and float32 values.
//
//     "MENGERPO" | uint32 version | uint32 checksum of the rest (as zlib's crc32) | uint64 bytes of
//     the rest | the rest:
//
//     text      what it is, as JSON: for people, nothing is computed from it
//     uint32    leaves of the observation that are read; each
//                 text name | uint32 dtype | uint32 space
//                 uint32 dimensions, each a uint32 | uint32 counts, each a uint32
//     int32     which of them is the action mask; -1: none
//     uint32    frame stack
//     uint32    version 2 alone: of each encoding, how many numbers stand beside an image, which is
//               the first leaf then: of a stack all images come before all numbers
//     floats    scales, floats shifts, float32 clip: of each number of the stack, or of those
//               beside images alone; no scales: none
//     uint32    layers; each
//                 uint32 kind | uint32 activation | int32 layer that it reads, -1: the observation
//                 uint32 inputs, outputs, channels, height, width, kernel, stride
//                 floats weight, floats recurrent, floats bias
//     uint32    rule
//     uint32    heads, each the uint32 layer that gives it
//     uint32    return model | uint32 actions | uint32 atoms | uint32 duelling
//     float32   smallest return | float32 largest return
//     leaf      the action
//     floats    low, floats high: bounds to which each of its elements is clipped; empty: none
//
// Arrays of layers are laid out as networks/network_layers.h says.
namespace menger::bundle_format {

inline constexpr char kMagic[] = "MENGERPO";  // Without its ending zero.
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kBesideVersion = 2;  // Of an image with numbers beside it.
inline constexpr std::size_t kHeaderBytes = 24;

enum DataTypeCode : std::uint32_t { kUint8, kInt32, kInt64, kFloat32, kFloat64 };
enum SpaceCode : std::uint32_t { kBox, kDiscrete, kMultiDiscrete, kMask, kLength };
enum LayerCode : std::uint32_t { kDense, kConvolution, kLstm, kLayerNorm, kJoin };
enum ActivationCode : std::uint32_t { kNone, kTanh, kRelu };
enum RuleCode : std::uint32_t { kLargestLogit, kMean, kLargestValue };
enum ReturnModelCode : std::uint32_t { kOneNumber, kCategorical, kQuantiles };

// zlib's crc32 of `size` bytes.
inline std::uint32_t Checksum(const void* bytes, std::size_t size) {
  static constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
      table[byte] = crc;
    }
    return table;
  }();
  const auto* const from = static_cast<const unsigned char*>(bytes);
  std::uint32_t crc = 0xFFFFFFFFu;
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kTable[(crc ^ from[i]) & 0xFF];
  return ~crc;
}

}  // namespace menger::bundle_format
