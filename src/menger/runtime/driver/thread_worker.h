#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "menger/base/epoch_counter.h"
#include "menger/base/thread.h"
#include "menger/runtime/driver/worker_host.h"
#include "menger/runtime/node/lease_queue.h"
#include "menger/runtime/worker/executor.h"

namespace menger {

class LocalNode;

// A worker that is a thread of the driver: it claims calls from its queue without a lock and
// reports what short ones gave several at a time.
class ThreadWorker final : public WorkerHost {
 public:
  ThreadWorker(LocalNode& node, Worker& worker);
  ~ThreadWorker() override;  // After the call that it does, if any.

  Worker& worker() const { return worker_; }
  LeaseNumber running() const { return running_.load(std::memory_order_relaxed); }
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

  bool Offer(const Task& task) override;
  bool Recall(const Task& task) override { return queue_.Recall(task.lease); }
  void Announce() override { bell_.Advance(); }
  void Interrupt(const Task& task) override;
  void End(std::string_view) override {}
  void Ready(std::uint64_t, Object&) override {}
  bool Drain(NodeMachine& machine) override;

 private:
  struct Report {
    LeaseNumber lease;
    double nanoseconds;
    std::int64_t ended_at;
    CallOutcome outcome;
  };

  void Serve();
  void Do(const Task& task);

  LocalNode& node_;
  Worker& worker_;
  LeaseQueue queue_;
  EpochCounter bell_;
  std::atomic<LeaseNumber> running_{0};
  std::atomic<bool> interrupted_{false};
  bool has_reports_ = false;  // Of the thread: it may have some that nobody took.
  std::mutex reports_mutex_;
  std::vector<Report> reports_;     // Guarded by reports_mutex_.
  std::vector<Report> delivering_;  // Guarded by the node's lock.
  Thread thread_;
};

}  // namespace menger
