#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "menger/base/epoch_counter.h"
#include "menger/base/error.h"
#include "menger/base/thread.h"

namespace menger {

struct WorkerTeamOptions {
  int first_worker = 0;  // The caller itself is all workers before this one.
  int workers = 0;       // Threads: workers first_worker .. first_worker + workers - 1. May be 0.
  bool pin = true;       // One CPU each, where every thread and the caller can have one of its own.
  std::vector<int> cpus = {};  // Those meant; empty: all that the process may use.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
  std::chrono::nanoseconds grace = std::chrono::seconds(10);  // See ~WorkerTeam.
};

// The threads of a collector. They work in rounds: the caller starts rounds, each worker runs them
// in order, and the caller waits for the rounds that it needs. A slab is a fixed number of rounds,
// counted from 0.
//
// Signals are one broadcast counter from the caller and one counter from each worker, each in its
// own cache line; there is no queue and no lock. One thread calls (the caller); only halted() and
// ReportProgress are for workers.
//
// A worker that throws goes on through its rounds without working, so that nobody waits for it in
// vain; WaitFor rethrows the error with the worker's number before it. The destructor halts and
// joins: it waits for the job that each worker is in. But a worker that was found to hang may never
// end its job, and what it uses must not go away under it: if it has not ended after `grace`, the
// destructor names it and ends the process with status 1. Whoever has better to do (save, say more)
// does it before, and may leave a team that hangs undestroyed until the process ends.
class WorkerTeam {
 public:
  using Job = std::function<void(int worker, int round)>;

  WorkerTeam(const WorkerTeamOptions& options, Job job);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  // Counts rounds from 0 again. All rounds started before must have been waited for.
  void BeginSlab() { slab_start_ = started_; }

  // Lets every worker run one more round.
  void StartRound() { started_ = start_.Advance(); }

  // Waits until every worker has finished `rounds` rounds of this slab. Throws what a worker threw;
  // DeadlineExceeded, naming the worker, if one makes no progress for `patience` (and before twice
  // that).
  void WaitFor(int rounds);

  // Long jobs return soon when this is set: a worker failed or the team is going away.
  bool halted() const { return halted_.load(std::memory_order_relaxed); }

  // Ends the threads as soon as each has finished its job; after that the team may only be
  // destroyed.
  void Halt();

  // What the caller does as worker 0 of a team whose first_worker is 1. An error halts the team and
  // goes on with the worker's number before it, as WaitFor does for the others.
  template <typename Function>
  void AsWorker0(Function function) {
    try {
      function();
    } catch (...) {
      Halt();
      throw WithContext(TranslateCurrentException(), "collector worker 0");
    }
  }

  // Called by a worker in a long job, so that the caller's patience does not run out.
  void ReportProgress(int worker) {
    std::atomic<std::uint32_t>& progress = stations_[worker - options_.first_worker].progress;
    progress.store(progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  // What one worker writes and the caller reads.
  struct Station {
    EpochCounter done;  // Rounds finished.
    alignas(64) std::atomic<std::uint32_t> progress{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure;  // Written before `failed` is set.
  };

  void Run(int index);
  void RethrowFailure() const;
  void WaitOrExit() const;

  const WorkerTeamOptions options_;
  const Job job_;
  EpochCounter start_;            // Rounds that may be run.
  std::uint32_t started_ = 0;     // The caller's copy.
  std::uint32_t slab_start_ = 0;  // Written by the caller while all workers are between rounds.
  std::atomic<bool> halted_{false};
  std::atomic<bool> closing_{false};  // Halt was called: nobody waits for rounds any more.
  bool hangs_ = false;                // The caller has lost patience with a worker.
  std::unique_ptr<Station[]> stations_;
  std::vector<Thread> threads_;  // Last: joined before what they use goes away.
};

}  // namespace menger
