#pragma once

#include <memory>
#include <string>
#include <vector>

#include "menger/environments/atari/atari_emulator.h"

namespace menger {

// The games of which there is a cartridge in `rom_folder`, as "ALE/Pong-v5", in alphabetical order.
// Throws NotFound where there is no such folder.
std::vector<std::string> AleGames(const std::string& rom_folder);

// The cartridge of a game. Throws NotFound, with the nearest name, where there is none.
std::string AleCartridge(const std::string& rom_folder, const std::string& game);

// Throws FailedPrecondition where the file is no cartridge that the emulator knows.
AtariGameFacts AleFacts(const std::string& game, const std::string& cartridge);

// The Arcade Learning Environment's emulator.
std::unique_ptr<AtariEmulator> MakeAleEmulator(const std::string& cartridge, int sticky_percent);

}  // namespace menger
