// How fast do values of any size come into the store and out of it, beside memcpy into memory that
// is warm?
//
//   bench_runtime_objects [--sizes BYTES...] [--seconds S]
//
// `put`: a vector of so many bytes becomes an object, which is dropped before the next is made.
// `get`: one that a worker has made becomes a vector. `pin`: it is read where it lies; that does
// not touch the bytes. `fetch`: a worker is asked for one: call, put there, get here.

#include <CLI/CLI.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes MakeBytes(std::size_t size) { return Bytes(size, 7); }

// What is in no cache but the last, as long as it fits there: as the store's own memory.
Rate MeasureMemcpy(double seconds, const Bytes& from) {
  Bytes to(from.size(), 1);
  return MeasureRate(seconds, 1, [&] {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

void Measure(std::size_t size, double seconds) {
  Runtime runtime;
  const Bytes value(size, 7);
  const Rate copy = MeasureMemcpy(seconds, value);
  const Rate put = MeasureRate(seconds, 1, [&] { runtime.Put(value); });
  const ObjectRef<Bytes> made = runtime.Call<MakeBytes>(size);
  const Rate get = MeasureRate(seconds, 1, [&] {
    if (runtime.Get(made).size() != size) throw DataLoss("a value of another size");
  });
  const Rate pin = MeasureRate(seconds, 1, [&] {
    const auto pinned = runtime.Pin(ObjectRef<std::span<const std::uint8_t>>(made.handle()));
    if (pinned->size() != size) throw DataLoss("a value of another size");
  });
  const Rate fetch = MeasureRate(seconds, 1, [&] { runtime.Get(runtime.Call<MakeBytes>(size)); });
  const double gigabytes = static_cast<double>(size) * 1e-9;
  PrintResult(fmt::format(
      R"("bytes": {}, "put_per_second": {:.5g}, "get_per_second": {:.5g}, "pin_per_second": {:.5g}, "fetch_per_second": {:.5g}, "memcpy_per_second": {:.5g}, "put_gb_s": {:.4g}, "get_gb_s": {:.4g}, "memcpy_gb_s": {:.4g}, "put_deviation": {:.3g})",
      size, put.mean, get.mean, pin.mean, fetch.mean, copy.mean, put.mean * gigabytes,
      get.mean * gigabytes, copy.mean * gigabytes, put.deviation));
}

int Main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  double seconds = 0.5;
  CLI::App app("Measures the object store by the size of what is stored, beside memcpy.");
  app.add_option("--sizes", sizes, "bytes; default: 1 KB to 1 GB by factors of 10");
  app.add_option("--seconds", seconds, "of each of the four windows of a measurement");
  CLI11_PARSE(app, argc, argv);
  if (sizes.empty())
    sizes = {1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  for (const std::size_t size : sizes) Measure(size, seconds);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_objects", menger::bench::Main, argc, argv);
}
