// What do deaths cost? Work whose result is known goes on while its worker processes are killed.
// (Moritz et al. 2018, "Ray", figures 11a and 11b, ask the same.)
//
//   bench_runtime_failures tasks  [--timeline FILE] [--start-seconds S]
//   bench_runtime_failures actors [--timeline FILE] [--checkpoint-every N] [--seconds S]
//
// tasks: chains of calls on eight workers that are killed one after the other, ever faster, then
// all at once. With --start-seconds a worker needs so long to come back, as one does that loads
// much, and fewer are killed. actors: 200, each in a process, 40 of which are killed. With
// --checkpoint-every 0 the program makes what it has lost again: new actors, and all their calls
// from the first. Calls sleep, so that what counts is how many workers there are and not how many
// cores.
//
// FILE gets what the job says to `menger timeline`: bench/runtime_failures.py makes plots of it.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "checked_work.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/base/thread.h"
#include "menger/runtime/runtime.h"
#include "menger/runtime/watching/job_socket.h"
#include "menger/runtime/worker_main.h"
#include "program.h"
#include "rates.h"

namespace menger::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience{60};

struct Settings {
  std::string part;
  std::string timeline;
  std::uint32_t checkpoint_every = 10;
  double seconds = 12;
  double start_seconds = 0;
};

std::string AskThisJob(std::string_view question) {
  std::string answer;
  AskJob(
      FindJob(std::to_string(getpid())), question, [&](std::string_view piece) { answer += piece; },
      Deadline::After(kPatience));
  return answer;
}

void WriteTimeline(const Settings& settings) {
  if (settings.timeline.empty()) return;
  std::ofstream file(settings.timeline);
  file << AskThisJob("timeline");
  if (!file.flush()) throw Unavailable("{} cannot be written", settings.timeline);
}

void SleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// ---- Tasks.

constexpr std::size_t kWorkers = 8;
constexpr std::size_t kChains = 24;  // Three a worker: one that dies holds few others up.
constexpr std::size_t kLinks = 800;
constexpr int kRetries = 100;

// For so long, every so often, so many are killed.
struct Phase {
  double seconds = 0;
  double every = 0;
  std::size_t together = 0;
};
constexpr Phase kSwiftReturn[] = {
    {4, 4, 0}, {4, .5, 1}, {4, .1, 1}, {4, .02, 1}, {4, .5, kWorkers}};
constexpr Phase kSlowReturn[] = {{4, 4, 0}, {2, .5, 1}, {6, 6, 0}, {.5, .5, kWorkers}};

constexpr const char* kStartVariable = "MENGER_BENCH_START_SECONDS";

std::vector<pid_t> WorkerProcesses() {
  const auto status = nlohmann::json::parse(AskThisJob("status"));
  std::vector<pid_t> processes;
  for (const auto& worker : status["workers"]) processes.push_back(worker["process"]);
  return processes;
}

int KillSome(Random& random, std::size_t count) {
  std::vector<pid_t> processes = WorkerProcesses();
  random.Shuffle(std::span(processes));
  processes.resize(std::min(count, processes.size()));
  for (const pid_t process : processes) kill(process, SIGKILL);
  return static_cast<int>(processes.size());
}

nlohmann::json TaskCounts() { return nlohmann::json::parse(AskThisJob("status"))["tasks"]; }

void PrintPhase(double seconds, int killed, const nlohmann::json& before) {
  const nlohmann::json now = TaskCounts();
  const auto since = [&](const char* what) {
    return now[what].get<std::int64_t>() - before[what].get<std::int64_t>();
  };
  PrintResult(fmt::format(
      R"("part": "phase", "seconds": {:.4g}, "killed": {}, "done": {}, "run_again": {}, "rebuilt": {})",
      seconds, killed, since("finished"), since("retried"), since("rebuilt")));
}

