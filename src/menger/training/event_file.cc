#include "menger/training/event_file.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "event.pb.h"

namespace menger {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}();

// A checksum of data that itself holds checksums would be weak; so TensorFlow rotates it and adds a
// constant.
std::uint32_t MaskedCrc(std::string_view bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xA282EAD8u;
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFF];
  }
  return ~crc;
}

EventFile::EventFile(const std::string& path) : file_(path) {
  if (file_.size() == 0) AppendVersion();
}

void EventFile::AppendVersion() {
  event::Event version;
  version.set_file_version("brain.Event:2");
  AppendRecord(version.SerializeAsString());
}

void EventFile::Append(std::int64_t step, double wall_time,
                       const std::vector<std::pair<std::string, double>>& scalars) {
  event::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const auto& [tag, number] : scalars) {
    if (std::isnan(number)) continue;  // Not known yet.
    event::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  AppendRecord(event.SerializeAsString());
}

void EventFile::TruncateTo(std::uint64_t size) {
  file_.TruncateTo(size);
  if (size == 0) AppendVersion();
}

void EventFile::AppendRecord(const std::string& data) {
  const std::uint64_t length = data.size();
  const std::uint32_t length_crc = MaskedCrc(BytesOf(length));
  const std::uint32_t data_crc = MaskedCrc(data);
  std::string record;
  record.append(BytesOf(length)).append(BytesOf(length_crc));
  record.append(data).append(BytesOf(data_crc));
  file_.Append(record);
}

}  // namespace menger
