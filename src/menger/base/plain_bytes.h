#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace menger {

// Values that are their bytes, one after the other without padding between them: payloads of
// frames, records of logs. They are read by the same build, or one of the same layout.

template <typename T>
void AppendArray(std::span<const T> values, std::vector<std::byte>& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto added = std::as_bytes(values);
  bytes.insert(bytes.end(), added.begin(), added.end());
}

template <typename T>
void AppendArray(const std::vector<T>& values, std::vector<std::byte>& bytes) {
  AppendArray(std::span<const T>(values), bytes);
}

template <typename T>
void AppendPlain(const T& value, std::vector<std::byte>& bytes) {
  AppendArray(std::span<const T>(&value, 1), bytes);
}

// Walks through such bytes, which may be damaged: throws DataLoss where they end too early, and
// never makes room for more than they hold.
class PlainReader {
 public:
  explicit PlainReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> Take(std::uint64_t bytes);
  template <typename T>
  T Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, Take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  void TakeInto(std::uint64_t count, std::vector<T>& values) {
    if (count > rest_.size() / sizeof(T)) Take(rest_.size() + 1);
    const std::span<const std::byte> bytes = Take(count * sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace menger
