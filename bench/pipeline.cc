// How much faster does a run train whose collector and learner go on at the same time?
//
// LunarLander with DQN as the recipe of that name has it, by the synchronous loop and by the
// pipeline in threads, taking turns, with simulators that sleep so long a step: real ones wait for
// something else than this machine's processors. What could be gained at most is (c + l) / max(c,
// l), by the seconds that the synchronous loop collects and learns.
//
// With --folder the runs stay there: `menger plot FOLDER/*` draws their returns over seconds.
//
//   bench_pipeline RECIPE [--sleep-ms 0 1 10] [--steps 20000] [--seeds 2 3 4] [--folder F] [--json]

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/environments/catalog.h"
#include "menger/training/run.h"
#include "program.h"

namespace menger::bench {
namespace {

struct Settings {
  std::string recipe;
  std::vector<double> sleep_ms = {0, 1, 10};
  std::int64_t steps = 20'000;
  std::vector<std::int64_t> seeds = {2, 3, 4};
  std::string folder;
  std::vector<std::string> set;
  bool json = false;
};

// Another group that sleeps for each of its columns.
class Sleeping final : public EnvironmentGroup {
 public:
  Sleeping(std::unique_ptr<EnvironmentGroup> group, std::chrono::nanoseconds time)
      : group_(std::move(group)), time_(time) {}

  const EnvironmentSpec& spec() const override { return group_->spec(); }
  void Reset(Slab& slab, int row) override { group_->Reset(slab, row); }
  void Step(Slab& slab, int row) override {
    std::this_thread::sleep_for(time_);
    group_->Step(slab, row);
  }
  void ResetParked(Slab& slab, int row) override { group_->ResetParked(slab, row); }
  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    group_->StepRandomly(slab, row, steps, seed);
  }
  void Save(ArchiveWriter& archive) const override { group_->Save(archive); }
  void Load(ArchiveReader& archive) override { group_->Load(archive); }
  std::vector<EnvironmentMetric> TakeMetrics() override { return group_->TakeMetrics(); }

 private:
  const std::unique_ptr<EnvironmentGroup> group_;
  const std::chrono::nanoseconds time_;
};

// All native environments, whose steps take so long more. The columns of a group are stepped one
// after the other.
EnvironmentCatalog SleepyEnvironments(double milliseconds) {
  EnvironmentCatalog catalog;
  const EnvironmentCatalog native = NativeEnvironments();
  for (EnvironmentEntry entry : native.entries()) {
    entry.make_group = [make = entry.make_group, milliseconds](const GroupOptions& options) {
      const std::chrono::duration<double, std::milli> time(milliseconds * options.columns.count);
      return std::make_unique<Sleeping>(make(options),
                                        std::chrono::duration_cast<std::chrono::nanoseconds>(time));
    };
    catalog.Add(std::move(entry));
  }
  return catalog;
}

struct Measured {
  double steps_per_second = 0;
  double collecting = 0;  // Seconds, of all rows.
  double learning = 0;
  double learner_waited = 0;  // Of its time.
};

// Sums of columns of progress.csv.
double SumOf(const std::string& path, const std::string& column) {
  std::istringstream file(ReadFile(path));
  const auto cells = [](const std::string& line) {
    std::vector<std::string> found;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) found.push_back(cell);
    return found;
  };
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells(line);
  const auto at = std::ranges::find(names, column) - names.begin();
  double sum = 0;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = cells(line);
    if (at < std::ssize(row) && !row[at].empty()) sum += std::stod(row[at]);
  }
  return sum;
}

