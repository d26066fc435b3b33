// How fast do collectors collect? Steps per second for each collector x workers x environments per
// worker, with a small network and without inference; then what alternating wins when steps or
// inference take long. Prints tables and ratios.
//
//   build/release/bench/collection [--environment CartPole-v1] [--seconds 0.2] [--workers 1 2]
//   [--each 64]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "delayed_environment.h"
#include "measuring_policies.h"
#include "menger/algorithms/actor_critic_policy.h"
#include "menger/algorithms/published_model.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kHorizon = 128;
constexpr double kWindow =
    0.02;  // Seconds. The best window counts: other programs only slow one down.

struct Settings {
  std::string environment = "CartPole-v1";
  double seconds = 0.2;
  std::vector<int> workers = {1, 2};
  std::vector<int> each = {1, 4, 16, 64, 256};  // Environments per worker.
  std::vector<std::string> collectors = {"serial", "local", "synchronous", "alternating"};
  std::vector<std::string> tables = {"none", "network", "delays"};
};

struct Measured {
  double steps_per_second = 0;
  double busy = 0;  // (simulation + inference) / (both + waiting).
};

Measured Measure(const CollectorPlan& plan, const EnvironmentEntry& environment,
                 const PolicyFactory& policies, double seconds) {
  const auto collector = MakeCollector(plan, environment, policies);
  collector->Collect();  // Touches all memory and wakes the threads.
  Measured best;
  const Stopwatch total;
  do {
    const CollectorTimes before = collector->times();
    const Stopwatch watch;
    double steps = 0;
    do {
      collector->Collect();
      steps += static_cast<double>(plan.environments) * plan.horizon;
    } while (watch.seconds() < kWindow);
    const double wall = watch.seconds();
    if (steps / wall < best.steps_per_second) continue;
    const CollectorTimes after = collector->times();
    const double busy = after.simulation - before.simulation + after.inference - before.inference;
    best = {.steps_per_second = steps / wall,
            .busy = busy / (busy + after.waiting - before.waiting)};
  } while (total.seconds() < seconds);
  return best;
}

CollectorPlan Plan(CollectorKind kind, int workers, int each, int groups = 1) {
  return {.kind = kind,
          .environments = workers * each,
          .workers = workers,
          .groups = groups,
          .horizon = kHorizon,
          .seed = 1};
}

std::string Cell(const Measured& measured) {
  return fmt::format("{:>9.3f} {:>3.0f}%", measured.steps_per_second * 1e-6, measured.busy * 100);
}

// One line a collector; one column a number of environments per worker.
void PrintThroughput(const char* title, const Settings& settings,
                     const EnvironmentEntry& environment, const PolicyFactory& policies) {
  fmt::print(
      "\n{}: million steps/s, and the share of all threads' time in simulation or inference\n",
      title);
  fmt::print("{:<14}{:>8}", "collector", "workers");
  for (const int each : settings.each) fmt::print("{:>15}", fmt::format("{} each", each));
  fmt::print("\n");
  for (const std::string& name : settings.collectors) {
    const CollectorKind kind = CollectorKindFromName(name);
    for (const int workers : settings.workers) {
      if (kind == CollectorKind::kSerial && workers != 1) continue;
      fmt::print("{:<14}{:>8}", NameOf(kind), workers);
      for (const int each : settings.each) {
        const int groups = kind == CollectorKind::kAlternating ? 2 : 1;
        if (each % groups != 0) {
          fmt::print("{:>15}", "-");
          continue;
        }
        fmt::print("{:>15}", Cell(Measure(Plan(kind, workers, each, groups), environment, policies,
                                          settings.seconds)));
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }
}

// Simulation keeps a core busy, inference waits for a device: synchronous collection adds the two,
// alternating hides the shorter behind the longer.
void PrintDelays(const Settings& settings, const EnvironmentEntry& environment,
                 const PolicyFactory& policies) {
  static constexpr double kStep = 10e-6;
  static constexpr double kInference = 150e-6;
  fmt::print(
      "\nalternating on against off: steps of {:.0f} us on average, inference of {:.0f} us on a "
      "device; thousand steps/s\n",
      kStep * 1e6, kInference * 1e6);
  fmt::print("{:<14}{:>8}{:>8}{:>14}{:>16}{:>8}\n", "delay", "workers", "each", "synchronous",
             "alternating", "ratio");
  const PolicyFactory device = [&policies] {
    return std::make_unique<DevicePolicy>(policies(), kInference);
  };
  const std::pair<const char*, DelayKind> delays[] = {{"constant", DelayKind::kConstant},
                                                      {"exponential", DelayKind::kExponential},
                                                      {"one straggler", DelayKind::kStraggler}};
  for (const auto& [name, kind] : delays) {
    const EnvironmentEntry delayed = Delayed(environment, {.kind = kind, .mean_seconds = kStep});
    for (const int workers : settings.workers) {
      for (const int each : {4, 16, 64}) {
        const double off = Measure(Plan(CollectorKind::kSynchronous, workers, each), delayed,
                                   device, settings.seconds)
                               .steps_per_second;
        const double on = Measure(Plan(CollectorKind::kAlternating, workers, each, /*groups=*/2),
                                  delayed, device, settings.seconds)
                              .steps_per_second;
        fmt::print("{:<14}{:>8}{:>8}{:>14.1f}{:>16.1f}{:>7.2f}x\n", name, workers, each, off * 1e-3,
                   on * 1e-3, on / off);
        std::fflush(stdout);
      }
    }
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures collectors: steps per second and where the threads' time goes.");
  app.add_option("--environment", settings.environment, "a native environment");
  app.add_option("--seconds", settings.seconds, "for each cell of a table");
  app.add_option("--workers", settings.workers, "numbers of workers to try");
  app.add_option("--each", settings.each, "environments per worker to try");
  app.add_option("--collectors", settings.collectors, "kinds to try");
  app.add_option("--tables", settings.tables, "none (no inference), network, delays");
  CLI11_PARSE(app, argc, argv);

  const EnvironmentCatalog catalog = NativeEnvironments();
  const EnvironmentEntry& environment = catalog.Find(settings.environment);
  const PolicyFactory constant = [] { return std::make_unique<ConstantPolicy>(); };
  // What PPO and A2C act with: separate 64-64 networks for policy and value, sampled actions.
  const ActorCriticPolicies policies({.environment = environment.spec}, /*initial_log_std=*/0);
  const PublishedModel published(policies.model(), /*threads=*/1);
  const PolicyFactory perceptron = [&] {
    return policies.Make(published.publication(), PolicyMode::kSample, /*seed=*/1);
  };
  fmt::print("{}, horizon {}, {} s a cell\n", settings.environment, kHorizon, settings.seconds);
  for (const std::string& table : settings.tables) {
    if (table == "none") {
      PrintThroughput("no inference", settings, environment, constant);
    } else if (table == "network") {
      PrintThroughput("64-64 networks for policy and value", settings, environment, perceptron);
    } else if (table == "delays") {
      PrintDelays(settings, environment, constant);
    } else {
      throw InvalidArgument("there is no table '{}'; take none, network or delays", table);
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_collection", menger::bench::Main, argc, argv);
}
