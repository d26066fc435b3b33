// What a cluster costs a program: the time of a call on another node, calls a second, bytes a
// second of values that another node has or wants, a value that all workers read, and what it wins
// that calls go to where their arguments lie.
//
//   MENGER_ADDRESS=HOST:PORT bench_runtime_nodes --part PART [--nodes N] [--seconds S]
//
// Node i of N has the resource "n<i>" and, if it is to take part, CPUs; bench/runtime_nodes.py
// starts them and shows this beside what it is measured by.

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;
using std::chrono::milliseconds;

constexpr milliseconds kPause{2};  // Until whoever is asked sleeps.
constexpr int kBatch = 1000;

struct Settings {
  int nodes = 1;
  int workers = 1;  // Of each node.
  double seconds = 1;
};

int Empty(int value) { return value; }
Bytes Make(std::size_t bytes) { return Bytes(bytes, 7); }
std::size_t Take(View value) { return value.size(); }
std::size_t TakeAndStay(View value, int stay) {
  std::this_thread::sleep_for(milliseconds(stay));
  return value.size();
}

CallOptions OnNode(int node) { return {.resources = {{fmt::format("n{}", node), 1}}}; }

// ---- The time of a call to somebody who sleeps.

// Medians of `ask`, in microseconds, with pauses.
double PauseAndAsk(double seconds, const std::function<void()>& ask) {
  for (int i = 0; i < 20; ++i) ask();
  std::vector<double> times;
  for (const Stopwatch all; all.seconds() < seconds;) {
    std::this_thread::sleep_for(kPause);
    const Stopwatch watch;
    ask();
    times.push_back(watch.seconds() * 1e6);
  }
  return Percentile(times, .5);
}

int Check(int result) {
  if (result < 0) throw Unavailable("a socket of the loopback failed");
  return result;
}

