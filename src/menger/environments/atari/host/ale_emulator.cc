// This file alone is compiled without access control: the emulator's own saved states leave out
// what only its next frames show (half-drawn screens, masks of sprites, the action that sticks),
// and the switch that leaves out drawing is private.
#include "menger/environments/atari/host/ale_emulator.h"

#include <ale/ale_interface.hpp>
#include <ale/common/ColourPalette.hpp>
#include <ale/common/Log.hpp>
#include <ale/emucore/TIA.hxx>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

using ale::stella::TIA;

// What ALEState does not hold. Pointers become distances from the table or buffer they point into.
struct RestOfState {
  std::int32_t player_a_action = 0;
  std::int32_t player_b_action = 0;
  float paddle_a_strength = 0;
  float paddle_b_strength = 0;
  std::int32_t frame_pointer = 0;
  std::int32_t ball_mask = 0;
  std::int32_t missile_masks[2] = {};
  std::int32_t player_masks[2] = {};
  std::int32_t playfield_mask = 0;
  std::int32_t frame_counter = 0;
  std::uint8_t audio[6] = {};
  std::uint8_t partial_frame = 0;
  std::uint8_t greyed_frame = 0;
  std::uint8_t data_bus = 0;
  std::uint8_t game_over = 0;
  std::uint8_t previous_is_kept = 0;
  std::uint8_t unused = 0;
};

template <typename T>
std::int32_t Distance(const T* from, const T* table) {
  return static_cast<std::int32_t>(from - table);
}

template <typename T>
const T* At(const T* table, std::int32_t distance, std::size_t table_bytes) {
  if (distance < 0 || distance * sizeof(T) > table_bytes) {
    throw DataLoss("the emulator's saved state points {} items into a table of {} bytes", distance,
                   table_bytes);
  }
  return table + distance;
}

// A sprite's mask lies in the table of its kind, or in the one of sprites that cannot be seen; then
// its distance is counted below 0.
std::int32_t MaskDistance(const std::uint8_t* mask, const std::uint8_t* table) {
  const std::uint8_t* const hidden = TIA::ourDisabledMaskTable;
  const bool is_hidden = mask >= hidden && mask < hidden + sizeof(TIA::ourDisabledMaskTable);
  return is_hidden ? -1 - Distance(mask, hidden) : Distance(mask, table);
}

const std::uint8_t* MaskAt(const std::uint8_t* table, std::int32_t distance,
                           std::size_t table_bytes) {
  if (distance >= 0) return At(table, distance, table_bytes);
  return At<std::uint8_t>(TIA::ourDisabledMaskTable, -1 - distance,
                          sizeof(TIA::ourDisabledMaskTable));
}

class AleEmulator final : public AtariEmulator {
 public:
  AleEmulator(const std::string& cartridge, int sticky_percent) {
    ale_.setFloat("repeat_action_probability", static_cast<float>(sticky_percent) / 100.0F);
    ale_.setInt("random_seed", 0);  // Seed says another before it matters.
    try {
      ale_.loadROM(cartridge);
    } catch (const std::exception& error) {
      throw FailedPrecondition("'{}' is no cartridge that the emulator knows: {}", cartridge,
                               error.what());
    }
    tia_ = dynamic_cast<TIA*>(&ale_.theOSystem->console().mediaSource());
    if (tia_ == nullptr) throw Internal("the emulator of '{}' draws with another chip", cartridge);
    kept_.resize(ScreenBytes());
  }

  void Seed(std::uint32_t seed) override { ale_.environment->getEnvironmentRNG().seed(seed); }

  void Reset() override {
    ale_.reset_game();
    game_over_ = false;
    previous_is_kept_ = false;
  }

  int Act(int action) override {
    if (game_over_) return 0;
    // The chip draws into two buffers in turn, so that the other one holds the screen before; but
    // where a frame was cut short it goes on with the same one.
    previous_is_kept_ = tia_->myPartialFrameFlag;
    if (previous_is_kept_) std::memcpy(kept_.data(), screen(), kept_.size());
    const int points = ale_.act(static_cast<ale::Action>(action));
    game_over_ = ale_.game_over();
    return points;
  }

  bool game_over() const override { return game_over_; }
  int lives() const override { return ale_.romSettings->lives(); }
  const std::uint8_t* screen() const override { return tia_->currentFrameBuffer(); }
  const std::uint8_t* previous_screen() const override {
    return previous_is_kept_ ? kept_.data() : tia_->previousFrameBuffer();
  }