Measured Train(const Settings& settings, const std::string& kind, double sleep_ms,
               std::int64_t seed, const std::string& folder) {
  std::vector<Assignment> assignments = {Assignment::Parse(fmt::format("steps={}", settings.steps)),
                                         Assignment::Parse(fmt::format("seed={}", seed)),
                                         Assignment::Parse("topology.kind=" + kind)};
  for (const std::string& setting : settings.set) assignments.push_back(Assignment::Parse(setting));
  const EnvironmentCatalog catalog = SleepyEnvironments(sleep_ms);
  Experiment experiment(ReadFile(settings.recipe), settings.recipe, assignments, AllAlgorithms(),
                        catalog);
  ProgressReporter progress = ProgressReporter::Silent();
  const RunOutcome outcome =
      StartRun(experiment, [&] { return RunFolder::Create(folder); }, "",
               {.progress = progress, .stop_requested = [] { return false; }});
  const std::string table = folder + "/progress.csv";
  Measured measured{.steps_per_second = static_cast<double>(outcome.counters.steps) /
                                        outcome.counters.training_seconds,
                    .collecting = SumOf(table, "collecting_seconds"),
                    .learning = SumOf(table, "learning_seconds")};
  if (kind != "synchronous") {
    const double waited = SumOf(table, "learner_waiting_seconds");
    measured.learner_waited = waited / (waited + measured.learning);
  }
  return measured;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Compare(const Settings& settings, double sleep_ms, const std::string& place) {
  std::vector<double> synchronous, threads, gains, shares, ideals, waits;
  for (const std::int64_t seed : settings.seeds) {
    const auto folder = [&](const char* kind) {
      return fmt::format("{}/{}-{:g}ms-{}", place, kind, sleep_ms, seed);
    };
    const Measured in_turns = Train(settings, "synchronous", sleep_ms, seed, folder("synchronous"));
    const Measured at_once = Train(settings, "threads", sleep_ms, seed, folder("threads"));
    const double most = (in_turns.collecting + in_turns.learning) /
                        std::max(in_turns.collecting, in_turns.learning);
    synchronous.push_back(in_turns.steps_per_second);
    threads.push_back(at_once.steps_per_second);
    gains.push_back(at_once.steps_per_second / in_turns.steps_per_second);
    ideals.push_back(most);
    shares.push_back(gains.back() / most);
    waits.push_back(at_once.learner_waited);
  }
  fmt::print("{:>9g}{:>13.0f}{:>13.0f}{:>9.2f}{:>9.2f}{:>9.2f}{:>9.3f}\n", sleep_ms,
             MedianOf(synchronous), MedianOf(threads), MedianOf(gains), MedianOf(ideals),
             MedianOf(shares), MedianOf(waits));
  if (settings.json) {
    fmt::print(
        "RESULT {{\"sleep_ms\": {}, \"synchronous\": {:.1f}, \"threads\": {:.1f}, \"gain\": "
        "{:.3f}, "
        "\"most\": {:.3f}, \"share\": {:.3f}, \"learner_waited\": {:.4f}}}\n",
        sleep_ms, MedianOf(synchronous), MedianOf(threads), MedianOf(gains), MedianOf(ideals),
        MedianOf(shares), MedianOf(waits));
  }
  std::fflush(stdout);
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures collecting and learning at the same time beside taking turns.");
  app.add_option("recipe", settings.recipe, "a recipe of an algorithm that learns from batches")
      ->required();
  app.add_option("--sleep-ms", settings.sleep_ms, "of a step of a simulator")
      ->check(CLI::Range(0., 1000.));
  app.add_option("--steps", settings.steps, "of a run")->check(CLI::Range(1'000, 100'000'000));
  app.add_option("--seeds", settings.seeds, "the median counts");
  app.add_option("--folder", settings.folder, "where runs stay; none: they go");
  app.add_option("--set", settings.set, "as menger train's");
  app.add_flag("--json", settings.json, "a line \"RESULT \" and a JSON object after each row");
  CLI11_PARSE(app, argc, argv);
  const bool keeps = !settings.folder.empty();
  const std::string place =
      keeps ? settings.folder
            : (std::filesystem::temp_directory_path() / fmt::format("menger-bench-{}", getpid()))
                  .string();
  fmt::print("{:>9}{:>13}{:>13}{:>9}{:>9}{:>9}{:>9}\n", "sleep ms", "in turns/s", "at once/s",
             "gain", "at most", "share", "waited");
  for (const double sleep_ms : settings.sleep_ms) Compare(settings, sleep_ms, place);
  if (!keeps) std::filesystem::remove_all(place);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_pipeline", menger::bench::Run, argc, argv);
}
