#include "menger/runtime/calls/placement_group.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "menger/base/error.h"

namespace menger {
namespace {

// Of a call, or a bundle; and of all bundles of a group. The node keeps them as long as the class
// of such calls.
constexpr std::size_t kResourcesBytesMax = std::size_t{64} << 10;
constexpr std::size_t kBundlesBytesMax = std::size_t{4} << 20;
constexpr std::array<std::string_view, 4> kStrategies = {"PACK", "SPREAD", "STRICT_PACK",
                                                         "STRICT_SPREAD"};

void AppendAmount(std::string& text, std::string_view name, double amount) {
  Resources::CheckAmount(name, amount);
  Resources::CheckName(name);
  if (!text.empty()) text += ' ';
  text += fmt::format("{}={}", name, amount);
}

void CheckSize(std::string_view text) {
  if (text.size() <= kResourcesBytesMax) return;
  throw InvalidArgument("the resources of a call take {} bytes to name; they may take {}",
                        text.size(), kResourcesBytesMax);
}

}  // namespace

std::string WriteAmounts(double cpus, double gpus,
                         std::span<const std::pair<std::string, double>> others) {
  std::string text;
  AppendAmount(text, "cpu", cpus);
  if (gpus != 0) AppendAmount(text, "gpu", gpus);
  for (const auto& [name, amount] : others) AppendAmount(text, name, amount);
  CheckSize(text);
  return text;
}

std::string WriteAmounts(std::span<const std::pair<std::string, double>> amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts) AppendAmount(text, name, amount);
  CheckSize(text);
  return text;
}

std::string WriteReservation(std::span<const Bundle> bundles, PlacementStrategy strategy) {
  if (bundles.empty() || bundles.size() > kBundlesMax) {
    throw InvalidArgument("a placement group of {} bundles; it must have 1 to {}", bundles.size(),
                          kBundlesMax);
  }
  std::string text(kStrategies.at(static_cast<std::size_t>(strategy)));
  for (const Bundle& bundle : bundles) {
    text += ";" + WriteAmounts(bundle.cpus, bundle.gpus, bundle.resources);
    if (Resources::Parse(text.substr(text.rfind(';') + 1)) == Resources()) {
      throw InvalidArgument("a bundle of a placement group has nothing in it");
    }
    if (text.size() > kBundlesBytesMax) {
      throw InvalidArgument(
          "the bundles of a placement group take more than {} bytes to name; its first {} take {}",
          kBundlesBytesMax, &bundle - bundles.data() + 1, text.size());
    }
  }
  return text;
}

Reservation ReadReservation(std::string_view text) {
  Reservation reservation;
  std::size_t end = std::min(text.find(';'), text.size());
  const auto* const strategy =
      std::find(kStrategies.begin(), kStrategies.end(), text.substr(0, end));
  if (strategy == kStrategies.end()) {
    throw InvalidArgument("'{}' is no strategy of placement", text.substr(0, end));
  }
  reservation.strategy = static_cast<PlacementStrategy>(strategy - kStrategies.begin());
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(';'), text.size());
    reservation.bundles.push_back(Resources::Parse(text.substr(0, end)));
  }
  if (reservation.bundles.empty() || reservation.bundles.size() > kBundlesMax) {
    throw InvalidArgument("a placement group of {} bundles", reservation.bundles.size());
  }
  return reservation;
}

BundleNeed ReadBundleNeed(std::string_view text) {
  BundleNeed read;
  const std::size_t at = text.rfind(" @");
  if (at == std::string_view::npos) {
    read.need = text.empty() ? Resources(1, 0) : Resources::Parse(text);
    return read;
  }
  const std::string_view number = text.substr(at + 2);
  const char* const last = number.data() + number.size();
  if (std::from_chars(number.data(), last, read.bundle).ptr != last || number.empty() ||
      read.bundle < 0) {
    throw InvalidArgument("'{}' is no bundle of a placement group", number);
  }
  read.need = Resources::Parse(text.substr(0, at));
  return read;
}

}  // namespace menger
