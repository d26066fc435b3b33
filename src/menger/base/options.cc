#include "menger/base/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang 14 (clang-tidy) cannot deduce it itself.

// The value that a field of type T would have, or nothing if the value is of another kind.
template <typename T>
std::optional<T> ConvertTo(const OptionValue& value) {
  if (const T* same = std::get_if<T>(&value)) return *same;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    // 1e6 for a number of steps; 2^63 and up, fractions, infinities and NaN are not integers.
    const auto* number = std::get_if<double>(&value);
    if (number != nullptr && std::abs(*number) < 0x1p63 && std::trunc(*number) == *number) {
      return static_cast<int64_t>(*number);
    }
  }
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    const auto* texts = std::get_if<std::vector<std::string>>(&value);
    if (texts != nullptr && texts->empty()) return T{};
  }
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    const auto* integers = std::get_if<std::vector<int64_t>>(&value);
    if (integers != nullptr && integers->empty()) return T{};
  }
  return std::nullopt;
}

template <>
std::optional<AutoInt> ConvertTo<AutoInt>(const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && *text == "auto") return AutoInt{};
  const std::optional<int64_t> integer = ConvertTo<int64_t>(value);
  if (!integer.has_value()) return std::nullopt;
  return AutoInt{.value = *integer, .is_auto = false};
}

bool InLimits(double value, const OptionHelp& help) {  // False for NaN.
  return value <= help.maximum &&
         (help.above_minimum ? value > help.minimum : value >= help.minimum);
}

bool InChoices(const std::string& value, const OptionHelp& help) {
  return help.choices.empty() ||
         std::find(help.choices.begin(), help.choices.end(), value) != help.choices.end() ||
         (help.accepts != nullptr && help.accepts(value));
}

bool IsAllowed(bool, const OptionHelp&) { return true; }
bool IsAllowed(int64_t value, const OptionHelp& help) {
  return InLimits(static_cast<double>(value), help);
}
bool IsAllowed(double value, const OptionHelp& help) { return InLimits(value, help); }
bool IsAllowed(const std::string& value, const OptionHelp& help) { return InChoices(value, help); }
bool IsAllowed(const AutoInt& value, const OptionHelp& help) {
  return value.is_auto || IsAllowed(value.value, help);
}
template <typename T>
bool IsAllowed(const std::vector<T>& values, const OptionHelp& help) {
  return std::all_of(values.begin(), values.end(),
                     [&](const T& value) { return IsAllowed(value, help); });
}

const char* TypeName(const bool*) { return "bool"; }
const char* TypeName(const int64_t*) { return "integer"; }
const char* TypeName(const double*) { return "number"; }
const char* TypeName(const std::string*) { return "text"; }
const char* TypeName(const std::vector<int64_t>*) { return "integers"; }
const char* TypeName(const std::vector<std::string>*) { return "texts"; }
const char* TypeName(const AutoInt*) { return "integer or auto"; }

template <typename T>
OptionValue ToValue(const T& field) {
  return field;
}
OptionValue ToValue(const AutoInt& field) {
  if (field.is_auto) return std::string("auto");
  return field.value;
}

std::string AllowedText(const OptionHelp& help) {
  if (!help.choices.empty()) {
    return fmt::format("one of {}{}{}", fmt::join(help.choices, ", "),
                       help.form.empty() ? "" : ", or ", help.form);
  }
  const char* at_least = help.above_minimum ? ">" : ">=";
  const bool below = std::isfinite(help.minimum);
  const bool above = std::isfinite(help.maximum);
  if (below && above && !help.above_minimum) {
    return fmt::format("{} to {}", help.minimum, help.maximum);
  }
  if (below && above) return fmt::format("> {} and <= {}", help.minimum, help.maximum);
  if (below) return fmt::format("{} {}", at_least, help.minimum);
  if (above) return fmt::format("<= {}", help.maximum);
  return "";
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

std::vector<std::string_view> ListItems(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = Trimmed(text.substr(1, text.size() - 2));
  }
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    items.push_back(Trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return items;
}

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

OptionValue ParseNumber(std::string_view text) {
  if (const auto integer = ParseWhole<int64_t>(text)) return *integer;
  if (const auto number = ParseWhole<double>(text)) return *number;
  return Unquoted(text);  // Not a number: left for Assign to refuse, with its text.
}

OptionValue Parse(const bool*, std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::string(text);
}
OptionValue Parse(const int64_t*, std::string_view text) { return ParseNumber(text); }
OptionValue Parse(const double*, std::string_view text) { return ParseNumber(text); }
OptionValue Parse(const AutoInt*, std::string_view text) { return ParseNumber(text); }
OptionValue Parse(const std::string*, std::string_view text) { return Unquoted(text); }
OptionValue Parse(const std::vector<int64_t>*, std::string_view text) {
  std::vector<int64_t> values;
  for (const std::string_view item : ListItems(text)) {
    const std::optional<int64_t> value = ConvertTo<int64_t>(ParseNumber(item));
    if (!value.has_value()) return std::string(text);
    values.push_back(*value);
  }
  return values;
}
OptionValue Parse(const std::vector<std::string>*, std::string_view text) {
  std::vector<std::string> values;
  for (const std::string_view item : ListItems(text)) values.push_back(Unquoted(item));
  return values;
}

// "a number, 0 to 1" or "an integer or auto, >= 1": what an error says would be right.
std::string Wanted(const char* type, const OptionHelp& help) {
  const std::string allowed = AllowedText(help);
  return allowed.empty() ? type : fmt::format("{}, {}", type, allowed);
}

}  // namespace

