#include "menger/runtime/net/wire_bytes.h"

#include <limits>

namespace menger {

void WireWriter::AddText(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument("a text of {} bytes cannot be sent; it must have less than 4 GiB",
                          text.size());
  }
  Add(static_cast<std::uint32_t>(text.size()));
  AddBytes(std::as_bytes(std::span(text)));
}

void WireWriter::AddBytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> WireReader::TakeBytes(std::size_t bytes, const char* name) {
  if (bytes > bytes_.size()) {
    throw InvalidArgument("{} ends in '{}': it has {} bytes left where {} are needed", what_, name,
                          bytes_.size(), bytes);
  }
  const std::span<const std::byte> taken = bytes_.first(bytes);
  bytes_ = bytes_.subspan(bytes);
  return taken;
}

std::uint8_t WireReader::TakeAtMost(std::uint8_t last, const char* name) {
  const auto number = Take<std::uint8_t>(name);
  if (number > last) {
    throw InvalidArgument("{} has {} as '{}'; it must be at most {}", what_, number, name, last);
  }
  return number;
}

Id WireReader::TakeId(const char* name) {
  Id id;
  id.high = Take<std::uint64_t>(name);
  id.low = Take<std::uint64_t>(name);
  return id;
}

std::string WireReader::TakeText(const char* name) {
  const std::span<const std::byte> bytes = TakeBytes(Take<std::uint32_t>(name), name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t WireReader::TakeCount(std::size_t element_bytes, const char* name) {
  const auto count = Take<std::uint32_t>(name);
  if (count > bytes_.size() / element_bytes) {
    throw InvalidArgument("{} has {} elements in '{}', for which its {} bytes do not suffice",
                          what_, count, name, bytes_.size());
  }
  return count;
}

void WireReader::Finish() const {
  if (!bytes_.empty()) {
    throw InvalidArgument("{} has {} bytes behind its end", what_, bytes_.size());
  }
}

}  // namespace menger
