#include "menger/runtime/values/resources.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kPartsOfOne = 10'000;
constexpr double kAmountMax = 1e6;
constexpr std::size_t kNameBytesMax = 65'000;  // So a call can name it: see WriteAmounts.
constexpr std::size_t kShownBytesMax = 100;

auto Position(auto& amounts, std::string_view name) {
  return std::lower_bound(
      amounts.begin(), amounts.end(), name,
      [](const auto& amount, std::string_view text) { return amount.name < text; });
}

}  // namespace

Resources::Resources(double cpus, double gpus) {
  Set("cpu", cpus);
  Set("gpu", gpus);
}

Resources Resources::Parse(std::string_view text) {
  Resources resources;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;  // One space more.
    const std::size_t equal = item.find('=');
    double amount = 0;
    const char* const last = item.data() + item.size();
    const auto read = equal == std::string_view::npos
                          ? std::from_chars_result{last, std::errc::invalid_argument}
                          : std::from_chars(item.data() + equal + 1, last, amount);
    if (read.ec != std::errc() || read.ptr != last) {
      throw InvalidArgument("'{}' is no amount of a resource; write it as name=number",
                            Shown(item));
    }
    const std::string_view name = item.substr(0, equal);
    if (resources.Parts(name) != 0) {
      throw InvalidArgument("'{}' gives resource '{}' a second amount", Shown(item), Shown(name));
    }
    resources.Set(name, amount);
  }
  return resources;
}

void Resources::CheckName(std::string_view name) {
  if (name.empty() || name.find_first_of(" =@;\n") != std::string_view::npos) {
    throw InvalidArgument(
        "'{}' is no name of a resource: it is empty or has ' ', '=', '@', ';' or a line break",
        Shown(name));
  }
  if (name.size() > kNameBytesMax) {
    throw InvalidArgument("'{}' is too long for the name of a resource; it may have {} bytes",
                          Shown(name), kNameBytesMax);
  }
}

std::string Resources::Shown(std::string_view name) {
  if (name.size() <= kShownBytesMax) return std::string(name);
  std::size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // In UTF-8.
  return fmt::format("{}... ({} bytes)", name.substr(0, end), name.size());
}

void Resources::CheckAmount(std::string_view name, double amount) {
  if (!(amount >= 0 && amount <= kAmountMax)) {
    throw InvalidArgument("resource '{}' is {}; it must lie between 0 and {:.0f}", Shown(name),
                          amount, kAmountMax);
  }
  if (amount > 0 && amount < 1.0 / kPartsOfOne) {
    throw InvalidArgument("resource '{}' is {}; the smallest amount is {}", Shown(name), amount,
                          1.0 / kPartsOfOne);
  }
}

void Resources::Set(std::string_view name, double amount) {
  CheckAmount(name, amount);
  const auto place = Position(amounts_, name);
  const bool there = place != amounts_.end() && place->name == name;
  const auto parts = static_cast<std::int64_t>(std::llround(amount * kPartsOfOne));
  if (parts == 0) {
    if (there) amounts_.erase(place);
  } else if (there) {
    place->parts = parts;
  } else {
    amounts_.insert(place, {std::string(name), parts});
  }
}

std::int64_t Resources::Parts(std::string_view name) const {
  const auto place = Position(amounts_, name);
  return place != amounts_.end() && place->name == name ? place->parts : 0;
}

double Resources::Get(std::string_view name) const {
  return static_cast<double>(Parts(name)) / kPartsOfOne;
}

bool Resources::Contains(const Resources& need) const {
  return std::all_of(need.amounts_.begin(), need.amounts_.end(),
                     [this](const Named& amount) { return Parts(amount.name) >= amount.parts; });
}

void Resources::Subtract(const Resources& need) {
  for (const Named& amount : need.amounts_) {
    const auto place = Position(amounts_, amount.name);
    if (place != amounts_.end() && place->name == amount.name) {
      place->parts -= amount.parts;
    } else {
      amounts_.insert(place, {amount.name, -amount.parts});
    }
  }
}

void Resources::Add(const Resources& more) {
  for (const Named& amount : more.amounts_) {
    const auto place = Position(amounts_, amount.name);
    if (place != amounts_.end() && place->name == amount.name) {
      place->parts += amount.parts;
    } else {
      amounts_.insert(place, amount);
    }
  }
}

void Resources::Erase(const Resources& names) {
  std::erase_if(amounts_, [&names](const Named& amount) {
    const auto place = Position(names.amounts_, amount.name);
    return place != names.amounts_.end() && place->name == amount.name;
  });
}

bool Resources::Overlaps(const Resources& other) const {
  return std::any_of(amounts_.begin(), amounts_.end(),
                     [&other](const Named& amount) { return other.Parts(amount.name) != 0; });
}

bool Resources::OverlapsLack(const Resources& wanted, const Resources& available) const {
  return std::any_of(amounts_.begin(), amounts_.end(), [&](const Named& amount) {
    return wanted.Parts(amount.name) > available.Parts(amount.name);
  });
}

std::string Resources::MissingFrom(const Resources& total) const {
  for (const Named& amount : amounts_) {
    if (total.Parts(amount.name) < amount.parts) {
      return fmt::format("{}: needs {}, there is {}", Shown(amount.name), Get(amount.name),
                         total.Get(amount.name));
    }
  }
  return "";
}

std::string ToString(const Resources& resources) {
  std::string text;
  for (const Resources::Named& amount : resources.amounts()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", Resources::Shown(amount.name),
                        resources.Get(amount.name));
  }
  return text;
}

}  // namespace menger
