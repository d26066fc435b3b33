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

// TOML as Markdown shows it as it stands: each line is indented.
std::string AsCode(std::string_view toml) {
  std::string code;
  bool line_begins = true;
  for (const char letter : toml) {
    if (line_begins) code += "    ";
    code += letter;
    line_begins = letter == '\n';
  }
  return code;
}

void AddText(event::Summary::Value& value, const std::string& tag, const std::string& text) {
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_metadata()->set_data_class(event::Metadata::TENSOR);
  value.mutable_tensor()->set_dtype(event::Tensor::STRING);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
  value.mutable_tensor()->add_string_val(text);
}

void SetValue(event::SessionStart::Value& value, const OptionValue& option) {
  if (const auto* const flag = std::get_if<bool>(&option)) {
    value.set_bool_value(*flag);
  } else if (const auto* const whole = std::get_if<std::int64_t>(&option)) {
    value.set_number_value(static_cast<double>(*whole));
  } else if (const auto* const number = std::get_if<double>(&option);
             number != nullptr && std::isfinite(*number)) {  // JSON has no infinity.
    value.set_number_value(*number);
  } else {
    value.set_string_value(ToText(option));
  }
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

void EventFile::AppendSettings(double wall_time, std::string_view toml,
                               const std::vector<std::pair<std::string, OptionValue>>& settings) {
  event::Event event;
  event.set_wall_time(wall_time);
  AddText(*event.mutable_summary()->add_value(), "settings", AsCode(toml));

  event::HyperparameterData data;
  data.mutable_session_start_info()->set_start_time_secs(wall_time);
  for (const auto& [key, value] : settings) {
    auto* const entry = data.mutable_session_start_info()->add_hparams();
    entry->set_key(key);
    SetValue(*entry->mutable_value(), value);
  }
  event::Summary::Value* const table = event.mutable_summary()->add_value();
  table->set_tag("_hparams_/session_start_info");
  auto* const plugin = table->mutable_metadata()->mutable_plugin_data();
  plugin->set_plugin_name("hparams");
  plugin->set_content(data.SerializeAsString());
  table->mutable_metadata()->set_data_class(event::Metadata::TENSOR);
  // TensorBoard drops a value that holds nothing.
  table->mutable_tensor()->set_dtype(event::Tensor::FLOAT);
  table->mutable_tensor()->mutable_tensor_shape();
  table->mutable_tensor()->add_float_val(0);
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
