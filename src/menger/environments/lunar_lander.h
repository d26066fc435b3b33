#pragma once

#include <array>
#include <memory>
#include <vector>

#include "menger/base/archive.h"
#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// What the engines do in one step.
struct LanderThrust {
  double main = 0;  // 0, or 0.5 .. 1 of full power.
  double side = 0;  // 0, or +-(0.5 .. 1); positive pushes the lander to the left.
};

// LunarLander-v3, without its action space: land a craft between two flags, with little fuel.
//
// Klimov's game as Gymnasium 1.4 has it (wind off), oddities included, on Box2D 2.4.1 where
// Gymnasium uses 2.3: terrain and random draws are bit-identical; in flight observations agree to
// 1e-3, except that in the two frames in which the legs swing onto their joint limits, which Box2D
// 2.4 solves anew, the angular speed differs by up to 8e-3; after the first contact, which is
// chaotic, episodes agree in distribution.
//
// Observation: x, y from the pad, their speeds, angle, angular speed (all scaled), and whether the
// left and right leg touch the ground. Every episode has a new world, so that it depends on its
// start and actions alone.
class LunarLander {
 public:
  static constexpr int kObservationSize = 8;
  static constexpr int kMaxEpisodeSteps = 1000;

  LunarLander();
  ~LunarLander();
  LunarLander(LunarLander&&) noexcept;
  LunarLander& operator=(LunarLander&&) noexcept;

  void Reset(Random& random, float* observation);

  // Of the terrain's corners, which stand 2 apart, in metres; x runs from 0 to 20.
  const std::array<float, 11>& ground_heights() const;

  // Throws FailedPrecondition after kMaxEpisodeSteps steps since the reset: the log is bounded.
  StepResult Fly(LanderThrust thrust, Random& random, float* observation);

  // Box2D cannot save a world. So the stream at the reset and what was done since are saved, and
  // Load repeats the episode: up to kMaxEpisodeSteps steps of work.
  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 protected:
  static EnvironmentSpec SpecWith(const char* name, LeafSpec action, const char* description);

 private:
  class World;

  StepResult Advance(LanderThrust thrust, Random& random, float* observation);

  std::unique_ptr<World> world_;
  RandomState random_at_reset_;
  std::vector<LanderThrust> log_;  // Since the reset.
};

// LunarLander-v3.
struct DiscreteLunarLander : LunarLander {
  static constexpr int kActions = 4;  // Nothing, left engine, main engine, right engine.
  static EnvironmentSpec Spec();
  StepResult Step(int action, Random& random, float* observation);
};

// LunarLanderContinuous-v3: main throttle and side throttle, each -1 .. 1 and clipped to that.
struct ContinuousLunarLander : LunarLander {
  static constexpr int kActionSize = 2;
  static EnvironmentSpec Spec();
  StepResult Step(const float* action, Random& random, float* observation);
};

}  // namespace menger
