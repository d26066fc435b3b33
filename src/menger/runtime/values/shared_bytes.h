#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "menger/runtime/values/object_value.h"

namespace menger {

// Bytes of somebody else, which stay as they are for as long as `keeper` is held. Without one they
// are valid only until whoever was given them returns.
struct SharedBytes {
  SharedBytes() = default;
  SharedBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper)
      : bytes(bytes), keeper(std::move(keeper)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a payload is bytes that are kept.
  SharedBytes(const Payload& payload) {
    if (!payload.valid()) return;
    keeper = std::make_shared<const Payload>(payload);
    bytes = payload.bytes();
  }

  std::size_t size() const { return bytes.size(); }
  // The same in memory of its own, for who needs them longer.
  SharedBytes Kept() const { return keeper != nullptr ? *this : Payload::Copy(bytes); }

  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;
};

}  // namespace menger
