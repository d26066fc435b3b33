// How fast are Atari games collected, without a network? Agent steps (of 4 frames) a second of
// groups in menger-atari-host, one process a worker, with random actions. `atari.py` runs it beside
// EnvPool and ALE's vector environment.
//
//   bench_atari_steps [--game Pong] [--environments 64] [--workers 2] [--seconds 5] [--host PATH]
//
// The settings are EnvPool's: no sticky actions, 1 to 30 no-ops, whole games, 84 x 84. Each worker
// fills slabs of 32 steps of its environments. Prints "RESULT " and a JSON object.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/environments/atari/atari_environments.h"
#include "menger/environments/environment_testing.h"

namespace menger::bench {
namespace {

constexpr int kHorizon = 32;

struct Settings {
  std::string game = "Pong";
  int environments = 64;
  int workers = 2;
  double seconds = 5;
  std::string host = MENGER_ATARI_HOST;
};

EnvironmentEntry Open(const Settings& settings) {
  AtariEnvironments family(settings.host);
  Options options("atari");
  family.Declare(options);
  options.SetFromText("sticky_percent", "0");
  options.SetFromText("noops_min", "1");
  options.SetFromText("noops_max", "30");
  return family.Open("ALE/" + settings.game + "-v5", EnvironmentUse::kTraining);
}

void Run(const Settings& settings) {
  const EnvironmentEntry entry = Open(settings);
  const int columns = settings.environments / settings.workers;
  std::vector<std::unique_ptr<GroupUnderTest>> groups;
  for (int worker = 0; worker < settings.workers; ++worker) {
    groups.push_back(std::make_unique<GroupUnderTest>(
        entry, columns, kHorizon, GroupOptions{.seed = static_cast<std::uint64_t>(1000 * worker)}));
    groups.back()->group->Reset(groups.back()->slab, 0);
    groups.back()->Fill(/*salt=*/worker, /*go_on=*/false);
  }
  // Slabs until the time is over; the last one of each worker counts in part, so the rate is the
  // sum of the workers' own.
  std::vector<double> rates(settings.workers);
  std::vector<Thread> threads;
  for (int worker = 0; worker < settings.workers; ++worker) {
    threads.emplace_back(ThreadOptions{.name = "worker " + std::to_string(worker)}, [&, worker] {
      const Stopwatch watch;
      std::int64_t steps = 0;
      while (watch.seconds() < settings.seconds) {
        groups[worker]->Fill(static_cast<std::uint64_t>(worker), /*go_on=*/true);
        steps += std::int64_t{kHorizon} * columns;
      }
      rates[worker] = static_cast<double>(steps) / watch.seconds();
    });
  }
  for (Thread& thread : threads) thread.Join();
  double rate = 0;
  for (const double each : rates) rate += each;
  fmt::print(
      "RESULT {{\"peer\": \"menger\", \"game\": \"{}\", \"environments\": {}, "
      "\"workers\": {}, \"how\": \"\", \"steps_per_second\": {:.0f}}}\n",
      settings.game, settings.environments, settings.workers, rate);
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  menger::bench::Settings settings;
  CLI::App app{"Atari collection without a network"};
  app.add_option("--game", settings.game, "Pong, Breakout, ...");
  app.add_option("--environments", settings.environments)->check(CLI::Range(1, 4096));
  app.add_option("--workers", settings.workers)->check(CLI::Range(1, 256));
  app.add_option("--seconds", settings.seconds)->check(CLI::Range(0.1, 600.0));
  app.add_option("--host", settings.host, "another menger-atari-host");
  CLI11_PARSE(app, argc, argv);
  try {
    menger::bench::Run(settings);
  } catch (...) {
    fmt::print(stderr, "{}\n", menger::TranslateCurrentException().what());
    return 1;
  }
  return 0;
}
