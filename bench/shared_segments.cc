// How fast are large values put into the runtime's shared memory, beside memcpy? GB/s of copies
// from a warm buffer into: ordinary memory that is warm, a segment that is warm, a segment whose
// pages have never been touched, and the same with Prepare. Copies follow one another through the
// destination, which is `--destination` MiB or one value if that is more, so small ones are not
// measured in the cache alone; all destinations take turns.
//
//   bench_shared_segments [--rounds 5] [--destination 256] [--kilobytes 1 64 1024 ...]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/sharing/segment.h"
#include "menger/tensor/memory.h"
#include "program.h"

namespace menger::bench {
namespace {

struct Settings {
  int rounds = 5;
  std::size_t destination_mebibytes = 256;
  std::vector<std::size_t> kilobytes = {1, 64, 1024, 16384, 262144, 1048576};
};

// GB/s of filling `to` with copies of `from`.
double Fill(std::span<std::byte> to, std::span<const std::byte> from,
            const std::function<void(std::size_t)>& before_each) {
  const Stopwatch watch;
  std::size_t at = 0;
  for (; at + from.size() <= to.size(); at += from.size()) {
    before_each(at);
    std::memcpy(to.data() + at, from.data(), from.size());
  }
  return static_cast<double>(at) / static_cast<double>(watch.nanoseconds());
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Measure(std::size_t bytes, const Settings& settings) {
  const std::size_t size = std::max(bytes, settings.destination_mebibytes << 20);
  const std::unique_ptr<Memory> source = AllocatePlainMemory(bytes);
  const std::unique_ptr<Memory> plain = AllocatePlainMemory(size);
  std::memset(source->data(), 1, bytes);
  std::memset(plain->data(), 1, size);
  WritableSegment segment("segments", size);
  std::memset(segment.bytes().data(), 1, size);

  const std::span<const std::byte> from{source->data(), bytes};
  const auto nothing = [](std::size_t) {};
  const auto prepare = [&](std::size_t at) { segment.Prepare(at, bytes); };
  std::vector<double> plains, warms, colds, cold_prepareds;
  for (int round = 0; round < settings.rounds; ++round) {
    segment.ReleasePages(0, size);
    colds.push_back(Fill(segment.bytes(), from, nothing));
    warms.push_back(Fill(segment.bytes(), from, prepare));
    plains.push_back(Fill({plain->data(), size}, from, nothing));
    segment.ReleasePages(0, size);
    cold_prepareds.push_back(Fill(segment.bytes(), from, prepare));
  }
  fmt::print("| {} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.1f} |\n", bytes / 1024, Median(plains),
             Median(warms), Median(warms) / Median(plains), Median(colds), Median(cold_prepareds));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How fast are large values put into shared memory?");
  app.add_option("--rounds", settings.rounds, "of which the median counts");
  app.add_option("--destination", settings.destination_mebibytes, "MiB that are filled, at least");
  app.add_option("--kilobytes", settings.kilobytes, "KiB of a value");
  CLI11_PARSE(app, argc, argv);
  fmt::print(
      "GB/s\n| KiB | plain memory, warm | segment, warm | ratio | segment, cold | "
      "segment, cold, prepared |\n|---|---|---|---|---|---|\n");
  for (const std::size_t kilobytes : settings.kilobytes) Measure(kilobytes * 1024, settings);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("bench_shared_segments", menger::bench::Main, argc, argv);
}
