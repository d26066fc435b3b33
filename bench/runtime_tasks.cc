// What does a call cost? Empty calls a second, in one process and across processes; how long one
// call takes from the wish to its result, beside a bare wake of a thread and back after the same
// pause; whether memory stays flat over many calls; what actors cost that do nothing.
//
//   bench_runtime_tasks [--parts rate latency soak idle] [--isolation process thread] [--seconds S]
//                       [--calls N] [--control-folder FOLDER] [--actors N...] [--actor-calls N]
//
// By the default options, with reference counting. One driver thread; results are fetched.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "menger/base/epoch_counter.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

constexpr int kBatch = 10'000;  // Calls that are under way together.
constexpr int kSamplesOfSoak = 10;
constexpr int kSleepyCalls = 300;
constexpr double kBusySeconds = 1e-3;            // After which the peer sleeps.
constexpr std::chrono::milliseconds kSleep{10};  // After which everybody sleeps.
constexpr std::chrono::seconds kEchoDeadline{10};

struct Settings {
  std::vector<std::string> parts{"rate", "latency", "soak"};
  std::vector<std::string> isolations{"process", "thread"};
  double seconds = 1;
  int workers = 0;
  std::int64_t calls = 10'000'000;
  std::string control_folder;
  std::vector<int> actors{0, 40, 200, 1000};
  std::int64_t actor_calls = 0;
};

int Nothing(int x) { return x; }

struct Idler {
  int Nothing(int x) { return x; }
};

void CallBatch(Runtime& runtime) {
  std::vector<ObjectRef<int>> results;
  results.reserve(kBatch);
  for (int i = 0; i < kBatch; ++i) results.push_back(runtime.Call<Nothing>(i));
  runtime.Get(results);
}

void MeasureCalls(Runtime& runtime, const std::string& isolation, const Settings& settings) {
  const Rate rate = MeasureRate(settings.seconds, kBatch, [&] { CallBatch(runtime); });
  PrintResult(
      fmt::format(R"("part": "rate", "isolation": "{}", "per_second": {:.6g}, "deviation": {:.3g})",
                  isolation, rate.mean, rate.deviation));
}

// What a call can cost at the least: a thread that sleeps is woken and answers.
class Echo {
 public:
  Echo() : thread_([this] { Answer(); }) {}
  ~Echo() {
    stopping_ = true;
    question_.Advance();
    thread_.join();
  }
  void Ask() {
    const std::uint32_t seen = answer_.value();
    question_.Advance();
    answer_.WaitPast(seen, kEchoDeadline);
  }

 private:
  void Answer() {
    for (std::uint32_t seen = 0; !stopping_; answer_.Advance()) {
      while (!question_.TryWaitFor(seen + 1, kEchoDeadline)) {
      }
      seen = question_.value();
    }
  }

  EpochCounter question_;
  EpochCounter answer_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

void KeepBusy() {
  for (const Stopwatch watch; watch.seconds() < kBusySeconds;) {
  }
}

template <typename Pause, typename Step>
std::vector<double> TimesAfter(Pause pause, Step step) {
  std::vector<double> times;
  for (int i = 0; i < kSleepyCalls; ++i) {
    pause();
    const Stopwatch watch;
    step();
    times.push_back(static_cast<double>(watch.nanoseconds()));
  }
  return times;
}

void PrintLatency(const std::string& isolation, std::string_view peer, std::vector<double> times,
                  std::vector<double> wakes) {
  PrintResult(fmt::format(
      R"("part": "latency", "isolation": "{}", "peer": "{}", "p50_us": {:.4g}, "p99_us": {:.4g}, "wake_p50_us": {:.4g}, "calls": {})",
      isolation, peer, Percentile(times, 0.5) * 1e-3, Percentile(times, 0.99) * 1e-3,
      Percentile(wakes, 0.5) * 1e-3, times.size()));
}

void MeasureLatency(Runtime& runtime, const std::string& isolation, const Settings& settings) {
  const auto call = [&] { runtime.Get(runtime.Call<Nothing>(1)); };
  const auto no_pause = [] {};
  const auto sleep = [] { std::this_thread::sleep_for(kSleep); };
  Echo echo;
  const auto wake = [&] { echo.Ask(); };
  for (const Stopwatch watch; watch.seconds() < settings.seconds;) call();
  std::vector<double> times;
  for (const Stopwatch watch; watch.seconds() < settings.seconds;) {
    const std::vector<double> more = TimesAfter(no_pause, call);
    times.insert(times.end(), more.begin(), more.end());
  }
  TimesAfter(no_pause, wake);  // Until it spins, too.
  PrintLatency(isolation, "spinning", times, TimesAfter(no_pause, wake));
  PrintLatency(isolation, "sleeping", TimesAfter(KeepBusy, call), TimesAfter(KeepBusy, wake));
  PrintLatency(isolation, "sleeping, as the caller was", TimesAfter(sleep, call),
               TimesAfter(sleep, wake));
}

// Of this process, in MiB.
double ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * 4096 / (1 << 20);
}

