#include "menger/runtime/calls/place_need.h"

#include <algorithm>

namespace menger {
namespace {

constexpr std::string_view kSpread = "spread";  // No amount of a resource is written like that.

}  // namespace

PlaceNeed ReadPlaceNeed(std::string_view text) {
  PlaceNeed read;
  std::size_t end = std::min(text.find(';'), text.size());
  const std::string_view amounts = text.substr(0, end);
  read.need = amounts.empty() ? Resources(1, 0) : Resources::Parse(amounts);
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(';'), text.size());
    const std::string_view part = text.substr(0, end);
    if (part == kSpread) {
      read.spread = true;
    } else {
      read.preferred.Add(Resources::Parse(part));
    }
  }
  if (read.preferred != Resources()) read.otherwise = WritePlaceNeed(amounts, read.spread, "");
  return read;
}

std::string WritePlaceNeed(std::string_view amounts, bool spread, std::string_view preferred) {
  std::string text(amounts);
  if (spread) text.append(";").append(kSpread);
  if (!preferred.empty()) text.append(";").append(preferred);
  return text;
}

}  // namespace menger
