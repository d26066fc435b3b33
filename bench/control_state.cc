// What does the runtime pay to remember? Operations a second of the embedded control store, in
// memory and with its log; nanoseconds for an event; and whether memory and files stay flat over
// 10^7 short lives of keys, put and deleted with ten alive.
//
//   bench_control_state [--lives 10000000] [--folder FOLDER] [--json]
//   bench_control_state --redis redis://HOST:PORT [--seconds 2] [--json]      of a store kept there

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_log.h"
#include "menger/runtime/redis/redis_journal.h"
#include "menger/runtime/watching/node_events.h"
#include "menger/runtime/watching/timeline.h"
#include "program.h"

namespace menger::bench {
namespace {

namespace fs = std::filesystem;
using Operation = StoreOperation;

constexpr StoreTable kTable = StoreTable::kObjects;

struct Settings {
  std::int64_t lives = 10'000'000;
  std::string folder = "control_state";
  std::string redis;
  double seconds = 2;
  bool json = false;
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  ~Report() {
    if (json_) fmt::print("{}\n", values_.dump());
  }
  void Add(const std::string& what, double value, const char* unit) {
    if (!json_) fmt::print("{:<58} {:>12.4g} {}\n", what, value, unit);
    values_[what] = value;
  }

 private:
  const bool json_;
  nlohmann::json values_;
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages >> pages;
  return static_cast<double>(pages * sysconf(_SC_PAGESIZE)) * 1e-6;
}

double LogMegabytes(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::error_code removed;
    const std::uintmax_t size = entry.file_size(removed);
    bytes += removed ? 0 : size;
  }
  return static_cast<double>(bytes) * 1e-6;
}

// The most that there was, after the first tenth, and at the end of that.
class Flatness {
 public:
  explicit Flatness(std::string folder) : folder_(std::move(folder)) {}
  void Look(double progress) {
    const double memory = ResidentMegabytes();
    if (progress <= 0.1) memory_before_ = memory;
    memory_ = std::max(memory_, memory);
    file_ = std::max(file_, LogMegabytes(folder_));
  }
  void Tell(Report& report, const std::string& what) const {
    report.Add(what + ": memory after a tenth", memory_before_, "MB");
    report.Add(what + ": most memory", memory_, "MB");
    report.Add(what + ": longest files", file_, "MB");
  }

 private:
  const std::string folder_;
  double memory_before_ = 0;
  double memory_ = 0;
  double file_ = 0;
};

EmbeddedStoreOptions Logged(const Settings& settings, std::chrono::nanoseconds sync_every) {
  fs::remove_all(settings.folder);
  return {.journal = KeepInLog({.folder = settings.folder, .sync_every = sync_every})};
}

// Batches of one put, up to `open` of them unanswered.
void StoreRate(EmbeddedStore& store, int open, double seconds, const std::string& what,
               Report& report) {
  std::atomic<int> waiting = 0;
  std::int64_t count = 0;
  double longest = 0;  // Without an answer.
  Stopwatch since_answer;
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
    while (waiting >= open) std::this_thread::yield();
    longest = std::max(longest, since_answer.seconds());
    since_answer.Restart();
    ++waiting;
    store.Submit({Operation::Put(kTable, std::to_string(count++ % 1000), std::string(100, 'v'))},
                 Soon(), [&](const std::vector<StoreResult>&) { --waiting; });
  }
  while (waiting > 0) std::this_thread::yield();
  report.Add(what, static_cast<double>(count) / watch.seconds(), "puts/s");
  if (seconds >= 1) report.Add(what + ", longest wait", longest * 1e3, "ms");
}

void RedisRates(const Settings& settings, Report& report) {
  EmbeddedStore store({.journal = KeepInRedis({.address = RedisAddress::Parse(settings.redis),
                                               .head = "the benchmark"})});
  StoreRate(store, 1, settings.seconds, "store with Redis, one at a time", report);
  StoreRate(store, 256, settings.seconds, "store with Redis, 256 at a time", report);
}

void StoreRates(const Settings& settings, Report& report) {
  {
    EmbeddedStore store;
    StoreRate(store, 1, 0.5, "store in memory", report);
  }
  {
    EmbeddedStore store(Logged(settings, std::chrono::milliseconds(100)));
    StoreRate(store, 1, 1, "store with log, one at a time", report);
    StoreRate(store, 256, 1, "store with log, 256 at a time", report);
  }
  EmbeddedStore store(Logged(settings, std::chrono::nanoseconds(0)));
  StoreRate(store, 1, 1, "store with log, each synced, one at a time", report);
  StoreRate(store, 256, 1, "store with log, each synced, 256 at a time", report);
}

void ShortLivedKeys(const Settings& settings, Report& report) {
  EmbeddedStore store(Logged(settings, std::chrono::milliseconds(100)));
  Flatness flatness(settings.folder);
  const Stopwatch watch;
  std::vector<Operation> batch;
  for (std::int64_t i = 0; i < settings.lives; ++i) {
    batch.push_back(Operation::Put(kTable, std::to_string(i), std::string(100, 'v')));
    if (i >= 10) batch.push_back(Operation::Delete(kTable, std::to_string(i - 10)));
    if (batch.size() < 1000) continue;
    RunBatch(store, std::exchange(batch, {}), Soon());
    if (i % 100'000 < 500)
      flatness.Look(static_cast<double>(i) / static_cast<double>(settings.lives));
  }
  report.Add("keys put and deleted, with log",
             static_cast<double>(settings.lives) / watch.seconds(), "lives/s");
  flatness.Tell(report, "keys put and deleted");
}

void Events(Report& report) {
  constexpr int kEvents = 20'000'000;
  NodeEvents events;
  const std::uint16_t name = events.Intern("Rollout");
  Stopwatch watch;
  for (std::int64_t i = 0; i < kEvents; ++i) {
    events.Add({.time = 1000 * i,
                .duration = i % 1000,
                .subject = static_cast<std::uint64_t>(i),
                .worker = 1,
                .name = name,
                .kind = NodeEventKind::kTaskEnded});
  }
  report.Add("an event", static_cast<double>(watch.nanoseconds()) / kEvents, "ns");
  watch.Restart();
  std::vector<NodeEvent> copied;
  events.tasks().Copy(0, kEvents, copied);
  report.Add(fmt::format("copying {} events", copied.size()), watch.seconds() * 1e3, "ms");
  watch.Restart();
  std::size_t bytes = 0;
  WriteTimeline(copied, events.names(), WorkerPlaces(),
                [&](std::string_view piece) { bytes += piece.size(); });
  report.Add("writing them as a trace", watch.seconds() * 1e3, "ms");
  report.Add("that trace", static_cast<double>(bytes) * 1e-6, "MB");
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures what the runtime pays to remember.");
  app.add_option("--lives", settings.lives, "Keys that come and go")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1'000'000'000}));
  app.add_option("--folder", settings.folder, "For the log: made anew, and removed at the end");
  app.add_option("--redis", settings.redis, "Measure a store that is kept there, and nothing else");
  app.add_option("--seconds", settings.seconds, "With --redis: how long, each");
  app.add_flag("--json", settings.json, "One line of JSON");
  CLI11_PARSE(app, argc, argv);
  Report report(settings.json);
  if (!settings.redis.empty()) {
    RedisRates(settings, report);
    return 0;
  }
  Events(report);
  StoreRates(settings, report);
  ShortLivedKeys(settings, report);
  fs::remove_all(settings.folder);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_control_state", menger::bench::Main, argc, argv);
}
