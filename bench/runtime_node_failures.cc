// What do deaths of nodes cost? Work whose results are known, on the cluster of MENGER_ADDRESS,
// while whoever started its nodes kills some: bench/runtime_node_failures.py does. (Moritz et al.
// 2018, "Ray", figures 11a and 11b, ask the same.)
//
//   bench_runtime_node_failures chains [--seconds S]
//   bench_runtime_node_failures actors [--seconds S] [--checkpoint-every N]
//   bench_runtime_node_failures calls  [--calls N]
//
// chains: of calls that sleep for 10 ms, whose values of 100 KiB lie on the nodes. actors: 200,
// each in a process, that are called in rounds. calls: so many empty ones, and what the driver's
// memory is meanwhile. Every value is checked; rates are said by quarters of a second.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "checked_work.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/watching/job_socket.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience{120};
constexpr milliseconds kBin{250};

struct Settings {
  std::string part;
  double seconds = 16;
  int checkpoint_every = 10;
  std::size_t calls = 10'000'000;
};

nlohmann::json TaskCounts() {
  std::string answer;
  AskJob(
      FindJob(std::to_string(getpid())), "status", [&](std::string_view piece) { answer += piece; },
      Deadline::After(kPatience));
  return nlohmann::json::parse(answer)["tasks"];
}

// Calls that were done a second, bin by bin, until it is ended.
class RateWatch {
 public:
  RateWatch() : thread_(ThreadOptions{.name = "rates"}, [this] { Watch(); }) {}
  ~RateWatch() { over_ = true; }
  RateWatch(const RateWatch&) = delete;
  RateWatch& operator=(const RateWatch&) = delete;

  std::vector<int> End() {
    over_ = true;
    thread_.Join();
    return rates_;
  }

 private:
  void Watch() {
    std::int64_t before = TaskCounts()["finished"];
    for (Stopwatch watch; !over_;) {
      std::this_thread::sleep_for(kBin);
      const std::int64_t now = TaskCounts()["finished"];
      rates_.push_back(static_cast<int>(static_cast<double>(now - before) / watch.seconds()));
      before = now;
      watch = Stopwatch();
    }
  }

  std::atomic<bool> over_ = false;
  std::vector<int> rates_;
  Thread thread_;
};

void Print(const Settings& settings, std::size_t checked, RateWatch& watch) {
  const nlohmann::json tasks = TaskCounts();
  PrintResult(fmt::format(
      R"("part": "{}", "checked": {}, "run_again": {}, "rebuilt": {}, "per_second": {})",
      settings.part, checked, tasks["retried"].get<std::int64_t>(),
      tasks["rebuilt"].get<std::int64_t>(), nlohmann::json(watch.End()).dump()));
}

// ---- Chains.

constexpr std::size_t kChains = 24;
constexpr std::size_t kAhead = 50;  // Links of each that wait.

void RunChains(const Settings& settings) {
  Runtime runtime;
  const CallOptions options{.retries = 100, .name = "link"};
  std::vector<std::deque<ObjectRef<Values>>> chains(kChains);
  for (std::size_t i = 0; i < kChains; ++i) {
    chains[i].push_back(runtime.CallWith<FirstLink>(options, i));
  }
  std::vector<std::size_t> links(kChains, 0);
  RateWatch rates;
  for (const Stopwatch watch; watch.seconds() < settings.seconds;) {
    for (std::size_t i = 0; i < kChains; ++i) {
      while (chains[i].size() < kAhead) {
        chains[i].push_back(runtime.CallWith<Link>(options, chains[i].back()));
        ++links[i];
      }
      const auto ready = runtime.Wait(std::vector{chains[i][1]}, {.timeout = milliseconds(1)});
      if (!ready.ready.empty()) chains[i].pop_front();
    }
  }
  for (std::size_t i = 0; i < kChains; ++i) {
    if (runtime.Get(chains[i].back(), kPatience) != LinkAt(i, links[i])) {
      throw DataLoss("chain {} of {} links is wrong", i, links[i]);
    }
  }
  std::size_t all = 0;
  for (const std::size_t count : links) all += count;
  Print(settings, all, rates);
}

// ---- Actors.

constexpr std::size_t kActors = 200;
constexpr std::size_t kRoundsAhead = 4;

void RunActors(const Settings& settings) {
  Runtime runtime;
  std::vector<ActorRef<Simulator>> actors;
  std::vector<Simulator> expected;  // The same, here.
  for (std::size_t i = 0; i < kActors; ++i) {
    actors.push_back(
        runtime.CreateActor<Simulator>({.checkpoint_every = settings.checkpoint_every}, i));
    expected.emplace_back(i);
  }
  std::deque<std::vector<ObjectRef<std::uint64_t>>> rounds;
  std::size_t begun = 0;
  std::size_t done = 0;
  const auto check_first = [&] {
    const std::vector<std::uint64_t> results = runtime.Get(rounds.front(), kPatience);
    for (std::size_t i = 0; i < kActors; ++i) {
      if (results[i] != expected[i].Advance(done)) {
        throw DataLoss("round {} of actor {} is wrong", done, i);
      }
    }
    rounds.pop_front();
    ++done;
  };
  RateWatch rates;
  for (const Stopwatch watch; watch.seconds() < settings.seconds; check_first()) {
    for (; rounds.size() < kRoundsAhead; ++begun) {
      rounds.emplace_back();
      for (const auto& actor : actors) rounds.back().push_back(actor.Call<&Simulator::Step>(begun));
    }
  }
  while (!rounds.empty()) check_first();
  Print(settings, done * kActors, rates);
}

// ---- Many calls.

double MebibytesHeld() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

int Plus(int value) { return value + 1; }

void RunCalls(const Settings& settings) {
  constexpr std::size_t kBatch = 10'000;
  Runtime runtime;
  std::vector<double> held;
  const Stopwatch watch;
  for (std::size_t done = 0; done < settings.calls; done += kBatch) {
    std::vector<ObjectRef<int>> results;
    for (std::size_t i = 0; i < kBatch; ++i)
      results.push_back(runtime.Call<Plus>(static_cast<int>(done + i)));
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (runtime.Get(results[i], kPatience) != static_cast<int>(done + i + 1)) {
        throw DataLoss("call {} is wrong", done + i);
      }
    }
    if (done * 10 / settings.calls != (done + kBatch) * 10 / settings.calls) {
      held.push_back(MebibytesHeld());
    }
  }
  PrintResult(
      fmt::format(R"("part": "calls", "checked": {}, "calls_per_second": {:.6g}, "driver_mib": {})",
                  settings.calls, static_cast<double>(settings.calls) / watch.seconds(),
                  nlohmann::json(held).dump()));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Does work whose results are known on the cluster of MENGER_ADDRESS.");
  app.add_option("part", settings.part, "chains, actors, calls")
      ->required()
      ->check(CLI::IsMember({"chains", "actors", "calls"}));
  app.add_option("--seconds", settings.seconds, "for which chains and actors go on");
  app.add_option("--checkpoint-every", settings.checkpoint_every, "calls, of actors");
  app.add_option("--calls", settings.calls, "of the part calls");
  CLI11_PARSE(app, argc, argv);
  if (settings.part == "chains") RunChains(settings);
  if (settings.part == "actors") RunActors(settings);
  if (settings.part == "calls") RunCalls(settings);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) return menger::WorkerMain();
  return menger::bench::RunProgram("bench_runtime_node_failures", menger::bench::Main, argc, argv);
}
