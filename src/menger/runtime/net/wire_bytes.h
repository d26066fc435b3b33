#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// Numbers and texts as they travel between machines: little-endian, without gaps, texts behind
// their 32-bit length. So what arrives can be read without the memory layout of who has sent it.
class WireWriter {
 public:
  template <std::unsigned_integral T>
  void Add(T number) {
    std::array<std::byte, sizeof(T)> bytes;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(number) >> (8 * i));
    }
    AddBytes(bytes);
  }
  void Add(const Id& id) {
    Add(id.high);
    Add(id.low);
  }
  void AddFlag(bool flag) { Add(static_cast<std::uint8_t>(flag)); }
  void AddText(std::string_view text);  // Throws InvalidArgument for one of 4 GiB.
  void AddBytes(std::span<const std::byte> bytes);

  std::vector<std::byte> Take() { return std::move(bytes_); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Takes such bytes apart, and believes nothing: whatever is missing, too much or out of its range
// is InvalidArgument with the name of what was to be read. Nothing is allocated beyond what is
// there. `what` ("a packet of a peer") outlives it, as the bytes do.
class WireReader {
 public:
  WireReader(std::string_view what, std::span<const std::byte> bytes)
      : what_(what), bytes_(bytes) {}

  template <std::unsigned_integral T>
  T Take(const char* name) {
    std::uint64_t number = 0;
    const std::span<const std::byte> taken = TakeBytes(sizeof(T), name);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      number |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
    }
    return static_cast<T>(number);
  }
  // Of an enumeration from 0 to `last`.
  template <typename Enumeration>
  Enumeration TakeEnumerator(Enumeration last, const char* name) {
    return static_cast<Enumeration>(TakeAtMost(static_cast<std::uint8_t>(last), name));
  }
  bool TakeFlag(const char* name) { return TakeAtMost(1, name) == 1; }
  Id TakeId(const char* name);
  std::string TakeText(const char* name);
  // How many elements of `element_bytes` each follow: no more than there are bytes for.
  std::size_t TakeCount(std::size_t element_bytes, const char* name);
  std::span<const std::byte> TakeBytes(std::size_t bytes, const char* name);
  std::span<const std::byte> TakeRest() { return TakeBytes(bytes_.size(), ""); }
  std::vector<std::byte> TakeRestCopy() {
    const std::span<const std::byte> rest = TakeRest();
    return {rest.begin(), rest.end()};
  }
  // All was taken, or it is refused.
  void Finish() const;

 private:
  std::uint8_t TakeAtMost(std::uint8_t last, const char* name);

  const std::string_view what_;
  std::span<const std::byte> bytes_;
};

}  // namespace menger
