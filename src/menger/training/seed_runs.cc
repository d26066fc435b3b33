#include "menger/training/seed_runs.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "menger/base/child_process.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/training/run_table.h"
#include "menger/training/seed_plan.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr double kProgressSeconds = 0.5;
constexpr int kRefused = 2;  // The exit status for what the user must change.

// Equal shares of the CPUs, as far as they go round.
std::vector<std::vector<int>> SharesOfCpus(int count) {
  const std::vector<int> cpus = AvailableCpuList();
  const std::size_t each = cpus.size() / static_cast<std::size_t>(count);
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(count));
  if (each == 0) return shares;  // Everybody may use all.
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto begin = cpus.begin() + static_cast<std::ptrdiff_t>(i * each);
    shares[i].assign(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return shares;
}

class Trainer {
 public:
  Trainer(const SeedRuns& runs,
          const std::function<void(std::int64_t seed, const RunOutcome&)>& ended,
          const RunContext& context)
      : runs_(runs),
        ended_(ended),
        context_(context),
        waiting_(runs.seeds.begin(), runs.seeds.end()),
        free_(SharesOfCpus(runs.side_by_side)) {
    for (const std::int64_t seed : runs.seeds) {
      if (IsThere(seed)) steps_before_[seed] = DescribeRun(FolderOf(seed)).steps;
    }
  }

  std::vector<SeedFailure> Train() {
    while (true) {
      if (context_.stop_requested()) Stop();
      StartThoseThatFit();
      if (running_.empty()) break;
      ShowProgress();
      for (const auto& [seed, end] : AwaitEnds()) Conclude(seed, end);
    }
    std::ranges::sort(failures_, {}, &SeedFailure::seed);
    return std::move(failures_);
  }

 private:
  struct Running {
    ChildId child = 0;
    std::vector<int> cpus;
    bool signalled = false;
  };

  std::string FolderOf(std::int64_t seed) const { return SeedFolder(runs_.folder, seed); }
  bool IsThere(std::int64_t seed) const {
    return std::filesystem::exists(FolderOf(seed) + "/experiment.toml");
  }

  void StartThoseThatFit() {
    while (!waiting_.empty() && !free_.empty()) {
      const std::int64_t seed = waiting_.front();
      waiting_.pop_front();
      ChildProgram program = runs_.program(seed);
      program.heeds_signals = true;
      program.cpus = std::move(free_.back());
      free_.pop_back();
      Running& running = running_[seed];
      running.cpus = program.cpus;
      running.child = children_.Start(std::move(program), EventsOf(seed));
    }
  }

  ChildEvents EventsOf(std::int64_t seed) {
    return {.on_start = [this, seed](pid_t) { NoteStart(seed); },
            .on_line =
                [this, seed](std::string_view line) {
                  context_.progress.Pass(fmt::format("seed {}: {}", seed, line));
                },
            .on_end = [this, seed](const ChildEnd& end) { Note(seed, end); }};
  }

  // These two on the thread that watches the children.
  void NoteStart(std::int64_t seed) {
    const std::lock_guard lock(mutex_);
    started_.insert(seed);
  }
  void Note(std::int64_t seed, const ChildEnd& end) {
    const std::lock_guard lock(mutex_);
    ends_.emplace_back(seed, end);
    noted_.notify_one();
  }

  std::vector<std::pair<std::int64_t, ChildEnd>> AwaitEnds() {
    std::unique_lock lock(mutex_);
    noted_.wait_for(lock, kLook, [this] { return !ends_.empty(); });
    return std::exchange(ends_, {});
  }

  // Each gets one signal, once it runs: a second one would end it before it has saved.
  void Stop() {
    stopping_ = true;
    waiting_.clear();
    for (auto& [seed, running] : running_) {
      if (running.signalled || !HasStarted(seed)) continue;
      children_.Signal(running.child, SIGTERM);
      running.signalled = true;
    }
  }

  bool HasStarted(std::int64_t seed) {
    const std::lock_guard lock(mutex_);
    return started_.contains(seed);
  }

  void Conclude(std::int64_t seed, const ChildEnd& end) {
    free_.push_back(std::move(running_.at(seed).cpus));
    running_.erase(seed);
    const int status = end.wait_status;
    const bool exited = end.started && WIFEXITED(status);
    const bool interrupted =
        stopping_ && (exited ? WEXITSTATUS(status) == 128 + SIGTERM : WIFSIGNALED(status));
    if (interrupted && !std::filesystem::exists(FolderOf(seed) + "/summary.json")) return;
    if (interrupted || (exited && WEXITSTATUS(status) == 0)) {
      const RunOutcome outcome = ReadOutcome(FolderOf(seed));
      steps_done_ += outcome.counters.steps;
      ended_(seed, outcome);
      return;
    }
    const bool refused = exited && WEXITSTATUS(status) == kRefused;
    failures_.push_back({.seed = seed, .cause = end.cause, .refused = refused});
    if (refused) waiting_.clear();
  }

  std::int64_t StepsBefore(std::int64_t seed) const {
    const auto found = steps_before_.find(seed);
    return found == steps_before_.end() ? 0 : found->second;
  }

  // Steps of all, and the mean return of those that have one.
  void ShowProgress() {
    if (since_shown_.seconds() < kProgressSeconds) return;
    since_shown_.Restart();
    ProgressState state{.steps = steps_done_,
                        .steps_total = runs_.steps * static_cast<std::int64_t>(runs_.seeds.size())};
    for (const std::int64_t seed : waiting_) state.steps += StepsBefore(seed);
    double sum = 0;
    int known = 0;
    for (const auto& [seed, running] : running_) {
      if (!IsThere(seed)) continue;
      const RunRow row = DescribeRun(FolderOf(seed));
      state.steps += row.steps;
      if (!row.last_return) continue;
      sum += *row.last_return;
      ++known;
    }
    if (known > 0) state.return_mean = sum / known;
    std::int64_t done = state.steps;
    for (const auto& [seed, steps] : steps_before_) done -= steps;
    if (done > 0) {
      state.steps_per_second = static_cast<double>(done) / since_start_.seconds();
      state.seconds_left =
          static_cast<double>(state.steps_total - state.steps) / state.steps_per_second;
    }
    context_.progress.Update(state);
  }

  const SeedRuns& runs_;
  const std::function<void(std::int64_t seed, const RunOutcome&)>& ended_;
  const RunContext& context_;

  std::deque<std::int64_t> waiting_;
  std::vector<std::vector<int>> free_;  // Shares of the CPUs.
  std::map<std::int64_t, Running> running_;
  std::vector<SeedFailure> failures_;
  bool stopping_ = false;
  std::map<std::int64_t, std::int64_t> steps_before_;  // Of those that go on.
  std::int64_t steps_done_ = 0;                        // Of those that have ended.
  Stopwatch since_start_;
  Stopwatch since_shown_;

  std::mutex mutex_;
  std::condition_variable noted_;
  std::set<std::int64_t> started_;                       // Guarded by mutex_,
  std::vector<std::pair<std::int64_t, ChildEnd>> ends_;  // likewise.

  ChildProcesses children_;  // Last: its thread uses all of the above.
};

}  // namespace

std::vector<SeedFailure> TrainSideBySide(
    const SeedRuns& runs, const std::function<void(std::int64_t seed, const RunOutcome&)>& ended,
    const RunContext& context) {
  return Trainer(runs, ended, context).Train();
}

}  // namespace menger
