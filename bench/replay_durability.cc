// What does it cost to keep a replay store on the disk? Items inserted a second with durability
// none, checkpoint and journal, as fast as one thread can; what goes to the disk meanwhile, in
// MB/s; and how long the inserter waited at most in one Flush of a batch. Where the journal is
// slower than the inserter, the inserter waits for it: the rate is then the disk's.
//
//   bench_replay_durability [--seconds 5] [--payloads 400B 40kB] [--durabilities none checkpoint
//   journal] [--batch 32] [--checkpoint-every 2] [--inserts-per-second 0] [--folder PATH]

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/replay/durability/replay_keeper.h"
#include "menger/replay/replay_store.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kRounds = 3;  // The median counts.

struct Settings {
  double seconds = 5;
  std::vector<std::string> payloads = {"400B", "40kB"};
  std::vector<std::string> durabilities = {"none", "checkpoint", "journal"};
  int batch = 32;
  double checkpoint_every = 2;
  double inserts_per_second = 0;
  std::string folder = std::filesystem::temp_directory_path();
};

struct Result {
  double inserts = 0;    // A second.
  double megabytes = 0;  // To the disk, a second.
  double wait_max = 0;   // Seconds, of one Flush.
  double sync = 0;       // Seconds, when it ended.
};

// What this process has caused to be written to disks.
double BytesToDisk() {
  std::ifstream io("/proc/self/io");
  std::string name;
  double value = 0;
  while (io >> name >> value) {
    if (name == "write_bytes:") return value;
  }
  throw Unavailable("'/proc/self/io' does not tell write_bytes");
}

Durability KindOf(const std::string& name) {
  if (name == "none") return Durability::kNone;
  return name == "journal" ? Durability::kJournal : Durability::kCheckpoint;
}

Result Measure(const Settings& settings, const std::string& payload, const std::string& durability,
               const std::string& folder) {
  const std::int64_t bytes = payload == "400B" ? 400 : 40'000;
  const int chunk_steps = payload == "400B" ? 64 : 16;
  const Spec steps({LeafSpec::Box("data", DataType::kUint8, {bytes}, {0}, {255})});
  ReplayStore store(
      {.tables = {{.name = payload,
                   .items = {.steps = steps, .columns = {{.name = "data", .leaf = "data"}}},
                   .items_max = 400'000'000 / bytes,
                   .bytes_max = std::size_t{1} << 30}},
       .bytes_max = std::size_t{3} << 30});
  ReplayKeeper keeper(store, {.kind = KindOf(durability),
                              .folder = folder,
                              .checkpoint_every = std::chrono::milliseconds(
                                  static_cast<int>(1000 * settings.checkpoint_every))});
  const auto writer = store.NewWriter(steps, {.chunk_steps = chunk_steps, .history = 1});
  const std::vector<std::byte> step(static_cast<std::size_t>(bytes), std::byte{1});
  const std::byte* const leaf = step.data();
  const auto insert = [&] {
    for (int i = 0; i < settings.batch; ++i) {
      const StepRange range{.first = writer->Append({&leaf, 1}, 0), .count = 1};
      writer->Add(store.table(0), 1.0, {&range, 1});
    }
    const Stopwatch watch;
    writer->Flush(Deadline::After(std::chrono::seconds(60)));
    return watch.seconds();
  };
  // Memory that was never touched is touched first.
  while (store.table(0).info().items < store.table(0).options().items_max) insert();
  if (durability != "none") keeper.Sync(Deadline::After(std::chrono::seconds(60)));

  Result result;
  const double before = BytesToDisk();
  const Stopwatch watch;
  std::int64_t inserts = 0;
  while (watch.seconds() < settings.seconds) {
    if (settings.inserts_per_second > 0 &&
        static_cast<double>(inserts) > settings.inserts_per_second * watch.seconds()) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    result.wait_max = std::max(result.wait_max, insert());
    inserts += settings.batch;
  }
  result.inserts = static_cast<double>(inserts) / watch.seconds();
  result.megabytes = (BytesToDisk() - before) * 1e-6 / watch.seconds();
  const Stopwatch rest;
  if (durability == "journal") keeper.Sync(Deadline::After(std::chrono::seconds(60)));
  result.sync = rest.seconds();
  return result;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures what it costs to keep a replay store on the disk.");
  app.add_option("--seconds", settings.seconds, "of each measurement");
  app.add_option("--payloads", settings.payloads, "400B, 40kB")
      ->check(CLI::IsMember({"400B", "40kB"}));
  app.add_option("--durabilities", settings.durabilities, "none, checkpoint, journal")
      ->check(CLI::IsMember({"none", "checkpoint", "journal"}));
  app.add_option("--batch", settings.batch, "items a call");
  app.add_option("--checkpoint-every", settings.checkpoint_every, "seconds");
  app.add_option("--inserts-per-second", settings.inserts_per_second, "at most; 0: no bound");
  app.add_option("--folder", settings.folder, "on the disk that is measured");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<8}{:<12}{:>14}{:>14}{:>16}{:>14}{:>14}\n", "payload", "durability", "inserts/s",
             "payload MB/s", "to disk MB/s", "max wait ms", "last sync ms");
  for (const std::string& payload : settings.payloads) {
    for (const std::string& durability : settings.durabilities) {
      std::vector<Result> results;
      for (int round = 0; round < kRounds; ++round) {
        const std::string folder =
            fmt::format("{}/bench_replay_durability.{}", settings.folder, getpid());
        results.push_back(Measure(settings, payload, durability, folder));
        std::filesystem::remove_all(folder);
      }
      std::ranges::sort(results, {}, &Result::inserts);
      const Result& median = results[kRounds / 2];
      const double bytes = payload == "400B" ? 400 : 40'000;
      fmt::print("{:<8}{:<12}{:>14.0f}{:>14.1f}{:>16.1f}{:>14.1f}{:>14.1f}\n", payload, durability,
                 median.inserts, median.inserts * bytes * 1e-6, median.megabytes,
                 median.wait_max * 1e3, median.sync * 1e3);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_durability", menger::bench::Main, argc, argv);
}
