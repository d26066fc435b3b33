// How much faster does a run train whose collectors and learner go on at the same time?
//
// A recipe (experiments/lunarlander_dqn.toml, where nothing else is said) by the synchronous loop,
// and by pipelines in threads and in processes, taking turns, with simulators that sleep so long a
// step: real ones wait for something else than this machine's processors. What could be gained at
// most by one collector is (c + l) / max(c, l), by the seconds that the synchronous loop collects
// and learns; several collectors also sleep at the same time.
//
// A way is a kind of topology, the number of collectors behind a colon (else it is measured), and
// "+" where one role infers for all of them: threads:4, processes:2+.
//
// With --folder the runs stay there: `menger plot FOLDER/*` draws their returns over seconds.
//
//   bench_pipeline RECIPE [--ways synchronous threads processes] [--sleep-ms 0 1 10] [--steps
//   20000]
//                  [--seeds 2 3 4] [--folder F] [--json]

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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
#include "menger/runtime/worker_main.h"
#include "menger/training/program_environments.h"
#include "menger/training/run.h"
#include "program.h"

namespace menger::bench {
namespace {

// Milliseconds that a step sleeps: the processes of a run have it from who started them.
constexpr const char* kSleepVariable = "MENGER_BENCH_SLEEP_MS";

struct Settings {
  std::string recipe;
  std::vector<std::string> ways = {"synchronous", "threads", "processes"};
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

// All native environments, whose steps take as long more as the variable says. The columns of a
// group are stepped one after the other.
EnvironmentCatalog SleepyEnvironments() {
  const char* const text = std::getenv(kSleepVariable);
  const double milliseconds = text == nullptr ? 0 : std::stod(text);
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
  std::int64_t collectors = 1;
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

std::vector<Assignment> SettingsOf(const std::string& way) {
  const bool apart = way.ends_with('+');
  const std::string plain = way.substr(0, way.size() - (apart ? 1 : 0));
  const std::size_t colon = plain.find(':');
  std::vector<Assignment> settings = {Assignment::Parse("topology.kind=" + plain.substr(0, colon))};
  if (colon != std::string::npos) {
    settings.push_back(Assignment::Parse("topology.collectors=" + plain.substr(colon + 1)));
  }
  if (apart) settings.push_back(Assignment::Parse("topology.inference=apart"));
  return settings;
}

Measured Train(const Settings& settings, const std::string& way, std::int64_t seed,
               const std::string& folder) {
  std::vector<Assignment> assignments = {Assignment::Parse(fmt::format("steps={}", settings.steps)),
                                         Assignment::Parse(fmt::format("seed={}", seed))};
  for (Assignment& setting : SettingsOf(way)) assignments.push_back(std::move(setting));
  for (const std::string& setting : settings.set) assignments.push_back(Assignment::Parse(setting));
  const EnvironmentCatalog catalog = ProgramEnvironments();
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
  if (way != "synchronous") {
    const double waited = SumOf(table, "learner_waiting_seconds");
    measured.learner_waited = waited / (waited + measured.learning);
    measured.collectors = experiment.topology.collectors.value;
  }
  return measured;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// What of one way was measured, a number a seed.
struct Series {
  std::vector<double> steps_per_second, gains, waits;
  std::int64_t collectors = 1;
};

void Compare(const Settings& settings, double sleep_ms, const std::string& place) {
  setenv(kSleepVariable, fmt::format("{}", sleep_ms).c_str(), /*overwrite=*/1);
  std::vector<Series> all(settings.ways.size());
  std::vector<double> ideals;
  for (const std::int64_t seed : settings.seeds) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Measured measured =
          Train(settings, settings.ways[i], seed,
                fmt::format("{}/{}-{:g}ms-{}", place, settings.ways[i], sleep_ms, seed));
      if (i == 0) {
        ideals.push_back((measured.collecting + measured.learning) /
                         std::max(measured.collecting, measured.learning));
      }
      all[i].steps_per_second.push_back(measured.steps_per_second);
      all[i].gains.push_back(measured.steps_per_second / all[0].steps_per_second.back());
      all[i].waits.push_back(measured.learner_waited);
      all[i].collectors = measured.collectors;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double speed = MedianOf(all[i].steps_per_second);
    const double gain = MedianOf(all[i].gains);
    fmt::print("{:>9g}  {:<14}{:>11}{:>10.0f}{:>8.2f}{:>9.2f}{:>9.3f}\n", sleep_ms,
               settings.ways[i], all[i].collectors, speed, gain, MedianOf(ideals),
               MedianOf(all[i].waits));
    if (!settings.json) continue;
    fmt::print(
        "RESULT {{\"sleep_ms\": {}, \"way\": \"{}\", \"collectors\": {}, \"steps_per_second\": "
        "{:.1f}, "
        "\"gain\": {:.3f}, \"most_by_one\": {:.3f}, \"learner_waited\": {:.4f}}}\n",
        sleep_ms, settings.ways[i], all[i].collectors, speed, gain, MedianOf(ideals),
        MedianOf(all[i].waits));
  }
  std::fflush(stdout);
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures collecting and learning at the same time beside taking turns.");
  app.add_option("recipe", settings.recipe, "a recipe of an algorithm that learns from batches")
      ->required();
  app.add_option("--ways", settings.ways, "what is compared; the first is what gains are of");
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
  fmt::print("{:>9}  {:<14}{:>11}{:>10}{:>8}{:>9}{:>9}\n", "sleep ms", "way", "collectors",
             "steps/s", "gain", "at most", "waited");
  for (const double sleep_ms : settings.sleep_ms) Compare(settings, sleep_ms, place);
  if (!keeps) std::filesystem::remove_all(place);
  return 0;
}

}  // namespace
}  // namespace menger::bench

// In place of the program's own (training/program_environments.h): what roles in processes of their
// own know by name sleeps, too.
menger::EnvironmentCatalog menger::ProgramEnvironments() {
  return menger::bench::SleepyEnvironments();
}

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_pipeline", menger::bench::Run, argc, argv);
}
