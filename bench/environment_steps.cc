// What does the hot interface cost? Steps per second of each native environment on one core through
// EnvironmentGroup, against a plain loop over the same simulators that steps, cuts at the time
// limit and resets. `environments.py` runs it beside Gymnasium and EnvPool.
//
//   bench_environment_steps [--seconds 1] [--columns 1 64] [--json] [ENVIRONMENT...]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/random.h"
#include "menger/base/thread.h"
#include "menger/environments/acrobot.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/lunar_lander.h"
#include "menger/environments/mountain_car.h"
#include "menger/environments/mountain_car_continuous.h"
#include "menger/environments/pendulum.h"
#include "menger/environments/simulator_group.h"
#include "menger/tensor/slab.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kHorizon = 128;
constexpr int kRounds = 7;  // Both sides take turns; the median round counts.
constexpr std::uint64_t kSeed = 1;

struct Settings {
  double seconds = 1;
  std::vector<int> columns = {1, 64};
  bool json = false;
  std::vector<std::string> environments;  // Empty: all.
};

struct Measured {
  double group = 0;  // Steps per second, median of the rounds.
  double plain = 0;
  double ratio = 0;  // Time through the group / time of the plain loop, median of the rounds.
};

template <Simulator S>
using ActionOf = std::conditional_t<DiscreteSimulator<S>, std::int64_t, float>;

template <Simulator S>
constexpr int kActionItems = [] {
  if constexpr (DiscreteSimulator<S>) {
    return 1;
  } else {
    return S::kActionSize;
  }
}();

// Uniform-random actions, within the bounds of continuous ones.
template <Simulator S>
void FillActions(std::span<ActionOf<S>> actions, Random& random) {
  const LeafSpec leaf = S::Spec().action[0];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if constexpr (DiscreteSimulator<S>) {
      actions[i] = static_cast<std::int64_t>(random.Uniform(0, 1) * S::kActions);
    } else {
      const std::size_t k = leaf.low.size() == 1 ? 0 : i % kActionItems<S>;
      actions[i] = static_cast<float>(random.Uniform(leaf.low[k], leaf.high[k]));
    }
  }
}

// kHorizon steps of every column, through the interface.
template <Simulator S>
class ThroughGroup {
 public:
  explicit ThroughGroup(int columns)
      : slab_(SlabSpec{.observation = S::Spec().observation,
                       .action = S::Spec().action,
                       .horizon = kHorizon,
                       .columns = ColumnLayout::Single(columns)}),
        group_(EntryOf<S>().make_group({.columns = slab_.columns().block(0, 0), .seed = kSeed})) {
    Random random = Random::FromSeed(kSeed);
    for (int row = 0; row < kHorizon; ++row) {
      FillActions<S>(
          {slab_.action<ActionOf<S>>(0, row), static_cast<std::size_t>(columns * kActionItems<S>)},
          random);
    }
    group_->Reset(slab_, 0);
  }

  void Pass() {
    for (int row = 0; row < kHorizon; ++row) group_->Step(slab_, row);
    slab_.Carry(slab_);
  }

 private:
  Slab slab_;
  std::unique_ptr<EnvironmentGroup> group_;
};

// The same steps as somebody would write them who needs nothing else.
template <Simulator S>
class PlainLoop {
 public:
  explicit PlainLoop(int columns)
      : columns_(columns),
        step_limit_(S::Spec().max_episode_steps > 0 ? S::Spec().max_episode_steps
                                                    : std::numeric_limits<int>::max()),
        simulators_(columns),
        elapsed_(columns, 0),
        actions_(static_cast<std::size_t>(kHorizon) * columns * kActionItems<S>),
        observations_(static_cast<std::size_t>(columns) * S::kObservationSize),
        rewards_(columns),
        ended_(columns) {
    Random random = Random::FromSeed(kSeed);
    FillActions<S>(actions_, random);
    for (int i = 0; i < columns; ++i) {
      randoms_.push_back(Random::FromSeed(kSeed + i));
      simulators_[i].Reset(randoms_[i], Observation(i));
    }
  }

  void Pass() {
    const ActionOf<S>* action = actions_.data();
    for (int row = 0; row < kHorizon; ++row) {
      for (int i = 0; i < columns_; ++i, action += kActionItems<S>) StepColumn(i, action);
    }
  }

 private:
  float* Observation(int i) { return observations_.data() + i * S::kObservationSize; }

