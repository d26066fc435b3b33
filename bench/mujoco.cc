// How much of libmujoco's speed is left? Steps per second of MuJoCo's environments through a
// collector with uniform-random actions, against a bare loop that calls libmujoco and nothing else:
// the same frames, actions, start noise and ends, but no observations, rewards or slab. mujoco.py
// runs it beside EnvPool and Gymnasium.
//
//   bench_mujoco [--seconds 2] [--workers 1 2] [--each 8] [--json] [ENVIRONMENT...]

#include <fmt/format.h>
#include <mujoco/mujoco.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/base/thread.h"
#include "menger/collectors/collector.h"
#include "menger/collectors/random_policy.h"
#include "menger/environments/mujoco_environments.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kHorizon = 64;
constexpr int kRounds = 5;  // Both sides take turns; the median round counts.
constexpr std::uint64_t kSeed = 1;

struct Settings {
  double seconds = 2;  // Of each measurement, both sides together.
  std::vector<int> workers = {1, 2};
  int each = 8;  // Environments per worker.
  bool json = false;
  std::vector<std::string> environments = {"HalfCheetah-v5", "Humanoid-v5"};
};

// What a bare loop has to know of an environment.
struct Task {
  const char* name;
  const char* model;
  int frame_skip;
  bool contacts;  // Whether the forces of contacts are computed for the observation.
  double height_min, height_max;
  double noise;
};

constexpr Task kTasks[] = {
    {"HalfCheetah-v5", "half_cheetah.xml", 5, false, -1e9, 1e9, 0.1},
    {"Humanoid-v5", "humanoid.xml", 5, true, 1.0, 2.0, 0.01},
};

const Task& FindTask(const std::string& name) {
  for (const Task& task : kTasks) {
    if (name == task.name) return task;
  }
  throw InvalidArgument("'{}' is none of the environments measured here: {} and {}", name,
                        kTasks[0].name, kTasks[1].name);
}

// One worker's simulations, stepped in turn.
class BareLoop {
 public:
  BareLoop(const Task& task, const mjModel* model, int count, std::uint64_t seed)
      : task_(task),
        model_(model),
        random_(Random::FromSeed(seed)),
        elapsed_(count, 0),
        actions_(static_cast<std::size_t>(kDrawn) * model->nu) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const double* range = model->actuator_ctrlrange + 2 * (i % model->nu);
      actions_[i] = random_.Uniform(range[0], range[1]);
    }
    for (int i = 0; i < count; ++i) {
      simulations_.emplace_back(mj_makeData(model));
      Reset(i);
    }
  }

  void Step() {
    for (std::size_t i = 0; i < simulations_.size(); ++i) {
      mjData* const data = simulations_[i].get();
      std::copy_n(actions_.data() + next_ * model_->nu, model_->nu, data->ctrl);
      next_ = (next_ + 1) % kDrawn;
      for (int frame = 0; frame < task_.frame_skip; ++frame) mj_step(model_, data);
      if (task_.contacts) mj_rnePostConstraint(model_, data);
      const double height = data->qpos[task_.contacts ? 2 : 1];
      if (++elapsed_[i] == 1000 || height <= task_.height_min || height >= task_.height_max) {
        Reset(static_cast<int>(i));
      }
    }
  }

 private:
  static constexpr int kDrawn = 1021;

  void Reset(int i) {
    mjData* const data = simulations_[i].get();
    mj_resetData(model_, data);
    for (int k = 0; k < model_->nq; ++k) data->qpos[k] += random_.Uniform(-1, 1) * task_.noise;
    for (int k = 0; k < model_->nv; ++k) data->qvel[k] += random_.Uniform(-1, 1) * task_.noise;
    mj_forward(model_, data);
    elapsed_[i] = 0;
  }

  struct Delete {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };

  const Task& task_;
  const mjModel* const model_;
  Random random_;
  std::vector<std::unique_ptr<mjData, Delete>> simulations_;
  std::vector<int> elapsed_;
  std::vector<double> actions_;
  std::size_t next_ = 0;
};

