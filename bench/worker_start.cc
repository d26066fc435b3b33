// How long does it take until a worker process runs? From Start to the first message of a worker of
// this program's own image, which links what `menger` links: started when it is needed or ahead,
// by a driver that has little memory or gigabytes of it.
//
//   bench_worker_start [--starts 200] [--gigabytes 0 4]

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/calls/worker_identity.h"
#include "menger/runtime/driver/worker_process.h"
#include "program.h"

namespace menger::bench {
namespace {

constexpr int kPatienceMilliseconds = 10'000;

int WorkerMain() {
  const WorkerIdentity identity = BecomeWorker();
  const DriverWatch watch(identity.control.get());
  const char hello = 1;
  send(identity.control.get(), &hello, 1, MSG_NOSIGNAL);
  pause();  // Until it is killed.
  return 0;
}

double Milliseconds(WorkerProcesses& workers, int worker) {
  const Stopwatch watch;
  const FileDescriptor control = workers.Start(worker, {});
  pollfd source{.fd = control.get(), .events = POLLIN};
  char hello = 0;
  if (poll(&source, 1, kPatienceMilliseconds) != 1 || recv(control.get(), &hello, 1, 0) != 1) {
    throw Unavailable("worker {} has not said hello", worker);
  }
  return watch.seconds() * 1e3;
}

void Measure(int starts, int gigabytes, bool ahead) {
  const std::vector<std::byte> memory(static_cast<std::size_t>(gigabytes) << 30, std::byte{1});
  WorkerProcesses workers({});
  if (ahead) workers.StartAhead(1);
  std::vector<double> times;
  for (int worker = 0; worker < starts; ++worker) {
    if (ahead) usleep(20'000);
    times.push_back(Milliseconds(workers, worker));
  }
  std::sort(times.begin(), times.end());
  fmt::print("| {} | {} | {:.2f} | {:.2f} |\n", gigabytes, ahead ? "ahead" : "when needed",
             times[times.size() / 2], times[times.size() * 99 / 100]);
}

int Run(int argc, char** argv) {
  int starts = 200;
  std::vector<int> gigabytes = {0, 4};
  CLI::App app("How long does it take until a worker process runs?");
  app.add_option("--starts", starts, "of each kind")->check(CLI::Range(1, 100'000));
  app.add_option("--gigabytes", gigabytes, "of memory of the driver")->check(CLI::Range(0, 1024));
  CLI11_PARSE(app, argc, argv);
  fmt::print("| driver's memory, GB | started | p50, ms | p99, ms |\n| --- | --- | --- | --- |\n");
  for (const int size : gigabytes) {
    for (const bool ahead : {false, true}) Measure(starts, size, ahead);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::bench::WorkerMain();
  return menger::bench::RunProgram("bench_worker_start", menger::bench::Run, argc, argv);
}
