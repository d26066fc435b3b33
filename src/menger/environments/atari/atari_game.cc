#include "menger/environments/atari/atari_game.h"

#include <algorithm>
#include <limits>

#include "menger/base/error.h"

namespace menger {
namespace {

const std::vector<int>& ActionsOf(const AtariGameConfig& config) {
  return config.settings.all_actions ? config.facts.all_actions : config.facts.minimal_actions;
}

}  // namespace

EnvironmentSpec AtariGame::Spec(const AtariGameConfig& config) {
  const AtariSettings& settings = config.settings;
  return {.name = config.facts.name,
          .observation = menger::Spec({LeafSpec::Box(
              "observation", DataType::kUint8, {1, settings.height, settings.width}, {0}, {255})}),
          .action = menger::Spec(
              {LeafSpec::Discrete("action", static_cast<std::int64_t>(ActionsOf(config).size()))}),
          .max_episode_steps = settings.step_limit(),
          .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
          .description = fmt::format("Atari, preset {}: {}", config.preset, Describe(settings))};
}

AtariGame::AtariGame(const AtariGameConfig& config)
    : settings_(config.settings),
      actions_(ActionsOf(config)),
      has_fire_(std::find(actions_.begin(), actions_.end(), kAtariFire) != actions_.end()),
      has_third_action_(actions_.size() >= 3),
      emulator_(config.make_emulator()),
      filter_(config.facts.screen, settings_.height, settings_.width) {}

void AtariGame::Reset(Random& random, std::uint8_t* frame) {
  if (life_is_lost_ && !emulator_->game_over()) {
    GoOn();
  } else {
    StartGame(random);
  }
  life_is_lost_ = false;
  lives_ = emulator_->lives();
  Write(frame);
}

StepResult AtariGame::Step(int action, Random& /*random*/, std::uint8_t* frame) {
  const int points = Hold(actions_[action]);
  Write(frame);
  const bool over = emulator_->game_over();
  // A game that reaches its limit is truncated whatever happens: the next one is a new one.
  const bool at_limit = ++steps_ >= settings_.step_limit();
  const int lives = emulator_->lives();
  const bool lost = settings_.end_at_lost_life && !over && lives < lives_;
  lives_ = lives;
  life_is_lost_ = lost && !at_limit;
  return {.reward = static_cast<double>(points), .terminated = over || lost, .goes_on = lost};
}

void AtariGame::StartGame(Random& random) {
  emulator_->Seed(static_cast<std::uint32_t>(random.Integers(0, std::int64_t{1} << 31)));
  emulator_->Reset();
  steps_ = 0;
  screens_ = 1;
  PressFireFirst();
  const std::int64_t noops = random.Integers(settings_.noops_min, settings_.noops_max + 1);
  for (std::int64_t i = 0; i < noops; ++i) {
    ActOnce(kAtariNoop);
    if (emulator_->game_over()) emulator_->Reset();
  }
  PressFireLast();
}

void AtariGame::GoOn() {
  if (settings_.fire == FireOnReset::kBeforeNoops) {
    PressFireFirst();
    return;
  }
  Hold(kAtariNoop);
  // A game that ends here is left as it is: the next step ends the episode too.
  for (const int action : LastPresses()) {
    if (!emulator_->game_over()) Hold(action);
  }
}

void AtariGame::PressFireFirst() {
  if (settings_.fire != FireOnReset::kBeforeNoops) return;
  ActOnce(kAtariNoop);
  if (has_fire_) ActOnce(kAtariFire);
}

std::vector<int> AtariGame::LastPresses() const {
  if (settings_.fire != FireOnReset::kAfterNoops || !has_fire_ || !has_third_action_) return {};
  return {kAtariFire, actions_[2]};
}

void AtariGame::PressFireLast() {
  for (const int action : LastPresses()) {
    Hold(action);
    if (emulator_->game_over()) {
      emulator_->Reset();
      screens_ = 1;
    }
  }
}

int AtariGame::Hold(int action) {
  int points = 0;
  int frames = 0;
  do {
    points += emulator_->Act(action);
    ++frames;
  } while (frames < settings_.frame_skip && !emulator_->game_over());
  screens_ = settings_.brighter_of_two ? std::min(frames, 2) : 1;
  return points;
}

void AtariGame::ActOnce(int action) {
  emulator_->Act(action);
  screens_ = 1;
}

void AtariGame::Write(std::uint8_t* frame) {
  filter_.Apply(emulator_->screen(), screens_ == 2 ? emulator_->previous_screen() : nullptr, frame);
}

void AtariGame::Save(ArchiveWriter& archive) const {
  archive.Write("screens", screens_);
  archive.Write("lives", lives_);
  archive.Write("steps", steps_);
  archive.Write("life_is_lost", life_is_lost_);
  ArchiveWriter scope = archive.Scope("emulator");
  emulator_->Save(scope);
}

void AtariGame::Load(ArchiveReader& archive) {
  archive.Read("screens", screens_);
  archive.Read("lives", lives_);
  archive.Read("steps", steps_);
  archive.Read("life_is_lost", life_is_lost_);
  ArchiveReader scope = archive.Scope("emulator");
  emulator_->Load(scope);
}

}  // namespace menger