  void StepColumn(int i, const ActionOf<S>* action) {
    StepResult result;
    if constexpr (DiscreteSimulator<S>) {
      result = simulators_[i].Step(static_cast<int>(*action), randoms_[i], Observation(i));
    } else {
      result = simulators_[i].Step(action, randoms_[i], Observation(i));
    }
    rewards_[i] = result.reward;
    ended_[i] = result.terminated || ++elapsed_[i] >= step_limit_;
    if (ended_[i] != 0) {
      elapsed_[i] = 0;
      simulators_[i].Reset(randoms_[i], Observation(i));
    }
  }

  const int columns_;
  const int step_limit_;
  std::vector<S> simulators_;
  std::vector<Random> randoms_;
  std::vector<int> elapsed_;
  std::vector<ActionOf<S>> actions_;
  std::vector<float> observations_;
  std::vector<double> rewards_;
  std::vector<std::uint8_t> ended_;
};

template <typename Stepper>
double StepsPerSecond(Stepper& stepper, int columns, double seconds) {
  const Stopwatch watch;
  std::int64_t steps = 0;
  do {
    stepper.Pass();
    steps += static_cast<std::int64_t>(kHorizon) * columns;
  } while (watch.seconds() < seconds);
  return static_cast<double>(steps) / watch.seconds();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <Simulator S>
Measured Measure(int columns, double seconds) {
  ThroughGroup<S> group(columns);
  PlainLoop<S> plain(columns);
  group.Pass();  // Touch all memory.
  plain.Pass();
  std::vector<double> groups, plains, ratios;
  for (int round = 0; round < kRounds; ++round) {
    groups.push_back(StepsPerSecond(group, columns, seconds / (2 * kRounds)));
    plains.push_back(StepsPerSecond(plain, columns, seconds / (2 * kRounds)));
    ratios.push_back(plains.back() / groups.back());
  }
  return {.group = Median(groups), .plain = Median(plains), .ratio = Median(ratios)};
}

struct Candidate {
  std::string name;
  std::function<Measured(int columns, double seconds)> measure;
};

template <Simulator S>
Candidate Of() {
  return {.name = S::Spec().name, .measure = Measure<S>};
}

std::vector<Candidate> Candidates() {
  return {Of<CartPole>(),
          Of<Acrobot>(),
          Of<MountainCar>(),
          Of<MountainCarContinuous>(),
          Of<Pendulum>(),
          Of<DiscreteLunarLander>(),
          Of<ContinuousLunarLander>()};
}

void Print(const Settings& settings, const std::string& name, int columns,
           const Measured& measured) {
  if (settings.json) {
    fmt::print(
        "RESULT {{\"peer\": \"menger\", \"environment\": \"{}\", \"columns\": {}, "
        "\"steps_per_second\": {:.0f}, \"plain_steps_per_second\": {:.0f}, \"ratio\": {:.3f}}}\n",
        name, columns, measured.group, measured.plain, measured.ratio);
  } else {
    fmt::print("{:<26}{:>8}{:>16.3f}{:>16.3f}{:>12.2f}\n", name, columns, measured.group * 1e-6,
               measured.plain * 1e-6, measured.ratio);
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures native environments on one core: the interface against a plain loop.");
  app.add_option("environments", settings.environments, "names; default: all");
  app.add_option("--seconds", settings.seconds, "of each measurement");
  app.add_option("--columns", settings.columns, "environments stepped together");
  app.add_flag("--json", settings.json, "one line a measurement for programs");
  CLI11_PARSE(app, argc, argv);
  PinThisThread(AvailableCpuList().back());
  if (!settings.json) {
    fmt::print("Million steps/s, one core; ratio: time through the interface / plain loop\n");
    fmt::print("{:<26}{:>8}{:>16}{:>16}{:>12}\n", "environment", "columns", "interface",
               "plain loop", "ratio");
  }
  const std::vector<Candidate> candidates = Candidates();
  for (const std::string& name : settings.environments) {
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return candidate.name == name; })) {
      throw InvalidArgument("there is no native environment '{}'", name);
    }
  }
  for (const Candidate& candidate : candidates) {
    const std::vector<std::string>& chosen = settings.environments;
    if (!chosen.empty() && std::count(chosen.begin(), chosen.end(), candidate.name) == 0) continue;
    for (const int columns : settings.columns) {
      Print(settings, candidate.name, columns, candidate.measure(columns, settings.seconds));
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_environment_steps", menger::bench::Main, argc, argv);
}