// Steps per second of all workers together, each a pinned thread as a collector's.
double BareStepsPerSecond(std::vector<BareLoop>& loops, int each, double seconds) {
  std::vector<double> rates(loops.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::vector<int> cpus = AvailableCpuList();
      PinThisThread(cpus[i % cpus.size()]);
      const Stopwatch watch;
      double steps = 0;
      do {
        for (int row = 0; row < kHorizon; ++row) loops[i].Step();
        steps += kHorizon * each;
      } while (watch.seconds() < seconds);
      rates[i] = steps / watch.seconds();
    });
  }
  threads.clear();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double StepsPerSecond(Collector& collector, int environments, double seconds) {
  const Stopwatch watch;
  double steps = 0;
  do {
    collector.Collect();
    steps += static_cast<double>(kHorizon) * environments;
  } while (watch.seconds() < seconds);
  return steps / watch.seconds();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Measure(const Settings& settings, const Task& task, const mjModel* model, int workers) {
  const EnvironmentEntry entry = MujocoEnvironments().Open(task.name, EnvironmentUse::kTraining);
  const int environments = workers * settings.each;
  const auto collector =
      MakeCollector({.kind = workers == 1 ? CollectorKind::kSerial : CollectorKind::kLocal,
                     .environments = environments,
                     .workers = workers,
                     .horizon = kHorizon,
                     .seed = kSeed},
                    entry, RandomPolicies(entry.spec, kSeed));
  std::vector<BareLoop> loops;
  for (int i = 0; i < workers; ++i) loops.emplace_back(task, model, settings.each, kSeed + i);
  collector->Collect();
  std::vector<double> ours, bare, ratios;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = settings.seconds / (2 * kRounds);
    ours.push_back(StepsPerSecond(*collector, environments, seconds));
    bare.push_back(BareStepsPerSecond(loops, settings.each, seconds));
    ratios.push_back(ours.back() / bare.back());
  }
  if (settings.json) {
    const char* line =
        "RESULT {{\"peer\": \"{}\", \"environment\": \"{}\", \"workers\": {}, "
        "\"steps_per_second\": {:.0f}, \"ratio\": {:.3f}}}\n";
    fmt::print(fmt::runtime(line), "menger", task.name, workers, Median(ours), Median(ratios));
    fmt::print(fmt::runtime(line), "libmujoco", task.name, workers, Median(bare), 1.0);
  } else {
    fmt::print("{:<16}{:>8}{:>14.1f}{:>14.1f}{:>9.0f}%\n", task.name, workers, Median(ours) * 1e-3,
               Median(bare) * 1e-3, Median(ratios) * 100);
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures MuJoCo's environments: a collector against a bare loop on libmujoco.");
  app.add_option("environments", settings.environments, "HalfCheetah-v5, Humanoid-v5");
  app.add_option("--seconds", settings.seconds, "of each measurement");
  app.add_option("--workers", settings.workers, "threads that simulate");
  app.add_option("--each", settings.each, "environments per worker");
  app.add_flag("--json", settings.json, "one line a measurement for programs");
  CLI11_PARSE(app, argc, argv);
  if (!settings.json) {
    fmt::print("Thousand steps/s of {} environments per worker, random actions\n", settings.each);
    fmt::print("{:<16}{:>8}{:>14}{:>14}{:>10}\n", "environment", "workers", "menger", "libmujoco",
               "ratio");
  }
  setenv("MENGER_MUJOCO_LIBRARY", MUJOCO_LIBRARY_FILE, /*overwrite=*/0);
  for (const std::string& name : settings.environments) {
    const Task& task = FindTask(name);
    char reason[1000] = "";
    const std::string path = fmt::format("{}/{}", MUJOCO_MODELS, task.model);
    const std::unique_ptr<mjModel, void (*)(mjModel*)> model(
        mj_loadXML(path.c_str(), nullptr, reason, sizeof(reason)), mj_deleteModel);
    if (model == nullptr) throw FailedPrecondition("cannot read '{}': {}", path, reason);
    for (const int workers : settings.workers) Measure(settings, task, model.get(), workers);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_mujoco", menger::bench::Main, argc, argv);
}
