// Is everybody served who waits for a replay table, and what does it cost? A queue of one (or of
// --size), N writers that insert as fast as they can and one reader that takes one item a call:
// items a second, and the least and the most that a writer got, as shares of an even one. Beside
// it, in the same run: one writer alone.
//
//   bench_replay_waiting [--seconds 1] [--size 1] [--writers 1 16 256]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/replay/sample.h"
#include "menger/replay/table.h"
#include "program.h"

namespace menger::bench {
namespace {

struct Settings {
  double seconds = 1;
  int size = 1;
  std::vector<int> writers = {1, 16, 256};
};

struct Served {
  double items_per_second = 0;
  double least = 0;  // Of a writer, times the number of writers.
  double most = 0;
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

void WriteUntilClosed(Table& table, const ItemDraft& draft, std::int64_t& taken) {
  try {
    for (;; ++taken) table.Insert({&draft, 1}, Soon());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
  }
}

Served Measure(const Settings& settings, int writers) {
  const Spec steps({LeafSpec::Discrete("value", 1'000'000)});
  ChunkStore chunks({.bytes_max = 1 << 16});
  const ChunkId chunk = chunks.Allocate(ChunkLayout(steps, 8));
  chunks.Publish(chunk, 8);
  Table table({.name = "queue",
               .items = {.steps = steps, .columns = {{.name = "value", .leaf = "value"}}},
               .sampler = {.kind = SelectorKind::kFifo},
               .rate_limiter = RateLimiterOptions::Queue(settings.size),
               .times_sampled_max = 1},
              chunks);
  const ItemDraft draft{.slices = {{.chunk = chunk, .offset = 0, .length = 1}},
                        .slice_counts = {1}};
  std::vector<std::int64_t> taken(static_cast<std::size_t>(writers));
  std::vector<std::thread> threads;
  for (std::int64_t& mine : taken) {
    threads.emplace_back([&] { WriteUntilClosed(table, draft, mine); });
  }
  Sample sample;
  std::int64_t items = 0;
  const Stopwatch watch;
  for (; watch.seconds() < settings.seconds; ++items) {
    table.SampleInto({.count = 1, .deadline = Soon()}, sample);
  }
  const double seconds = watch.seconds();
  table.Close();
  for (std::thread& thread : threads) thread.join();
  chunks.Release(chunk);
  const auto [least, most] = std::ranges::minmax(taken);
  const double even = static_cast<double>(items) / writers;
  return {.items_per_second = static_cast<double>(items) / seconds,
          .least = static_cast<double>(least) / even,
          .most = static_cast<double>(most) / even};
}

int Run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Serves writers that wait for a queue.");
  app.add_option("--seconds", settings.seconds, "of each measurement")->check(CLI::Range(.1, 60.));
  app.add_option("--size", settings.size, "of the queue")->check(CLI::Range(1, 1'000'000));
  app.add_option("--writers", settings.writers, "threads")->check(CLI::Range(1, 4096));
  CLI11_PARSE(app, argc, argv);
  const double alone = Measure(settings, 1).items_per_second;
  fmt::print("{:>8} {:>12} {:>10} {:>14} {:>14}\n", "writers", "items/s", "of one's",
             "least served", "most served");
  for (const int writers : settings.writers) {
    const Served served = Measure(settings, writers);
    fmt::print("{:>8} {:>12.0f} {:>9.2f}x {:>13.2f}x {:>13.2f}x\n", writers,
               served.items_per_second, served.items_per_second / alone, served.least, served.most);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_replay_waiting", menger::bench::Run, argc, argv);
}
