// menger-atari-host: steps Atari games for menger, in a process of its own. It links the Arcade
// Learning Environment, so as a whole it is under that library's licence (GPL-2.0-only); nothing
// else of Menger links it.
#include <string>

#include "menger/environments/atari/atari_game.h"
#include "menger/environments/atari/atari_request.h"
#include "menger/environments/atari/host/ale_emulator.h"
#include "menger/environments/hosted/host_server.h"

namespace {

menger::EnvironmentEntry Open(const std::string& text) {
  const menger::AtariRequest request = menger::AtariRequestFromJson(text);
  const std::string folder =
      request.rom_folder.empty() ? MENGER_ATARI_ROM_FOLDER : request.rom_folder;
  const std::string cartridge = menger::AleCartridge(folder, request.game);
  return menger::EntryOf<menger::AtariGame>(
      {.facts = menger::AleFacts(request.game, cartridge),
       .settings = request.settings,
       .preset = request.preset,
       .make_emulator = [cartridge, sticky_percent = request.settings.sticky_percent] {
         return menger::MakeAleEmulator(cartridge, sticky_percent);
       }});
}

}  // namespace

int main(int argc, char** argv) { return menger::ServeGroup(argc, argv, Open); }
