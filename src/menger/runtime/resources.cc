#include "menger/runtime/resources.h"

#include <algorithm>
#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

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

void Resources::Set(std::string_view name, double amount) {
  if (!(amount >= 0 && amount <= 1e6)) {
    throw InvalidArgument("resource '{}' is {}; it must lie between 0 and 1000000", name, amount);
  }
  const auto place = Position(amounts_, name);
  const bool there = place != amounts_.end() && place->name == name;
  const auto thousandths = static_cast<std::int64_t>(std::llround(amount * 1000));
  if (thousandths == 0) {
    if (there) amounts_.erase(place);
  } else if (there) {
    place->thousandths = thousandths;
  } else {
    amounts_.insert(place, {std::string(name), thousandths});
  }
}

std::int64_t Resources::Thousandths(std::string_view name) const {
  const auto place = Position(amounts_, name);
  return place != amounts_.end() && place->name == name ? place->thousandths : 0;
}

double Resources::Get(std::string_view name) const {
  return static_cast<double>(Thousandths(name)) / 1000;
}

bool Resources::Contains(const Resources& need) const {
  return std::all_of(need.amounts_.begin(), need.amounts_.end(), [this](const Named& amount) {
    return Thousandths(amount.name) >= amount.thousandths;
  });
}

void Resources::Subtract(const Resources& need) {
  for (const Named& amount : need.amounts_) {
    const auto place = Position(amounts_, amount.name);
    if (place != amounts_.end() && place->name == amount.name) {
      place->thousandths -= amount.thousandths;
    } else {
      amounts_.insert(place, {amount.name, -amount.thousandths});
    }
  }
}

void Resources::Add(const Resources& more) {
  for (const Named& amount : more.amounts_) {
    const auto place = Position(amounts_, amount.name);
    if (place != amounts_.end() && place->name == amount.name) {
      place->thousandths += amount.thousandths;
    } else {
      amounts_.insert(place, amount);
    }
  }
}

std::string Resources::MissingFrom(const Resources& total) const {
  for (const Named& amount : amounts_) {
    if (total.Thousandths(amount.name) < amount.thousandths) {
      return fmt::format("{}: needs {}, the node has {}", amount.name, Get(amount.name),
                         total.Get(amount.name));
    }
  }
  return "";
}

}  // namespace menger
