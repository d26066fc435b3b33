#include "menger/environments/atari/atari_game.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"
#include "menger/environments/environment_testing.h"

namespace menger {
namespace {

using testing::ElementsAre;

constexpr int kHeight = 32;
constexpr int kWidth = 32;

// What happens to the machines of a test.
struct Script {
  int frames_of_game = 1000;       // A game is over after so many frames.
  std::vector<int> lives_lost_at;  // Frames of the game.
  std::string log;                 // "R" for a reset, the digit of each action.
  std::vector<std::uint32_t> seeds;
};

// A game whose frames number n: each is worth a point, its screen is the frame's number doubled.
class ScriptedEmulator final : public AtariEmulator {
 public:
  explicit ScriptedEmulator(Script& script)
      : script_(script), screen_(kHeight * kWidth), previous_(kHeight * kWidth) {}

  void Seed(std::uint32_t seed) override { script_.seeds.push_back(seed); }
  void Reset() override {
    script_.log += 'R';
    frame_ = 0;
    Draw();
  }
  int Act(int action) override {
    if (game_over()) return 0;
    script_.log += std::to_string(action);
    ++frame_;
    Draw();
    return 1;
  }
  bool game_over() const override { return frame_ >= script_.frames_of_game; }
  int lives() const override {
    int lives = 3;
    for (const int frame : script_.lives_lost_at) lives -= frame_ >= frame ? 1 : 0;
    return lives;
  }
  const std::uint8_t* screen() const override { return screen_.data(); }
  const std::uint8_t* previous_screen() const override { return previous_.data(); }
  Image Picture() const override { return {}; }
  void Save(ArchiveWriter& archive) const override { archive.Write("frame", frame_); }
  void Load(ArchiveReader& archive) override { archive.Read("frame", frame_); }

 private:
  void Draw() {
    previous_ = screen_;
    std::fill(screen_.begin(), screen_.end(), static_cast<std::uint8_t>(2 * frame_));
  }

  Script& script_;
  int frame_ = 0;
  std::vector<std::uint8_t> screen_, previous_;
};

struct GameUnderTest {
  explicit GameUnderTest(const AtariSettings& settings, std::vector<int> actions = {0, 1, 3, 4})
      : config{.facts = {.name = "ALE/Scripted-v5",
                         .minimal_actions = std::move(actions),
                         .all_actions = {},
                         .screen = {.height = kHeight, .width = kWidth, .grey = {}}},
               .settings = settings,
               .preset = "sb3",
               .make_emulator = [this] { return std::make_unique<ScriptedEmulator>(script); }} {
    for (int i = 0; i < 256; ++i) {
      config.facts.screen.grey[i] = static_cast<std::uint8_t>(i / 2);
    }
    config.settings.height = 16;
    config.settings.width = 16;
    game.emplace(config);
  }

  // What the reset did, as the emulator's log.
  std::string Reset() {
    script.log.clear();
    game->Reset(random, frame.data());
    return script.log;
  }
  StepResult Step(int action) {
    script.log.clear();
    return game->Step(action, random, frame.data());
  }

