#include "menger/base/worker_pool.h"

#include <chrono>

#include "menger/base/error.h"

namespace menger {
namespace {

// No wait is endless; a worker or caller that finds nothing after this long looks again.
constexpr std::chrono::seconds kWaitAtMost{1};

}  // namespace

WorkerPool::WorkerPool(int threads, const std::string& name) : threads_(threads) {
  if (threads < 1 || threads > 1024) {
    throw InvalidArgument("a worker pool of {} threads; it must be 1 to 1024", threads);
  }
  failures_.resize(threads);
  workers_.reserve(threads - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back(ThreadOptions{.name = fmt::format("{}-{}", name, thread)},
                            [this, thread] { WorkerLoop(thread); });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Stop() {
  stopping_ = true;
  start_.Advance();
  workers_.clear();
}

void WorkerPool::Run(int tasks, FunctionRef<void(int task)> function) {
  if (threads_ == 1) {  // Nothing is shared: callers need not know of each other.
    for (int task = 0; task < tasks; ++task) function(task);
    return;
  }
  if (running_.exchange(true, std::memory_order_acquire)) {
    throw FailedPrecondition(
        "WorkerPool::Run was called while another Run of the same pool is under way");
  }
  function_ = &function;
  tasks_ = tasks;
  const uint32_t epoch = finished_.value() + 1;
  const bool wakes = !workers_.empty() && tasks > 1;
  if (wakes) {
    unfinished_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    start_.Advance();
  }
  RunShare(0, failures_[0]);
  // The workers hold references to the caller's frame: there is no leaving before they are done.
  while (wakes && !finished_.TryWaitFor(epoch, kWaitAtMost)) {
  }
  std::exception_ptr first;
  for (std::exception_ptr& failure : failures_) {
    if (failure != nullptr && first == nullptr) first = failure;
    failure = nullptr;
  }
  running_.store(false, std::memory_order_release);
  if (first != nullptr) std::rethrow_exception(first);
}

void WorkerPool::WorkerLoop(int thread) {
  uint32_t seen = 0;
  for (;;) {
    while (!start_.TryWaitFor(seen + 1, kWaitAtMost)) {
    }
    ++seen;
    if (stopping_) return;
    RunShare(thread, failures_[thread]);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.Advance();
  }
}

void WorkerPool::RunShare(int thread, std::exception_ptr& failure) noexcept {
  try {
    for (int task = thread; task < tasks_; task += threads_) (*function_)(task);
  } catch (...) {
    failure = std::current_exception();
  }
}

}  // namespace menger