void KillByPhases(std::span<const Phase> phases) {
  Random random = Random::FromSeed(1);
  for (const Phase& phase : phases) {
    const nlohmann::json before = TaskCounts();
    const Stopwatch watch;
    int killed = 0;
    for (int i = 1; i * phase.every <= phase.seconds; ++i) {
      SleepFor(i * phase.every - watch.seconds());
      killed += KillSome(random, phase.together);
    }
    PrintPhase(watch.seconds(), killed, before);
  }
}

void CheckChains(Runtime& runtime, const std::vector<ObjectRef<Values>>& ends) {
  for (std::size_t chain = 0; chain < kChains; ++chain) {
    if (runtime.Get(ends[chain], kPatience) != LinkAt(chain, kLinks)) {
      throw DataLoss("chain {} is wrong", chain);
    }
  }
}

void RunTasks(const Settings& settings) {
  RuntimeOptions options{.workers = static_cast<int>(kWorkers)};
  if (settings.start_seconds > 0) {
    options.worker_program.variables = {{kStartVariable, std::to_string(settings.start_seconds)}};
  }
  Runtime runtime(options);
  std::vector<ObjectRef<Values>> ends;
  for (std::size_t chain = 0; chain < kChains; ++chain)
    ends.push_back(runtime.Put(FirstLink(chain)));
  for (std::size_t i = 0; i < kLinks; ++i) {
    for (auto& end : ends) {
      end = runtime.CallWith<Link>({.retries = kRetries, .name = "link"}, end);
    }
  }
  while (WorkerProcesses().size() < kWorkers) SleepFor(0.01);
  if (settings.start_seconds > 0) {
    KillByPhases(kSlowReturn);
  } else {
    KillByPhases(kSwiftReturn);
  }
  const nlohmann::json before = TaskCounts();
  const Stopwatch watch;
  runtime.Wait(ends, {.count = kChains});
  PrintPhase(watch.seconds(), 0, before);
  WriteTimeline(settings);
  CheckChains(runtime, ends);
}

// ---- Actors.

constexpr std::size_t kGroups = 10;
constexpr std::size_t kGroupsKilled = 2;
constexpr std::size_t kActorsOfGroup = 20;
constexpr std::size_t kRoundsAhead = 4;
// Actors that are lost together, and a thread that calls them: one call of each is a round.
class Group {
 public:
  Group(Runtime& runtime, std::size_t number, std::uint32_t checkpoint_every)
      : runtime_(runtime), number_(number), checkpoint_every_(checkpoint_every) {
    for (std::size_t i = 0; i < kActorsOfGroup; ++i) expected_.emplace_back(SeedOf(i));
    MakeActors();
  }

  std::vector<pid_t> Processes() {
    std::vector<pid_t> processes;
    for (const auto& actor : actors_) {
      processes.push_back(runtime_.Get(actor.Call<&Simulator::Process>(), kPatience));
    }
    return processes;
  }

  void Run(double seconds) {
    const Stopwatch watch;
    for (double before = 0; before < seconds;) {
      while (rounds_.size() < kRoundsAhead)
        rounds_.push_back(CallAll(done_ + rounds_.size(), "step"));
      CheckRound(Fetch());
      longest_ = std::max(longest_, watch.seconds() - before);
      before = watch.seconds();
    }
  }

  std::size_t done() const { return done_; }
  double longest() const { return longest_; }  // Seconds that a round took to come.

 private:
  using Round = std::vector<ObjectRef<std::uint64_t>>;

  std::uint64_t SeedOf(std::size_t i) const { return number_ * kActorsOfGroup + i; }

  void MakeActors() {
    actors_.clear();
    for (std::size_t i = 0; i < kActorsOfGroup; ++i) {
      actors_.push_back(runtime_.CreateActor<Simulator>(
          {.checkpoint_every = static_cast<int>(checkpoint_every_)}, SeedOf(i)));
    }
  }

