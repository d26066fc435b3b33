// How fast do values that do not fit in memory go to the disk and come back, beside plain writing
// and reading of a file?
//
//   bench_runtime_spilling [--folder F] [--store MIB] [--sizes BYTES...] [--rounds 3]
//
// Values that are four times the store are put (which copies them, and writes what is pushed out),
// then read in place one after the other in the order in which they were put, so that each comes
// from the disk; then twice more, when nothing has to be written any longer. The plain file is
// written and read in pieces of the same size, and stays in the system's cache as the spilled
// values do.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/files.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Settings {
  std::string folder = std::filesystem::temp_directory_path();
  std::uint64_t store_mebibytes = 256;
  std::vector<std::size_t> sizes = {100'000, 1'000'000, 10'000'000};
  int rounds = 3;
};

struct Speeds {
  std::vector<double> write, read, put, first, later;
};

double GigabytesPerSecond(std::size_t bytes, const Stopwatch& watch) {
  return static_cast<double>(bytes) / static_cast<double>(watch.nanoseconds());
}

void MeasureFile(const Settings& settings, std::size_t size, std::size_t count, Speeds& speeds) {
  const FileDescriptor file(open(settings.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) throw FromErrno("cannot make a file in " + settings.folder, errno);
  Bytes bytes(size, 7);
  const Stopwatch write;
  for (std::size_t i = 0; i < count; ++i) {
    if (pwrite(file.get(), bytes.data(), size, static_cast<off_t>(i * size)) < 0)
      throw FromErrno("cannot write", errno);
  }
  speeds.write.push_back(GigabytesPerSecond(size * count, write));
  const Stopwatch read;
  for (std::size_t i = 0; i < count; ++i) {
    if (pread(file.get(), bytes.data(), size, static_cast<off_t>(i * size)) < 0)
      throw FromErrno("cannot read", errno);
  }
  speeds.read.push_back(GigabytesPerSecond(size * count, read));
}

void MeasureStore(const Settings& settings, std::size_t size, std::size_t count, Speeds& speeds) {
  Runtime runtime({.workers = 1,
                   .store_bytes_max = settings.store_mebibytes << 20,
                   .spill_folder = settings.folder});
  const Bytes value(size, 7);
  std::vector<ObjectRef<std::span<const std::uint8_t>>> values;
  const Stopwatch put;
  for (std::size_t i = 0; i < count; ++i) values.emplace_back(runtime.Put(value).handle());
  speeds.put.push_back(GigabytesPerSecond(size * count, put));
  for (std::vector<double>* const to : {&speeds.first, &speeds.later, &speeds.later}) {
    const Stopwatch read;
    for (const auto& one : values) {
      if (runtime.Pin(one)->size() != size) throw DataLoss("a value of another size");
    }
    to->push_back(GigabytesPerSecond(size * count, read));
  }
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Measure(std::size_t size, const Settings& settings) {
  const std::size_t count = (settings.store_mebibytes << 22) / size;
  Speeds speeds;
  for (int round = 0; round < settings.rounds; ++round) {
    MeasureFile(settings, size, count, speeds);
    MeasureStore(settings, size, count, speeds);
  }
  PrintResult(fmt::format(
      R"("bytes": {}, "file_write_gb_s": {:.3g}, "file_read_gb_s": {:.3g}, "put_gb_s": {:.3g}, "restore_while_spilling_gb_s": {:.3g}, "restore_gb_s": {:.3g})",
      size, Median(speeds.write), Median(speeds.read), Median(speeds.put), Median(speeds.first),
      Median(speeds.later)));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures values that do not fit in memory, beside a plain file.");
  app.add_option("--folder", settings.folder,
                 "on whose disk; default: the one for temporary files");
  app.add_option("--store", settings.store_mebibytes, "MiB of values in memory");
  app.add_option("--sizes", settings.sizes, "bytes of a value");
  app.add_option("--rounds", settings.rounds, "of which the median counts");
  CLI11_PARSE(app, argc, argv);
  for (const std::size_t size : settings.sizes) Measure(size, settings);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_spilling", menger::bench::Main, argc, argv);
}