  Script script;
  AtariGameConfig config;
  std::optional<AtariGame> game;
  Random random = Random::FromSeed(5);
  std::vector<std::uint8_t> frame = std::vector<std::uint8_t>(256);
};

TEST(AtariGameTest, AStepSkipsFramesOnceAndSumsTheirPoints) {
  GameUnderTest test({});
  EXPECT_EQ(test.Reset(), "R");
  EXPECT_EQ(test.Step(2).reward, 4);
  EXPECT_EQ(test.script.log, "3333");
  EXPECT_THAT(test.frame, testing::Each(4));  // The brighter of frames 3 and 4.
}

TEST(AtariGameTest, TheLastFrameAloneIsShownWhereAskedFor) {
  for (const bool brighter : {true, false}) {
    GameUnderTest test({.frame_skip = 3, .brighter_of_two = brighter});
    test.config.facts.screen.grey[2 * 2] = 200;  // The screen of frame 2 is the brightest.
    test.game.emplace(test.config);
    test.Reset();
    test.Step(0);
    EXPECT_THAT(test.frame, testing::Each(brighter ? 200 : 3));
  }
}

TEST(AtariGameTest, AGameThatEndsWithinAStepShowsItsLastScreen) {
  GameUnderTest test({});
  test.script.frames_of_game = 5;
  test.Reset();
  EXPECT_FALSE(test.Step(0).terminated);
  const StepResult end = test.Step(0);
  EXPECT_TRUE(end.terminated);
  EXPECT_FALSE(end.goes_on);
  EXPECT_EQ(end.reward, 1);
  EXPECT_EQ(test.script.log, "0");
  EXPECT_THAT(test.frame, testing::Each(5));  // Not 4, the brightest before.
}

TEST(AtariGameTest, NoopsAreFramesAndUniformWithinTheirRange) {
  GameUnderTest test({.noops_min = 1, .noops_max = 3});
  std::vector<int> seen(4, 0);
  for (int i = 0; i < 300; ++i) ++seen[test.Reset().size() - 1];
  EXPECT_EQ(seen[0], 0);
  for (int noops = 1; noops <= 3; ++noops) EXPECT_GT(seen[noops], 70) << noops;
}

TEST(AtariGameTest, Sb3PressesFireAndTheThirdActionForAStepEachAfterTheNoops) {
  GameUnderTest test({.noops_min = 2, .noops_max = 2, .fire = FireOnReset::kAfterNoops});
  EXPECT_EQ(test.Reset(),
            "R00"
            "1111"
            "3333");
}

TEST(AtariGameTest, AcceleratedPressesFireForAFrameBeforeTheNoops) {
  GameUnderTest test({.noops_min = 2, .noops_max = 2, .fire = FireOnReset::kBeforeNoops});
  EXPECT_EQ(test.Reset(),
            "R01"
            "00");
}

TEST(AtariGameTest, FireIsNotPressedWhereTheGameHasNone) {
  GameUnderTest test({.fire = FireOnReset::kAfterNoops}, {0, 3, 4});
  EXPECT_EQ(test.Reset(), "R");
}

TEST(AtariGameTest, ALostLifeEndsAnEpisodeAndTheGameGoesOn) {
  GameUnderTest test({.fire = FireOnReset::kAfterNoops, .end_at_lost_life = true});
  test.script.lives_lost_at = {12};  // The 8 frames of the reset, and a step.
  EXPECT_EQ(test.Reset(), "R11113333");
  const StepResult lost = test.Step(0);
  EXPECT_TRUE(lost.terminated);
  EXPECT_TRUE(lost.goes_on);
  EXPECT_EQ(test.Reset(), "000011113333");
  EXPECT_FALSE(test.Step(0).terminated);
  EXPECT_EQ(test.Reset().front(), 'R');  // Asked for without a lost life: a new game.
}

TEST(AtariGameTest, AGameOverIsAnEndAlsoWhereItCostsALife) {
  GameUnderTest test({.end_at_lost_life = true});
  test.script.lives_lost_at = {4};
  test.script.frames_of_game = 4;
  test.Reset();
  const StepResult end = test.Step(0);
  EXPECT_TRUE(end.terminated);
  EXPECT_FALSE(end.goes_on);
}

TEST(AtariGameTest, AGameThatIsOverWhileItGoesOnEndsAtTheNextStep) {
  GameUnderTest test({.end_at_lost_life = true});
  test.script.lives_lost_at = {4};
  test.script.frames_of_game = 6;
  test.Reset();
  EXPECT_TRUE(test.Step(0).goes_on);
  EXPECT_EQ(test.Reset(), "00");
  const StepResult end = test.Step(0);
  EXPECT_TRUE(end.terminated);
  EXPECT_FALSE(end.goes_on);
  EXPECT_EQ(end.reward, 0);
}

TEST(AtariGameTest, LivesAreNoEndWhereNotAskedFor) {
  GameUnderTest test({});
  test.script.lives_lost_at = {2};
  test.Reset();
  EXPECT_FALSE(test.Step(0).terminated);
}

TEST(AtariGameTest, AGameAtItsLimitIsFollowedByANewOneEvenIfALifeIsLostThere) {
  GameUnderTest test({.end_at_lost_life = true, .frame_limit = 8});
  EXPECT_EQ(AtariGame::Spec(test.config).max_episode_steps, 2);
  test.script.lives_lost_at = {8};
  test.Reset();
  test.Step(0);
  EXPECT_TRUE(test.Step(0).terminated);
  EXPECT_EQ(test.Reset(), "R");
}

TEST(AtariGameTest, EachGameIsSeededFromTheEnvironmentsRandomNumbers) {
  GameUnderTest one({}), same({});
  for (int i = 0; i < 3; ++i) {
    one.Reset();
    same.Reset();
  }
  EXPECT_EQ(one.script.seeds, same.script.seeds);
  EXPECT_NE(one.script.seeds[0], one.script.seeds[1]);
}

TEST(AtariGameTest, ItsObservationsAreSingleFramesAndItsDescriptionNamesTheSettings) {
  GameUnderTest test({.sticky_percent = 25});
  const EnvironmentSpec spec = AtariGame::Spec(test.config);
  EXPECT_THAT(spec.observation[0].shape, ElementsAre(1, 16, 16));
  EXPECT_EQ(spec.observation[0].dtype, DataType::kUint8);
  EXPECT_THAT(spec.action[0].counts, ElementsAre(4));
  EXPECT_THAT(spec.description, testing::HasSubstr("preset sb3"));
  EXPECT_THAT(spec.description, testing::HasSubstr("sticky actions 25%"));
}

// The statistics of a whole game survive its lost lives: one episode_end, at the end.
TEST(AtariGameTest, AGroupEndsEpisodesForLearningAtLivesAndForStatisticsAtGames) {
  GameUnderTest test({.end_at_lost_life = true});
  test.script.lives_lost_at = {4, 12};
  test.script.frames_of_game = 20;
  GroupUnderTest group(EntryOf<AtariGame>(test.config), /*columns=*/1, /*horizon=*/4);
  group.group->Reset(group.slab, 0);
  for (int row = 0; row < 4; ++row) {
    *group.slab.action<std::int64_t>(0, row, 0) = 0;
    group.group->Step(group.slab, row);
  }
  // Frame 4 (a life), 8 (going on), 12 (a life), 16 (going on), 20 (over); 4 of the next game.
  std::vector<int> terminated, ends;
  for (int row = 0; row < 4; ++row) {
    terminated.push_back(group.slab.terminated(row)[0]);
    ends.push_back(group.slab.episode_end(row)[0]);
  }
  EXPECT_THAT(terminated, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(ends, ElementsAre(0, 0, 1, 0));
}

}  // namespace
}  // namespace menger
