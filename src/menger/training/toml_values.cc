#include "menger/training/toml_values.h"

#include <cstdint>
#include <vector>

namespace menger {
namespace {

OptionValue ArrayToValue(const toml::array& array, const std::string& place,
                         const std::string& key) {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  for (const toml::node& item : array) {
    if (const auto integer = item.value_exact<std::int64_t>()) integers.push_back(*integer);
    if (const auto text = item.value_exact<std::string>()) texts.push_back(*text);
  }
  if (integers.size() == array.size()) return integers;
  if (texts.size() == array.size()) return texts;
  throw InvalidArgument(
      "{}: {} is a list of mixed or unusable values; all must be integers, or "
      "all must be texts",
      place, key);
}

std::string QuotedText(const std::string& text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(character));
      continue;
    }
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character;
  }
  return quoted + '"';
}

std::string TomlOf(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".enai") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string PlaceOf(const std::string& origin, const toml::node& node) {
  return fmt::format("{}:{}", origin, node.source().begin.line);
}

OptionValue ToValue(const toml::node& node, const std::string& place, const std::string& key) {
  if (const auto value = node.value_exact<bool>()) return *value;
  if (const auto value = node.value_exact<std::int64_t>()) return *value;
  if (const auto value = node.value_exact<double>()) return *value;
  if (const auto value = node.value_exact<std::string>()) return *value;
  if (const auto* array = node.as_array()) return ArrayToValue(*array, place, key);
  if (node.is_table()) throw InvalidArgument("{}: {} is an option, not a section", place, key);
  throw InvalidArgument("{}: {} is a date or time, which no option takes", place, key);
}

toml::table ParseToml(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    throw InvalidArgument("{}:{}: not valid TOML: {}", origin, error.source().begin.line,
                          error.description());
  }
}

std::string TomlOf(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return QuotedText(*text);
  if (const auto* number = std::get_if<double>(&value)) return TomlOf(*number);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::vector<std::string> quoted;
    for (const std::string& text : *texts) quoted.push_back(QuotedText(text));
    return fmt::format("[{}]", fmt::join(quoted, ", "));
  }
  return ToText(value);
}

}  // namespace menger