  Round CallAll(std::size_t round, std::string_view name) {
    Round results;
    for (const auto& actor : actors_) {
      results.push_back(actor.CallWith<&Simulator::Step>(name, round));
    }
    return results;
  }

  std::vector<std::uint64_t> Fetch() {
    for (;;) {
      try {
        return runtime_.Get(rounds_.front(), kPatience);
      } catch (const TaskError& error) {
        if (error.kind() != FailureKind::kActorDied || checkpoint_every_ > 0) throw;
        StartAgain();
      }
    }
  }

  // What a program must do whose actors are not checkpointed.
  void StartAgain() {
    MakeActors();
    for (std::size_t round = 0; round < done_; ++round) CallAll(round, "step again");
    for (std::size_t i = 0; i < rounds_.size(); ++i) rounds_[i] = CallAll(done_ + i, "step");
  }

  void CheckRound(const std::vector<std::uint64_t>& results) {
    for (std::size_t i = 0; i < kActorsOfGroup; ++i) {
      if (results[i] != expected_[i].Advance(done_)) {
        throw DataLoss("round {} of actor {} is wrong", done_, SeedOf(i));
      }
    }
    rounds_.pop_front();
    ++done_;
  }

  Runtime& runtime_;
  const std::size_t number_;
  const std::uint32_t checkpoint_every_;
  std::vector<ActorRef<Simulator>> actors_;
  std::vector<Simulator> expected_;  // The same, here.
  std::deque<Round> rounds_;         // Under way; the first has number done_.
  std::size_t done_ = 0;
  double longest_ = 0;
};

void RunActors(const Settings& settings) {
  Runtime runtime({.workers = 1});
  std::deque<Group> groups;
  for (std::size_t i = 0; i < kGroups; ++i)
    groups.emplace_back(runtime, i, settings.checkpoint_every);
  std::vector<pid_t> processes;
  for (std::size_t i = 0; i < kGroupsKilled; ++i) {
    for (const pid_t process : groups[i].Processes()) processes.push_back(process);
  }
  {
    std::vector<Thread> threads;
    for (Group& group : groups) {
      threads.emplace_back(ThreadOptions{.name = "group"}, [&] { group.Run(settings.seconds); });
    }
    SleepFor(settings.seconds / 3);
    for (const pid_t process : processes) kill(process, SIGKILL);
    for (Thread& thread : threads) thread.Join();
  }
  WriteTimeline(settings);
  std::size_t calls = 0;
  for (const Group& group : groups) calls += group.done() * kActorsOfGroup;
  double longest = 0;
  for (std::size_t i = 0; i < kGroupsKilled; ++i) longest = std::max(longest, groups[i].longest());
  PrintResult(fmt::format(
      R"("part": "actors", "seconds": {}, "actors": {}, "lost": {}, "calls": {}, "waited_seconds": {:.4g})",
      settings.seconds, kGroups * kActorsOfGroup, kGroupsKilled * kActorsOfGroup, calls, longest));
}

void StartSlowly() {
  const char* const seconds = std::getenv(kStartVariable);
  if (seconds != nullptr) SleepFor(std::strtod(seconds, nullptr));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures what the deaths of workers cost.");
  app.add_option("part", settings.part, "tasks, actors")
      ->required()
      ->check(CLI::IsMember({"tasks", "actors"}));
  app.add_option("--timeline", settings.timeline, "file for what happened when");
  app.add_option("--start-seconds", settings.start_seconds, "that a worker of tasks needs");
  app.add_option("--checkpoint-every", settings.checkpoint_every, "calls; 0: not at all");
  app.add_option("--seconds", settings.seconds, "of actors; after a third of it two die");
  CLI11_PARSE(app, argc, argv);
  (settings.part == "tasks" ? RunTasks : RunActors)(settings);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  if (menger::IsWorker()) {
    menger::bench::StartSlowly();
    return menger::WorkerMain();
  }
  return menger::bench::RunProgram("bench_runtime_failures", menger::bench::Main, argc, argv);
}
