// How soon does a program that uses the runtime have its first result from another process? It
// does nothing else: bench/runtime.py measures it from outside, from exec to the line on standard
// output, and from the end of its standard input, for which it waits, to its own.
//
//   bench_runtime_start

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"

namespace menger::bench {
namespace {

int Process() { return getpid(); }

int Main(int, char**) {
  Runtime runtime;
  const int process = runtime.Get(runtime.Call<Process>());
  if (process == getpid()) throw Internal("the call ran in the driver's own process");
  fmt::print("first result\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_start", menger::bench::Main, argc, argv);
}
