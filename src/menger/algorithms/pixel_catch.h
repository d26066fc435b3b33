#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// Catch (Osband et al. 2020, bsuite), in pixels: the smallest task that needs convolutions to be
// learned through. A ball falls from a random column, a cell a step; a paddle at the bottom moves
// one cell left, not at all, or right. At the end 1 if it is under the ball, else -1. Any play that
// follows the ball gets 1; random play about -.7.
struct PixelCatch {
  static constexpr int kCells = 7;  // A side.
  static constexpr int kCell = 4;   // Pixels a side.
  static constexpr int kSide = kCells * kCell;
  static constexpr int kObservationSize = kSide * kSide;
  static constexpr int kActions = 3;
  using Number = std::uint8_t;

  static EnvironmentSpec Spec() {
    return {.name = "PixelCatch",
            .observation = menger::Spec(
                {LeafSpec::Box("screen", DataType::kUint8, {1, kSide, kSide}, {0}, {255})}),
            .action = menger::Spec({LeafSpec::Discrete("action", kActions)}),
            .max_episode_steps = 0,
            .reward_threshold = std::numeric_limits<double>::quiet_NaN(),
            .description = "a ball falls, a paddle catches it"};
  }

  void Reset(Random& random, Number* screen) {
    ball_row = 0;
    ball_column = static_cast<int>(random.Integers(0, kCells));
    paddle = kCells / 2;
    Draw(screen);
  }

  StepResult Step(int action, Random&, Number* screen) {
    paddle = std::clamp(paddle + action - 1, 0, kCells - 1);
    ++ball_row;
    Draw(screen);
    if (ball_row < kCells - 1) return {};
    return {.reward = paddle == ball_column ? 1.0 : -1.0, .terminated = true};
  }

  void Draw(Number* screen) const {
    std::fill_n(screen, kObservationSize, Number{0});
    Fill(screen, ball_row, ball_column, 255);
    Fill(screen, kCells - 1, paddle, 128);
  }

  static void Fill(Number* screen, int row, int column, Number shade) {
    for (int y = 0; y < kCell; ++y) {
      std::fill_n(screen + (row * kCell + y) * kSide + column * kCell, kCell, shade);
    }
  }

  int ball_row = 0;
  int ball_column = 0;
  int paddle = 0;
};

}  // namespace menger
