#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/epoch_counter.h"
#include "menger/base/function_ref.h"
#include "menger/base/thread.h"

namespace menger {

// Splits short pieces of work (10 us and up) over a fixed set of threads, for learning while
// collection pauses.
//
// Task t always runs on thread t % threads(), and the caller is thread 0: so per-thread buffers and
// sums are the same in every run. A Run costs a few microseconds when the workers are still
// spinning from the last one, a futex wake when they sleep; it allocates nothing. With one thread,
// or one task, everything runs inline. A pool of one thread takes any number of callers at once;
// one of more takes one at a time, and no task of its own that calls Run (FailedPrecondition).
class WorkerPool {
 public:
  // `threads` counts the caller. Throws InvalidArgument unless 1 <= threads <= 1024.
  explicit WorkerPool(int threads, const std::string& name = "pool");
  ~WorkerPool();  // Joins the workers.
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls function(0) ... function(tasks - 1) and returns when all have returned. If some throw,
  // the rest of that thread's tasks are skipped, and the exception of the lowest-numbered failing
  // thread is thrown here; the pool stays usable.
  void Run(int tasks, FunctionRef<void(int task)> function);

  int threads() const { return threads_; }

 private:
  void Stop();
  void WorkerLoop(int thread);
  void RunShare(int thread, std::exception_ptr& failure) noexcept;

  const int threads_;

  EpochCounter start_;     // Advanced by Run and the destructor.
  EpochCounter finished_;  // Advanced by the last worker of a Run.

  // Written by Run before start_ advances, read by workers after.
  const FunctionRef<void(int)>* function_ = nullptr;
  int tasks_ = 0;
  bool stopping_ = false;

  std::atomic<bool> running_{false};  // Taken by Run.
  alignas(64) std::atomic<int> unfinished_{0};
  std::vector<std::exception_ptr> failures_;  // One a thread; each written by its thread alone.
  std::vector<Thread> workers_;               // Last: joined before what they use goes away.
};

}  // namespace menger