  Image Picture() const override {
    Image image{.width = static_cast<int>(ale_.getScreen().width()),
                .height = static_cast<int>(ale_.getScreen().height()),
                .rgb = {}};
    ale_.getScreenRGB(image.rgb);
    return image;
  }

  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

  ale::ALEInterface& interface() { return ale_; }

 private:
  static constexpr std::size_t kBufferBytes = 160 * 300;  // Of each of TIA's two screens.

  std::size_t ScreenBytes() const { return std::size_t{160} * tia_->height(); }

  // Logs nothing below errors, from the first line on.
  struct Quiet {
    Quiet() { ale::Logger::setMode(ale::Logger::Error); }
  };

  Quiet quiet_;
  mutable ale::ALEInterface ale_;
  TIA* tia_ = nullptr;
  bool game_over_ = false;
  bool previous_is_kept_ = false;
  std::vector<std::uint8_t> kept_;
};

void AleEmulator::Save(ArchiveWriter& archive) const {
  archive.Write("machine", ale_.environment->cloneState(/*include_rng=*/true).serialize());
  const ale::StellaEnvironment& game = *ale_.environment;
  const RestOfState rest = {
      .player_a_action = game.m_player_a_action,
      .player_b_action = game.m_player_b_action,
      .paddle_a_strength = game.m_paddle_a_strength,
      .paddle_b_strength = game.m_paddle_b_strength,
      .frame_pointer = Distance<std::uint8_t>(tia_->myFramePointer, tia_->myCurrentFrameBuffer),
      .ball_mask = MaskDistance(tia_->myCurrentBLMask, &TIA::ourBallMaskTable[0][0][0]),
      .missile_masks = {MaskDistance(tia_->myCurrentM0Mask, &TIA::ourMissleMaskTable[0][0][0][0]),
                        MaskDistance(tia_->myCurrentM1Mask, &TIA::ourMissleMaskTable[0][0][0][0])},
      .player_masks = {MaskDistance(tia_->myCurrentP0Mask, &TIA::ourPlayerMaskTable[0][0][0][0]),
                       MaskDistance(tia_->myCurrentP1Mask, &TIA::ourPlayerMaskTable[0][0][0][0])},
      .playfield_mask = Distance(tia_->myCurrentPFMask, &TIA::ourPlayfieldTable[0][0]),
      .frame_counter = tia_->myFrameCounter,
      .audio = {tia_->myAUDV0, tia_->myAUDV1, tia_->myAUDC0, tia_->myAUDC1, tia_->myAUDF0,
                tia_->myAUDF1},
      .partial_frame = tia_->myPartialFrameFlag,
      .greyed_frame = tia_->myFrameGreyed,
      .data_bus = ale_.theOSystem->console().system().myDataBusState,
      .game_over = game_over_,
      .previous_is_kept = previous_is_kept_,
  };
  archive.Write("rest", rest);
  archive.Write("screen", std::span<const std::uint8_t>(tia_->myCurrentFrameBuffer, kBufferBytes));
  archive.Write("other_screen",
                std::span<const std::uint8_t>(tia_->myPreviousFrameBuffer, kBufferBytes));
  archive.Write("kept_screen", kept_);
}

