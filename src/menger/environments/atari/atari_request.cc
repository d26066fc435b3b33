#include "menger/environments/atari/atari_request.h"

#include <nlohmann/json.hpp>

#include "menger/base/error.h"

namespace menger {
namespace {

// Calls visit(name, field) for each setting, in either direction.
template <typename Settings, typename Visitor>
void ForEachSetting(Settings& settings, Visitor visit) {
  visit("frame_skip", settings.frame_skip);
  visit("sticky_percent", settings.sticky_percent);
  visit("noops_min", settings.noops_min);
  visit("noops_max", settings.noops_max);
  visit("fire", settings.fire);
  visit("brighter_of_two", settings.brighter_of_two);
  visit("height", settings.height);
  visit("width", settings.width);
  visit("end_at_lost_life", settings.end_at_lost_life);
  visit("all_actions", settings.all_actions);
  visit("frame_limit", settings.frame_limit);
}

}  // namespace

std::string ToJson(const AtariRequest& request) {
  nlohmann::json object = {
      {"game", request.game}, {"preset", request.preset}, {"rom_folder", request.rom_folder}};
  ForEachSetting(request.settings,
                 [&](const char* name, const auto& field) { object[name] = field; });
  return object.dump();
}

AtariRequest AtariRequestFromJson(const std::string& text) {
  try {
    const nlohmann::json object = nlohmann::json::parse(text);
    AtariRequest request;
    object.at("game").get_to(request.game);
    object.at("preset").get_to(request.preset);
    object.at("rom_folder").get_to(request.rom_folder);
    ForEachSetting(request.settings,
                   [&](const char* name, auto& field) { object.at(name).get_to(field); });
    return request;
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument("the request for an Atari game cannot be read: {}", error.what());
  }
}

}  // namespace menger
