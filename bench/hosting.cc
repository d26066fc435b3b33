// Environment steps a second through one Python host process, for bench/hosting.py.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/counter_random.h"
#include "menger/environments/environment.h"
#include "menger/environments/hosted/hosted_environments.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kHorizon = 128;

struct Settings {
  std::vector<std::string> environments = {"host:CartPole-v1"};
  std::vector<int> columns = {1, 8, 64};
  std::vector<std::string> path;
  std::string python = "auto";
  double seconds = 1;
};

// All rows of a slab, again and again, with the actions of the first pass.
double StepsPerSecond(const EnvironmentEntry& entry, int columns, double seconds) {
  Slab slab = MakeSlab({.observation = entry.spec.observation,
                        .state = {},
                        .action = entry.spec.action,
                        .policy = {},
                        .horizon = kHorizon,
                        .columns = ColumnLayout::Single(columns)},
                       entry);
  const auto group = entry.make_group({.columns = slab.columns().block(0, 0), .seed = 1});
  const CounterRandom random(/*seed=*/1, /*stream=*/0);
  const auto choices = static_cast<std::uint64_t>(entry.spec.action[0].counts[0]);
  for (int row = 0; row < kHorizon; ++row) {
    for (int i = 0; i < columns; ++i) {
      const std::uint64_t word = random.Draw(static_cast<std::uint64_t>(i), row)[0];
      *slab.action<std::int64_t>(0, row, i) = static_cast<std::int64_t>(word % choices);
    }
  }
  group->Reset(slab, 0);
  const auto pass = [&] {
    for (int row = 0; row < kHorizon; ++row) group->Step(slab, row);
    slab.Carry(slab);
  };
  for (int i = 0; i < 4; ++i) pass();
  std::int64_t steps = 0;
  const Stopwatch watch;
  do {
    pass();
    steps += std::int64_t{kHorizon} * columns;
  } while (watch.seconds() < seconds);
  return static_cast<double>(steps) / watch.seconds();
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures Python environments with discrete actions through one host process.");
  app.add_option("environments", settings.environments, "names, as in a recipe");
  app.add_option("--columns", settings.columns, "environments stepped together");
  app.add_option("--path", settings.path, "folders of Python modules");
  app.add_option("--python", settings.python, "interpreter");
  app.add_option("--seconds", settings.seconds, "of each measurement");
  CLI11_PARSE(app, argc, argv);
  HostedEnvironments family;
  Options options("host");
  family.Declare(options);
  options.Set("python", settings.python);
  options.Set("path", settings.path);
  for (const std::string& name : settings.environments) {
    const EnvironmentEntry entry = family.Open(name, EnvironmentUse::kTraining);
    for (const int columns : settings.columns) {
      fmt::print(
          "RESULT {{\"peer\": \"menger\", \"environment\": \"{}\", \"columns\": {}, "
          "\"steps_per_second\": {:.0f}}}\n",
          name, columns, StepsPerSecond(entry, columns, settings.seconds));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_hosting", menger::bench::Main, argc, argv);
}