// A connection over loopback; the other end, in a process of its own, sends back what it gets.
class Echo {
 public:
  Echo() {
    const int listening = Check(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    Check(bind(listening, any, length));
    Check(listen(listening, 1));
    Check(getsockname(listening, any, &length));
    child_ = Check(fork());
    if (child_ == 0) Answer(accept(listening, nullptr, nullptr));
    socket_ = Check(socket(AF_INET, SOCK_STREAM, 0));
    Check(connect(socket_, any, length));
    NoDelay(socket_);
    close(listening);
  }
  ~Echo() {
    close(socket_);
    waitpid(child_, nullptr, 0);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  void Ask() const {
    std::array<char, 100> message{};
    Check(static_cast<int>(write(socket_, message.data(), message.size())));
    for (std::size_t have = 0; have < message.size();) {
      have += static_cast<std::size_t>(
          Check(static_cast<int>(read(socket_, message.data(), message.size() - have))));
    }
  }

 private:
  static void NoDelay(int socket) {
    const int on = 1;
    Check(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
  }
  [[noreturn]] static void Answer(int socket) {
    NoDelay(socket);
    std::array<char, 100> message{};
    for (ssize_t bytes = 0; (bytes = read(socket, message.data(), message.size())) > 0;) {
      if (write(socket, message.data(), static_cast<std::size_t>(bytes)) != bytes) break;
    }
    _exit(0);
  }

  int socket_ = -1;
  pid_t child_ = -1;
};

void Latency(const Settings& settings) {
  double echo_us = 0;
  {
    const Echo echo;  // Before there are threads.
    echo_us = PauseAndAsk(settings.seconds, [&] { echo.Ask(); });
  }
  double here_us = 0;
  {
    RuntimeOptions options{.workers = 1, .isolation = Isolation::kProcess};
    options.address = "local";
    Runtime runtime(options);
    here_us = PauseAndAsk(settings.seconds, [&] { runtime.Get(runtime.Call<Empty>(1)); });
  }
  Runtime runtime;
  const double there_us = PauseAndAsk(
      settings.seconds, [&] { runtime.Get(runtime.CallWith<Empty>(OnNode(settings.nodes), 1)); });
  PrintResult(fmt::format(R"("echo_us": {:.1f}, "here_us": {:.1f}, "there_us": {:.1f})", echo_us,
                          here_us, there_us));
}

// ---- Calls a second.

void Calls(const Settings& settings) {
  Runtime runtime;
  const Rate rate = MeasureRate(settings.seconds, kBatch, [&] {
    std::vector<ObjectRef<int>> results;
    results.reserve(kBatch);
    for (int i = 0; i < kBatch; ++i) results.push_back(runtime.Call<Empty>(i));
    runtime.Get(results);
  });
  PrintResult(fmt::format(R"("nodes": {}, "per_second": {:.6g}, "deviation": {:.3g})",
                          settings.nodes, rate.mean, rate.deviation));
}

// ---- Bytes a second.

void BytesOfOthers(const Settings& settings) {
  for (const std::size_t bytes : {std::size_t{1'000'000}, std::size_t{100'000'000}}) {
    Runtime runtime;
    const CallOptions there = OnNode(settings.nodes);
    // Only the way is timed, not the making.
    std::vector<double> gets;
    std::vector<double> takes;
    for (const Stopwatch all; all.seconds() < 2 * settings.seconds || gets.size() < 5;) {
      const ObjectRef<Bytes> made = runtime.CallWith<Make>(there, bytes);
      runtime.Wait(std::vector{made});
      const Stopwatch get;
      const auto pinned = runtime.Pin(ObjectRef<View>(made.handle()));
      if (pinned->size() != bytes) throw DataLoss("a value of another size");
      gets.push_back(static_cast<double>(bytes) * 1e-9 / get.seconds());
      const Bytes value(bytes, 1);
      const ObjectRef<Bytes> put = runtime.Put(value);
      const Stopwatch take;
      runtime.Get(runtime.CallWith<Take>(there, ObjectRef<View>(put.handle())));
      takes.push_back(static_cast<double>(bytes) * 1e-9 / take.seconds());
    }
    PrintResult(fmt::format(R"("bytes": {}, "get_gb_s": {:.3f}, "take_gb_s": {:.3f})", bytes,
                            Percentile(gets, .5), Percentile(takes, .5)));
  }
}

// ---- One value for all.

// What the kernel says that this process has sent over TCP.
std::uint64_t SentBytes() {
  std::uint64_t sent = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    tcp_info info{};
    socklen_t length = sizeof(info);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
      sent += info.tcpi_bytes_acked;
    }
  }
  return sent;
}

void Broadcast(const Settings& settings) {
  constexpr std::size_t kBytes = 100'000'000;
  constexpr int kStay = 1000;  // Milliseconds, so that each worker does one call.
  const int readers = settings.nodes * settings.workers;
  Runtime runtime;
  const auto call_all = [&](const ObjectRef<Bytes>& value) {
    std::vector<ObjectRef<std::size_t>> results;
    for (int i = 0; i < readers; ++i) {
      results.push_back(runtime.Call<TakeAndStay>(ObjectRef<View>(value.handle()), kStay));
    }
    runtime.Get(results);
  };
  call_all(runtime.Put(Bytes(10)));  // All workers are there.
  const ObjectRef<Bytes> value = runtime.Put(Bytes(kBytes, 7));
  const std::uint64_t before = SentBytes();
  const Stopwatch watch;
  call_all(value);
  const double seconds = watch.seconds() - kStay * 1e-3;
  PrintResult(fmt::format(R"("readers": {}, "nodes": {}, "seconds": {:.3f}, "times_sent": {:.2f})",
                          readers, settings.nodes, seconds,
                          static_cast<double>(SentBytes() - before) / kBytes));
}

// ---- Calls go to their arguments.

// Mean milliseconds of calls that read values of so many bytes, each made on one of the nodes.
// `options` says where the call for a value of node i may run.
double ReadingMilliseconds(const Settings& settings, Runtime& runtime, std::size_t bytes,
                           const std::function<CallOptions(int node)>& options) {
  std::vector<double> times;
  std::minstd_rand random(1);
  for (const Stopwatch all; all.seconds() < settings.seconds || times.size() < 10;) {
    const int node = 1 + static_cast<int>(random() % static_cast<unsigned>(settings.nodes));
    const ObjectRef<Bytes> made = runtime.CallWith<Make>(OnNode(node), bytes);
    runtime.Wait(std::vector{made});
    const Stopwatch watch;
    runtime.Get(runtime.CallWith<Take>(options(node), ObjectRef<View>(made.handle())));
    times.push_back(watch.seconds() * 1e3);
  }
  return Percentile(times, .5);
}

void Locality(const Settings& settings) {
  for (const std::size_t bytes : {100'000U, 1'000'000U, 10'000'000U, 100'000'000U}) {
    Runtime runtime;
    const double aware =
        ReadingMilliseconds(settings, runtime, bytes, [](int) { return CallOptions{}; });
    const double unaware = ReadingMilliseconds(
        settings, runtime, bytes, [&](int node) { return OnNode(node % settings.nodes + 1); });
    PrintResult(fmt::format(R"("bytes": {}, "aware_ms": {:.3f}, "elsewhere_ms": {:.3f})", bytes,
                            aware, unaware));
  }
}

int Main(int argc, char** argv) {
  const std::map<std::string, void (*)(const Settings&)> parts{{"latency", Latency},
                                                               {"calls", Calls},
                                                               {"bytes", BytesOfOthers},
                                                               {"broadcast", Broadcast},
                                                               {"locality", Locality}};
  Settings settings;
  std::string part;
  CLI::App app("Measures what a cluster, that of MENGER_ADDRESS, costs a program and wins for it.");
  app.add_option("--part", part, "what is measured")->required()->check(CLI::IsMember(parts));
  app.add_option("--nodes", settings.nodes, "nodes there are; node i has the resource n<i>");
  app.add_option("--workers", settings.workers, "CPUs of each node");
  app.add_option("--seconds", settings.seconds, "of a measurement");
  CLI11_PARSE(app, argc, argv);
  parts.at(part)(settings);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_nodes", menger::bench::Main, argc, argv);
}
