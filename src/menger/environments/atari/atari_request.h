#pragma once

#include <string>

#include "menger/environments/atari/atari_settings.h"

namespace menger {

// What the family asks of menger-atari-host, and how it travels: as a JSON object of these names,
// all of which must be there.
struct AtariRequest {
  std::string game;        // "ALE/Pong-v5"
  std::string preset;      // For the description only: `settings` say everything.
  std::string rom_folder;  // Empty: where the host was built to look.
  AtariSettings settings;
};

std::string ToJson(const AtariRequest& request);
AtariRequest AtariRequestFromJson(const std::string& text);  // Throws InvalidArgument.

}  // namespace menger
