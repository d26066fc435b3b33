#include "menger/base/plain_bytes.h"

#include "menger/base/error.h"

namespace menger {

std::span<const std::byte> PlainReader::Take(std::uint64_t bytes) {
  if (bytes > rest_.size()) {
    throw DataLoss("{} bytes are left of what should hold {} more", rest_.size(), bytes);
  }
  const auto taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

}  // namespace menger
