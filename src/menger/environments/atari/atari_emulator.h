#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/archive.h"
#include "menger/environments/atari/screen_filter.h"
#include "menger/environments/image.h"

namespace menger {

// The first actions of the Arcade Learning Environment's 18; the others are the directions of a
// joystick, without and with its button.
inline constexpr int kAtariNoop = 0;
inline constexpr int kAtariFire = 1;

// What is known of a game before it is played.
struct AtariGameFacts {
  std::string name;                  // "ALE/Pong-v5"
  std::vector<int> minimal_actions;  // Those that make a difference, as the emulator numbers them.
  std::vector<int> all_actions;
  ScreenFormat screen;
};

// An Atari 2600 with a cartridge, frame by frame: what AtariGame needs of an emulator. One thread.
class AtariEmulator {
 public:
  virtual ~AtariEmulator() = default;

  // Where sticky actions draw from.
  virtual void Seed(std::uint32_t seed) = 0;

  // Starts a game and shows its first screen. As with a real machine, what the last game left in
  // memory may make a difference.
  virtual void Reset() = 0;

  // Holds an action for a frame and returns the points it made. When the game is over nothing
  // happens any more.
  virtual int Act(int action) = 0;

  virtual bool game_over() const = 0;
  virtual int lives() const = 0;  // 0 in games that have none.

  // The screens after the last Act and after the one before it; valid until the next.
  virtual const std::uint8_t* screen() const = 0;
  virtual const std::uint8_t* previous_screen() const = 0;

  // The screen after the last Act, in colours.
  virtual Image Picture() const = 0;

  // The whole machine, screens and random numbers included.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

using AtariEmulatorFactory = std::function<std::unique_ptr<AtariEmulator>()>;

}  // namespace menger
