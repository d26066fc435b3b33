#include "menger/environments/atari/atari_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/environments/atari/atari_environments.h"
#include "menger/environments/atari/atari_request.h"

namespace menger {
namespace {

AtariSettings Resolve(const std::vector<std::pair<std::string, std::string>>& set,
                      EnvironmentUse use = EnvironmentUse::kTraining) {
  AtariOptions atari;
  Options options("atari");
  atari.Declare(options);
  for (const auto& [name, text] : set) options.SetFromText(name, text);
  return atari.Resolve(use);
}

TEST(AtariSettingsTest, PresetsAreThoseOfTheirAuthors) {
  const AtariSettings ale = Resolve({});
  EXPECT_EQ(ale.sticky_percent, 25);
  EXPECT_EQ(ale.noops_max, 0);
  EXPECT_EQ(ale.fire, FireOnReset::kNever);
  EXPECT_FALSE(ale.end_at_lost_life);
  EXPECT_EQ(ale.step_limit(), 27000);

  const AtariSettings sb3 = Resolve({{"preset", "sb3"}});
  EXPECT_EQ(sb3.sticky_percent, 0);
  EXPECT_EQ(sb3.noops_min, 1);
  EXPECT_EQ(sb3.noops_max, 30);
  EXPECT_EQ(sb3.fire, FireOnReset::kAfterNoops);
  EXPECT_TRUE(sb3.end_at_lost_life);

  const AtariSettings accelerated = Resolve({{"preset", "accelerated"}});
  EXPECT_EQ(accelerated.noops_min, 0);
  EXPECT_EQ(accelerated.fire, FireOnReset::kBeforeNoops);
  EXPECT_EQ(accelerated.height, 104);
  EXPECT_EQ(accelerated.width, 80);
}

TEST(AtariSettingsTest, ResolvedOptionsSayThePresetsSettings) {
  AtariOptions atari;
  Options options("atari");
  atari.Declare(options);
  options.SetFromText("preset", "accelerated");
  options.SetFromText("frame_skip", "3");
  atari.ResolveDefaults();
  for (const OptionEntry& entry : options.Entries()) {
    EXPECT_NE(ToText(entry.value), "auto") << entry.name;
  }
  EXPECT_EQ(ToText(options.Get("frame_skip")), "3");
  EXPECT_EQ(ToText(options.Get("fire_on_reset")), "before_noops");
  EXPECT_EQ(ToText(options.Get("width")), "80");
  EXPECT_EQ(ToText(options.Get("end_at_lost_life")), "on");
}

TEST(AtariSettingsTest, EverySettingCanDifferFromThePreset) {
  const AtariSettings settings = Resolve({{"preset", "sb3"},
                                          {"frame_skip", "5"},
                                          {"sticky_percent", "10"},
                                          {"noops_min", "0"},
                                          {"noops_max", "7"},
                                          {"fire_on_reset", "never"},
                                          {"brighter_of_two", "off"},
                                          {"height", "64"},
                                          {"width", "48"},
                                          {"end_at_lost_life", "off"},
                                          {"actions", "all"},
                                          {"frame_limit", "18000"}});
  EXPECT_EQ(settings.frame_skip, 5);
  EXPECT_EQ(settings.sticky_percent, 10);
  EXPECT_EQ(settings.noops_min, 0);
  EXPECT_EQ(settings.noops_max, 7);
  EXPECT_EQ(settings.fire, FireOnReset::kNever);
  EXPECT_FALSE(settings.brighter_of_two);
  EXPECT_EQ(settings.height, 64);
  EXPECT_EQ(settings.width, 48);
  EXPECT_FALSE(settings.end_at_lost_life);
  EXPECT_TRUE(settings.all_actions);
  EXPECT_EQ(settings.step_limit(), 3600);
}

TEST(AtariSettingsTest, EvaluationPlaysWholeGamesAndChangesNothingElse) {
  AtariSettings training = Resolve({{"preset", "sb3"}});
  const AtariSettings evaluation = Resolve({{"preset", "sb3"}}, EnvironmentUse::kEvaluation);
  EXPECT_FALSE(evaluation.end_at_lost_life);
  training.end_at_lost_life = false;
  EXPECT_EQ(Describe(training), Describe(evaluation));
}

TEST(AtariSettingsTest, ARangeOfNoopsThatIsEmptyIsRefused) {
  EXPECT_THROW(Resolve({{"noops_min", "5"}}), Error);
  EXPECT_THROW(Resolve({{"preset", "atari"}}), Error);
}

TEST(AtariSettingsTest, ARequestTravelsAsItIs) {
  AtariRequest request{.game = "ALE/Pong-v5",
                       .preset = "accelerated",
                       .rom_folder = "roms",
                       .settings = Resolve({{"preset", "accelerated"}, {"frame_skip", "3"}})};
  const AtariRequest read = AtariRequestFromJson(ToJson(request));
  EXPECT_EQ(ToJson(read), ToJson(request));
  EXPECT_EQ(read.settings.fire, FireOnReset::kBeforeNoops);
  EXPECT_EQ(read.settings.frame_skip, 3);
  EXPECT_THROW(AtariRequestFromJson("{}"), Error);
}

TEST(AtariEnvironmentsTest, ServesGamesByTheirGymnasiumNames) {
  const AtariEnvironments family;
  EXPECT_TRUE(family.Serves("ALE/Pong-v5"));
  for (const char* name :
       {"ALE/-v5", "ALE/Pong-v4", "Pong-v5", "CartPole-v1", "", "host:ALE/Pong-v5"}) {
    EXPECT_FALSE(family.Serves(name)) << name;
  }
  for (const std::string& name : family.examples()) EXPECT_TRUE(family.Serves(name)) << name;
}

TEST(AtariEnvironmentsTest, AMissingHostIsAnErrorThatSaysHowToGetIt) {
  const AtariEnvironments family("nowhere/menger-atari-host");
  try {
    family.Open("ALE/Pong-v5", EnvironmentUse::kTraining);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), testing::HasSubstr("make atari"));
  }
}

}  // namespace
}  // namespace menger