void AleEmulator::Load(ArchiveReader& archive) {
  std::string machine;
  archive.Read("machine", machine);
  ale_.environment->restoreState(ale::ALEState(machine));
  const auto rest = archive.Read<RestOfState>("rest");
  ale::StellaEnvironment& game = *ale_.environment;
  game.m_player_a_action = static_cast<ale::Action>(rest.player_a_action);
  game.m_player_b_action = static_cast<ale::Action>(rest.player_b_action);
  game.m_paddle_a_strength = rest.paddle_a_strength;
  game.m_paddle_b_strength = rest.paddle_b_strength;
  tia_->myFramePointer = const_cast<std::uint8_t*>(
      At<std::uint8_t>(tia_->myCurrentFrameBuffer, rest.frame_pointer, kBufferBytes));
  tia_->myCurrentBLMask =
      MaskAt(&TIA::ourBallMaskTable[0][0][0], rest.ball_mask, sizeof(TIA::ourBallMaskTable));
  const auto missile = [&](int i) {
    return MaskAt(&TIA::ourMissleMaskTable[0][0][0][0], rest.missile_masks[i],
                  sizeof(TIA::ourMissleMaskTable));
  };
  const auto player = [&](int i) {
    return MaskAt(&TIA::ourPlayerMaskTable[0][0][0][0], rest.player_masks[i],
                  sizeof(TIA::ourPlayerMaskTable));
  };
  tia_->myCurrentM0Mask = missile(0);
  tia_->myCurrentM1Mask = missile(1);
  tia_->myCurrentP0Mask = player(0);
  tia_->myCurrentP1Mask = player(1);
  tia_->myCurrentPFMask =
      At(&TIA::ourPlayfieldTable[0][0], rest.playfield_mask, sizeof(TIA::ourPlayfieldTable));
  tia_->myFrameCounter = rest.frame_counter;
  std::uint8_t* const audio[] = {&tia_->myAUDV0, &tia_->myAUDV1, &tia_->myAUDC0,
                                 &tia_->myAUDC1, &tia_->myAUDF0, &tia_->myAUDF1};
  for (int i = 0; i < 6; ++i) *audio[i] = rest.audio[i];
  tia_->myPartialFrameFlag = rest.partial_frame != 0;
  tia_->myFrameGreyed = rest.greyed_frame != 0;
  ale_.theOSystem->console().system().myDataBusState = rest.data_bus;
  game_over_ = rest.game_over != 0;
  previous_is_kept_ = rest.previous_is_kept != 0;
  archive.Read("screen", std::span(tia_->myCurrentFrameBuffer, kBufferBytes));
  archive.Read("other_screen", std::span(tia_->myPreviousFrameBuffer, kBufferBytes));
  archive.Read("kept_screen", std::span(kept_));
}

// "tic_tac_toe_3d" is TicTacToe3D: every letter that follows none begins a word.
std::string GameOf(const std::string& cartridge) {
  std::string name;
  bool inside = false;
  for (const char c : cartridge) {
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (c != '_') name += letter && !inside ? static_cast<char>(std::toupper(c)) : c;
    inside = letter;
  }
  return "ALE/" + name + "-v5";
}

std::vector<std::pair<std::string, std::string>> CartridgesByGame(const std::string& rom_folder) {
  std::error_code error;
  std::vector<std::pair<std::string, std::string>> found;
  // For two players only: there is nobody to play against.
  constexpr std::array<std::string_view, 4> kForTwo = {"combat", "joust", "maze_craze", "warlords"};
  for (const auto& entry : std::filesystem::directory_iterator(rom_folder, error)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".bin") continue;
    if (std::find(kForTwo.begin(), kForTwo.end(), stem) != kForTwo.end()) continue;
    found.emplace_back(GameOf(stem), entry.path().string());
  }
  if (found.empty()) {
    throw NotFound("there are no cartridges (NAME.bin) in '{}'", rom_folder);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> AleGames(const std::string& rom_folder) {
  std::vector<std::string> names;
  for (const auto& [name, path] : CartridgesByGame(rom_folder)) names.push_back(name);
  return names;
}

std::string AleCartridge(const std::string& rom_folder, const std::string& game) {
  std::vector<std::string> names;
  for (const auto& [name, path] : CartridgesByGame(rom_folder)) {
    if (name == game) return path;
    names.push_back(name);
  }
  throw NotFound("there is no Atari game '{}'{}", game, DidYouMean(game, names));
}

AtariGameFacts AleFacts(const std::string& game, const std::string& cartridge) {
  AleEmulator emulator(cartridge, /*sticky_percent=*/0);
  ale::ALEInterface& ale_interface = emulator.interface();
  AtariGameFacts facts{.name = game};
  for (const ale::Action action : ale_interface.getMinimalActionSet())
    facts.minimal_actions.push_back(action);
  for (const ale::Action action : ale_interface.getLegalActionSet())
    facts.all_actions.push_back(action);
  facts.screen.height = static_cast<int>(ale_interface.getScreen().height());
  facts.screen.width = static_cast<int>(ale_interface.getScreen().width());
  for (int index = 0; index < 255; ++index) {  // The emulator looks at the entry after it.
    auto pixel = static_cast<std::uint8_t>(index);
    ale_interface.theOSystem->colourPalette().applyPaletteGrayscale(&facts.screen.grey[index],
                                                                    &pixel, 1);
  }
  return facts;
}

std::unique_ptr<AtariEmulator> MakeAleEmulator(const std::string& cartridge, int sticky_percent) {
  return std::make_unique<AleEmulator>(cartridge, sticky_percent);
}

}  // namespace menger
