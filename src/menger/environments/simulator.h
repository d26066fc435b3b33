#pragma once

#include <concepts>

#include "menger/base/random.h"
#include "menger/environments/environment.h"

namespace menger {

// What one step of a simulator gives besides its observation. Time limits are the group's business.
struct StepResult {
  double reward = 0;
  bool terminated = false;
  // Beside `terminated`: it ends an episode for learning only (a life was lost), so statistics and
  // the time limit go on. Reset is called all the same.
  bool goes_on = false;
};

// One native environment, as a plain struct:
//
//   static EnvironmentSpec Spec();
//   void Reset(Random& random, float* observation);  // Draws the start state, writes all numbers.
//   StepResult Step(Action action, Random& random, float* observation);
//
// Action is int (discrete) or const float* (continuous). The spec has one observation leaf and one
// action leaf. A simulator need not check actions, count steps or reset itself, and may throw. If
// it is trivially copyable its bytes are its state; any other one also has
// Save(ArchiveWriter&) const and Load(ArchiveReader&). It may further say:
//
//   static constexpr int kObservationSize;   // Numbers, where the compiler should know them ...
//   static constexpr int kActions;           // ... and how many discrete actions,
//   static constexpr int kActionSize;        // ... or floats of a continuous one.
//   using Number = double;                   // Of observations, instead of float.
//   using Config = ...;                      // What Spec(config) and the constructor are given;
//                                            // copied into each group.
//   Image Render();                          // What it looks like.

// The numbers of a simulator's observations: its Number, or float.
template <typename S>
struct NumberOf {
  using Type = float;
};
template <typename S>
requires requires { typename S::Number; }
struct NumberOf<S> {
  using Type = typename S::Number;
};

// A simulator's Config; NoConfig where it needs none.
struct NoConfig {};
template <typename S>
struct ConfigOf {
  using Type = NoConfig;
};
template <typename S>
requires requires { typename S::Config; }
struct ConfigOf<S> {
  using Type = typename S::Config;
};

// Spec(config), or Spec() where the simulator has no Config.
template <typename S>
EnvironmentSpec SpecOf(const typename ConfigOf<S>::Type& config) {
  if constexpr (requires { S::Spec(config); }) {
    return S::Spec(config);
  } else {
    return S::Spec();
  }
}

// What is said above, for actions of one kind.
template <typename S, typename Action>
concept SimulatorWith = requires(S simulator, Action action, Random& random,
                                 typename NumberOf<S>::Type* observation) {
  simulator.Reset(random, observation);
  { simulator.Step(action, random, observation) } -> std::same_as<StepResult>;
};
// With discrete actions, and with any.
template <typename S>
concept DiscreteSimulator = SimulatorWith<S, int>;
template <typename S>
concept Simulator = DiscreteSimulator<S> || SimulatorWith<S, const float*>;

}  // namespace menger
