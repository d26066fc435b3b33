#pragma once

#include <cstdint>
#include <string>

#include "menger/base/options.h"
#include "menger/environments/family.h"

namespace menger {

// How FIRE is pressed when a game starts or goes on after a lost life, where the game has that
// button: some wait for it.
enum class FireOnReset : std::uint8_t {
  kNever,
  kBeforeNoops,  // A frame of NOOP and one of FIRE.
  kAfterNoops,   // A step of FIRE, then one of the third action.
};

// What turns an emulator into an environment. A step is an action of the learner, a frame one of
// the emulator's.
struct AtariSettings {
  int frame_skip = 4;       // Frames of a step.
  int sticky_percent = 25;  // How probable it is, at each frame, that the last action goes on.
  int noops_min = 0;        // Frames of NOOP at the start of a game: uniform, both ends
  int noops_max = 0;        // included.
  FireOnReset fire = FireOnReset::kNever;
  bool brighter_of_two = true;  // A frame shows the brighter of its last two screens.
  int height = 84;
  int width = 84;
  bool end_at_lost_life = false;  // For learning only: the game goes on.
  bool all_actions = false;       // All 18, also those that make no difference.
  int frame_limit = 108000;       // Of a game; then it is truncated.

  int step_limit() const { return frame_limit / frame_skip; }
};

// The section `atari` of a recipe: a preset, and what is to differ from it.
class AtariOptions {
 public:
  void Declare(Options& options);

  // Evaluation plays whole games: a lost life is no end. Throws InvalidArgument where settings
  // contradict each other.
  AtariSettings Resolve(EnvironmentUse use) const;

  // Puts the preset's setting wherever an option says auto.
  void ResolveDefaults();

  const std::string& preset() const { return preset_; }
  const std::string& rom_folder() const { return rom_folder_; }

 private:
  std::string preset_ = "ale_v5";
  AutoInt frame_skip_;
  AutoInt sticky_percent_;
  AutoInt noops_min_;
  AutoInt noops_max_;
  std::string fire_on_reset_ = "auto";
  std::string brighter_of_two_ = "auto";
  AutoInt height_;
  AutoInt width_;
  std::string end_at_lost_life_ = "auto";
  std::string actions_ = "auto";
  AutoInt frame_limit_;
  std::string rom_folder_;
};

// "preset sb3: 4 frames a step, sticky actions 0%, 1 to 30 no-ops, ...": for descriptions.
std::string Describe(const AtariSettings& settings);

}  // namespace menger