void MeasureMemory(Runtime& runtime, const std::string& isolation, const Settings& settings) {
  std::string samples;
  const Stopwatch watch;
  for (int sample = 0; sample <= kSamplesOfSoak; ++sample) {
    fmt::format_to(std::back_inserter(samples), "{}{:.1f}", sample > 0 ? ", " : "",
                   ResidentMemory());
    if (sample == kSamplesOfSoak) break;
    for (std::int64_t done = 0; done < settings.calls / kSamplesOfSoak; done += kBatch) {
      CallBatch(runtime);
    }
  }
  PrintResult(fmt::format(
      R"("part": "soak", "isolation": "{}", "calls": {}, "per_second": {:.6g}, "driver_mib": [{}])",
      isolation, settings.calls, static_cast<double>(settings.calls) / watch.seconds(), samples));
}

// Seconds of a CPU that the process has used, to the nanosecond.
double CpuSeconds(const std::string& process) {
  double nanoseconds = 0;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    double used = 0;
    std::ifstream(thread.path() / "schedstat") >> used;
    nanoseconds += used;
  }
  return nanoseconds * 1e-9;
}

double CpuSecondsOfWorkers() {
  double seconds = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(thread.path() / "children");
    for (std::string child; children >> child;) seconds += CpuSeconds(child);
  }
  return seconds;
}

// MiB of shared memory that this process has touched: rings, above all.
double SharedMemoryMib() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kilobytes = 0;
    if (word == "RssShmem:" && file >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

// The least of ten medians: other programs of the machine decide how often both ends fall asleep,
// which costs many times what is asked here.
double MedianOfCalls(Runtime& runtime, double seconds) {
  double least = std::numeric_limits<double>::infinity();
  for (int window = 0; window < 10; ++window) {
    std::vector<double> times;
    for (const Stopwatch watch; watch.seconds() < seconds / 5;) {
      const Stopwatch call;
      runtime.Get(runtime.Call<Nothing>(1));
      times.push_back(static_cast<double>(call.nanoseconds()));
    }
    least = std::min(least, Percentile(times, 0.5) * 1e-3);
  }
  return least;
}

// So long nothing happens before it is measured what that costs.
constexpr std::chrono::seconds kRest{10};
constexpr std::chrono::seconds kIdle{20};

void MeasureIdle(const Settings& settings, int count) {
  Runtime runtime({.workers = settings.workers});
  std::vector<ActorRef<Idler>> actors;
  std::vector<ObjectRef<int>> results;
  const Stopwatch start;
  for (int i = 0; i < count; ++i) {
    actors.push_back(runtime.CreateActor<Idler>({}));
    results.push_back(actors.back().Call<&Idler::Nothing>(i));
  }
  runtime.Get(results);
  const double start_seconds = start.seconds();
  for (ActorRef<Idler>& actor : actors) {
    for (std::int64_t done = 0; done < settings.actor_calls; done += kBatch) {
      results.clear();
      for (int i = 0; i < kBatch; ++i) results.push_back(actor.Call<&Idler::Nothing>(i));
      runtime.Get(results);
    }
  }
  results.clear();
  const double busy_mib = SharedMemoryMib();
  const double p50_us = MedianOfCalls(runtime, settings.seconds);
  std::this_thread::sleep_for(kRest);
  // What it costs to ask a thousand processes is left out.
  const double workers_before = CpuSecondsOfWorkers();
  const double own_before = CpuSeconds("self");
  const Stopwatch idle;
  std::this_thread::sleep_for(kIdle);
  const double own = CpuSeconds("self") - own_before;
  const double seconds = idle.seconds();
  const double cpu_percent = 100 * (own + CpuSecondsOfWorkers() - workers_before) / seconds;
  PrintResult(fmt::format(
      R"("part": "idle", "actors": {}, "start_s": {:.3g}, "calls_each": {}, "p50_us": {:.4g}, "cpu_percent": {:.3g}, "shared_mib": {:.4g}, "shared_idle_mib": {:.4g})",
      count, start_seconds, settings.actor_calls, p50_us, cpu_percent, busy_mib,
      SharedMemoryMib()));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures what a call costs.");
  app.add_option("--parts", settings.parts, "rate, latency, soak, idle")
      ->check(CLI::IsMember({"rate", "latency", "soak", "idle"}));
  app.add_option("--isolation", settings.isolations, "process, thread")
      ->check(CLI::IsMember({"process", "thread"}));
  app.add_option("--seconds", settings.seconds, "of each measurement");
  app.add_option("--workers", settings.workers, "0: one a CPU");
  app.add_option("--calls", settings.calls, "of the soak");
  app.add_option("--control-folder", settings.control_folder, "keep the control state on the disk");
  app.add_option("--actors", settings.actors, "that do nothing, of idle");
  app.add_option("--actor-calls", settings.actor_calls, "that each of them did before");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& isolation : settings.isolations) {
    for (const std::string& part : settings.parts) {
      if (part == "idle") continue;
      Runtime runtime(
          {.workers = settings.workers,
           .isolation = isolation == "thread" ? Isolation::kThread : Isolation::kProcess,
           .control_folder = settings.control_folder});
      (part == "rate"      ? MeasureCalls
       : part == "latency" ? MeasureLatency
                           : MeasureMemory)(runtime, isolation, settings);
    }
  }
  // Threads have no idle actors: these take turns on those of the pool.
  if (std::count(settings.parts.begin(), settings.parts.end(), "idle") > 0) {
    for (const int count : settings.actors) MeasureIdle(settings, count);
  }
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_tasks", menger::bench::Main, argc, argv);
}
