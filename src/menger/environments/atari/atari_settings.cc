#include "menger/environments/atari/atari_settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::array<std::pair<std::string_view, FireOnReset>, 3> kFire = {
    {{"never", FireOnReset::kNever},
     {"before_noops", FireOnReset::kBeforeNoops},
     {"after_noops", FireOnReset::kAfterNoops}}};

// ale_v5 is what gymnasium registers (Machado et al. 2018), seen through its AtariPreprocessing
// without no-ops; dopamine's settings (Castro et al. 2018) are the same but for the frames' origin.
// sb3 is the wrapper of Stable-Baselines3 (after OpenAI's), accelerated that of Stooke and Abbeel
// (2018).
AtariSettings Preset(std::string_view name) {
  AtariSettings settings;
  if (name == "sb3") {
    settings.sticky_percent = 0;
    settings.noops_min = 1;
    settings.noops_max = 30;
    settings.fire = FireOnReset::kAfterNoops;
    settings.end_at_lost_life = true;
  } else if (name == "accelerated") {
    settings.sticky_percent = 0;
    settings.noops_max = 30;
    settings.fire = FireOnReset::kBeforeNoops;
    settings.end_at_lost_life = true;
    settings.height = 104;
    settings.width = 80;
  }
  return settings;
}

void Override(int& setting, const AutoInt& option) {
  if (!option.is_auto) setting = static_cast<int>(option.value);
}

void Override(bool& setting, const std::string& option, std::string_view yes) {
  if (option != "auto") setting = option == yes;
}

}  // namespace

void AtariOptions::Declare(Options& options) {
  options.Add("preset", &preset_,
              {.choices = {"ale_v5", "dopamine", "sb3", "accelerated"},
               .consequence = "whose settings those are that are left at auto"});
  options.Add("frame_skip", &frame_skip_,
              {.minimum = 1,
               .maximum = 60,
               .unit = "frames",
               .consequence = "how long each action is held: auto is 4 in every preset"});
  options.Add("sticky_percent", &sticky_percent_,
              {.minimum = 0,
               .maximum = 100,
               .unit = "%",
               .consequence = "how often a frame repeats the last action instead: 25 or 0; scores "
                              "compare only where it is the same"});
  options.Add("noops_min", &noops_min_,
              {.minimum = 0,
               .unit = "frames",
               .consequence = "the fewest frames that pass before the first action"});
  options.Add("noops_max", &noops_max_,
              {.minimum = 0,
               .maximum = 1000,
               .unit = "frames",
               .consequence = "the most; without sticky actions they alone make games differ"});
  options.Add("fire_on_reset", &fire_on_reset_,
              {.choices = {"auto", "never", "before_noops", "after_noops"},
               .consequence = "games that wait for FIRE start by themselves"});
  options.Add("brighter_of_two", &brighter_of_two_,
              {.choices = {"auto", "on", "off"},
               .consequence = "off: sprites that are drawn every other frame may never be seen"});
  options.Add("height", &height_,
              {.minimum = 8,
               .maximum = 210,
               .unit = "pixels",
               .consequence = "auto is 84, and 104 in accelerated"});
  options.Add("width", &width_,
              {.minimum = 8,
               .maximum = 160,
               .unit = "pixels",
               .consequence = "auto is 84, and 80 in accelerated"});
  options.Add("end_at_lost_life", &end_at_lost_life_,
              {.choices = {"auto", "on", "off"},
               .consequence = "on: learning counts a lost life as the end; scores are of whole "
                              "games all the same, and evaluation never uses it"});
  options.Add("actions", &actions_,
              {.choices = {"auto", "minimal", "all"},
               .consequence = "all 18, or those that make a difference in the game (auto)"});
  options.Add("frame_limit", &frame_limit_,
              {.minimum = 60,
               .unit = "frames",
               .consequence = "longer games are truncated: 108000 is half an hour of play"});
  options.Add("rom_folder", &rom_folder_,
              {.consequence = "where the cartridges are; empty: those that `make atari` fetched"});
}

AtariSettings AtariOptions::Resolve(EnvironmentUse use) const {
  AtariSettings settings = Preset(preset_);
  Override(settings.frame_skip, frame_skip_);
  Override(settings.sticky_percent, sticky_percent_);
  Override(settings.noops_min, noops_min_);
  Override(settings.noops_max, noops_max_);
  for (const auto& [name, fire] : kFire) {
    if (fire_on_reset_ == name) settings.fire = fire;
  }
  Override(settings.brighter_of_two, brighter_of_two_, "on");
  Override(settings.height, height_);
  Override(settings.width, width_);
  Override(settings.end_at_lost_life, end_at_lost_life_, "on");
  Override(settings.all_actions, actions_, "all");
  Override(settings.frame_limit, frame_limit_);
  if (use != EnvironmentUse::kTraining) settings.end_at_lost_life = false;
  if (settings.noops_min > settings.noops_max) {
    throw InvalidArgument("atari.noops_min is {}; it must be at most atari.noops_max, which is {}",
                          settings.noops_min, settings.noops_max);
  }
  return settings;
}

void AtariOptions::ResolveDefaults() {
  const AtariSettings settings = Resolve(EnvironmentUse::kTraining);
  const auto number = [](AutoInt& option, int value) {
    option = {.value = value, .is_auto = false};
  };
  const auto flag = [](std::string& option, bool is_set) { option = is_set ? "on" : "off"; };
  number(frame_skip_, settings.frame_skip);
  number(sticky_percent_, settings.sticky_percent);
  number(noops_min_, settings.noops_min);
  number(noops_max_, settings.noops_max);
  for (const auto& [name, fire] : kFire) {
    if (settings.fire == fire) fire_on_reset_ = name;
  }
  flag(brighter_of_two_, settings.brighter_of_two);
  number(height_, settings.height);
  number(width_, settings.width);
  flag(end_at_lost_life_, settings.end_at_lost_life);
  actions_ = settings.all_actions ? "all" : "minimal";
  number(frame_limit_, settings.frame_limit);
}

std::string Describe(const AtariSettings& settings) {
  std::string text = fmt::format("{} frames a step, sticky actions {}%", settings.frame_skip,
                                 settings.sticky_percent);
  if (settings.noops_max > 0) {
    text += fmt::format(", {} to {} no-ops", settings.noops_min, settings.noops_max);
  }
  if (settings.fire == FireOnReset::kBeforeNoops) text += ", FIRE before them";
  if (settings.fire == FireOnReset::kAfterNoops) text += ", FIRE after them";
  if (settings.end_at_lost_life) text += ", a lost life ends an episode";
  if (settings.brighter_of_two) text += ", the brighter of two screens";
  text += settings.all_actions ? ", all 18 actions" : ", the game's own actions";
  return text + fmt::format(", {} x {} grey, at most {} frames", settings.height, settings.width,
                            settings.frame_limit);
}

}  // namespace menger