std::string ToText(const OptionValue& value) {
  return std::visit(Overloaded{
                        [](const std::string& text) { return text; },
                        [](const std::vector<int64_t>& list) {
                          return fmt::format("[{}]", fmt::join(list, ", "));
                        },
                        [](const std::vector<std::string>& list) {
                          return fmt::format("[{}]", fmt::join(list, ", "));
                        },
                        [](const auto& scalar) { return fmt::format("{}", scalar); },
                    },
                    value);
}

Options::Options(std::string section) : section_(std::move(section)) {}

void Options::Add(std::string name, bool* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, int64_t* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, double* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, std::string* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, std::vector<int64_t>* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, std::vector<std::string>* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}
void Options::Add(std::string name, AutoInt* field, OptionHelp help) {
  AddField(std::move(name), field, std::move(help));
}

void Options::AddField(std::string name, Field field, OptionHelp help) {
  if (name.empty() || Contains(name)) {
    throw Internal("option '{}' is declared twice or has no name", Key(name));
  }
  std::visit(
      [&](auto* bound) {
        if (!IsAllowed(*bound, help)) {
          throw Internal("the default of option '{}' is {}, which its own limits refuse ({})",
                         Key(name), ToText(ToValue(*bound)), AllowedText(help));
        }
        options_.push_back({.name = std::move(name),
                            .field = bound,
                            .default_value = ToValue(*bound),
                            .help = std::move(help)});
      },
      field);
}

void Options::Set(std::string_view name, const OptionValue& value) {
  Option& option = options_[Find(name)];
  Assign(option, Key(name), value);
  option.is_set = true;
}

void Options::SetFromText(std::string_view name, std::string_view text) {
  const auto parse = [&](const auto* field) { return Parse(field, Trimmed(text)); };
  Set(name, std::visit(parse, options_[Find(name)].field));
}

void Options::SetDefault(std::string_view name, const OptionValue& value, std::string origin) {
  Option& option = options_[Find(name)];
  option.default_value = value;
  if (option.is_set) return;
  Assign(option, Key(name), value);
  option.origin = std::move(origin);
}

void Options::SetOrigin(std::string_view name, std::string origin) {
  options_[Find(name)].origin = std::move(origin);
}

OptionTexts Options::Texts() const {
  OptionTexts texts;
  for (const OptionEntry& entry : Entries()) texts.emplace_back(entry.name, ToText(entry.value));
  return texts;
}

void Options::SetFromTexts(const OptionTexts& texts) {
  for (const auto& [name, text] : texts) SetFromText(name, text);
}

void Options::Assign(const Option& option, const std::string& key, const OptionValue& value) {
  std::visit(
      [&](auto* field) {
        auto converted = ConvertTo<std::remove_pointer_t<decltype(field)>>(value);
        if (!converted.has_value()) {
          throw InvalidArgument("{} = {} is not of the right type; it takes: {}", key,
                                ToText(value), Wanted(TypeName(field), option.help));
        }
        if (!IsAllowed(*converted, option.help)) {
          const auto* text = std::get_if<std::string>(&value);
          throw InvalidArgument("{} = {} is not allowed{}; it takes: {}", key, ToText(value),
                                text == nullptr ? "" : DidYouMean(*text, option.help.choices),
                                Wanted(TypeName(field), option.help));
        }
        *field = std::move(*converted);
      },
      option.field);
}

bool Options::Contains(std::string_view name) const {
  return std::any_of(options_.begin(), options_.end(),
                     [&](const Option& option) { return option.name == name; });
}

std::size_t Options::Find(std::string_view name) const {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name == name) return i;
  }
  const std::string nearest = NearestName(name, Names());
  if (!nearest.empty()) {
    throw InvalidArgument("there is no option '{}' (did you mean '{}'?)", Key(name), Key(nearest));
  }
  std::vector<std::string> keys;
  for (const Option& option : options_) keys.push_back(Key(option.name));
  throw InvalidArgument("there is no option '{}'; there are: {}", Key(name), fmt::join(keys, ", "));
}

OptionValue Options::Get(std::string_view name) const {
  return std::visit([](const auto* field) { return ToValue(*field); }, options_[Find(name)].field);
}

std::vector<OptionEntry> Options::Entries() const {
  std::vector<OptionEntry> entries;
  for (const Option& option : options_) {
    entries.push_back(
        {.name = option.name,
         .key = Key(option.name),
         .type = std::visit([](const auto* field) { return TypeName(field); }, option.field),
         .default_value = option.default_value,
         .value = Get(option.name),
         .allowed = AllowedText(option.help),
         .unit = option.help.unit,
         .consequence = option.help.consequence,
         .origin = option.origin});
  }
  return entries;
}

std::vector<std::string> Options::Names() const {
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  return names;
}

std::string Options::Key(std::string_view name) const {
  return section_.empty() ? std::string(name) : fmt::format("{}.{}", section_, name);
}

}  // namespace menger
