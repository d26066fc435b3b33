#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/random.h"
#include "menger/environments/atari/atari_emulator.h"
#include "menger/environments/atari/atari_settings.h"
#include "menger/environments/atari/screen_filter.h"
#include "menger/environments/environment.h"
#include "menger/environments/simulator_group.h"

namespace menger {

struct AtariGameConfig {
  AtariGameFacts facts;
  AtariSettings settings;
  std::string preset;  // For the description.
  AtariEmulatorFactory make_emulator;
};

// A game of the Atari 2600, as learners play it: a Simulator. Observations are single frames, uint8
// [1, height, width]; whoever wants several stacks them. Rewards are points, not clipped.
//
// Every step skips frames once and sums their points; the last one or two make the observation. A
// game that ends before they are reached shows its last screens, never those of the step before.
//
// Where lost lives end episodes, Reset goes on with the game after one: a step of NOOP (or what
// FireOnReset says), whose points are not counted, as in the wrappers that began this. Each game
// seeds the emulator with a number of `random`, so games depend on nothing but that.
class AtariGame {
 public:
  using Number = std::uint8_t;
  using Config = AtariGameConfig;

  static EnvironmentSpec Spec(const AtariGameConfig& config);

  explicit AtariGame(const AtariGameConfig& config);

  void Reset(Random& random, std::uint8_t* frame);
  StepResult Step(int action, Random& random, std::uint8_t* frame);
  Image Render() const { return emulator_->Picture(); }

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  // Holds the action for a step and returns its points.
  int Hold(int action);
  void ActOnce(int action);
  void StartGame(Random& random);
  void GoOn();
  void PressFireFirst();
  std::vector<int> LastPresses() const;
  void PressFireLast();
  void Write(std::uint8_t* frame);

  AtariSettings settings_;
  std::vector<int> actions_;
  bool has_fire_;
  bool has_third_action_;
  std::unique_ptr<AtariEmulator> emulator_;
  ScreenFilter filter_;

  int screens_ = 1;            // 2: the observation shows the brighter of the last two.
  int lives_ = 0;              // After the last step.
  int steps_ = 0;              // Of the game.
  bool life_is_lost_ = false;  // Reset is to go on with the game.
};

}  // namespace menger
