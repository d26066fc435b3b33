#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "menger/runtime/driver/thread_worker.h"
#include "menger/runtime/driver/worker_team.h"

namespace menger {

// Workers that are threads of the driver.
class ThreadTeam final : public TeamOfWorkers {
 public:
  ThreadTeam(LocalNode& node, NodeMachine& machine) : node_(node), machine_(machine) {}

  void StartWorker() override {
    Worker& worker = machine_.AddWorker(machine_.NewWorkerIndex());
    workers_.push_back(std::make_unique<ThreadWorker>(node_, worker));
    worker.host = workers_.back().get();
  }

  pid_t ProcessOf(WorkerIndex) override { return getpid(); }

  bool Drain(bool) override {
    bool any = false;
    for (const auto& worker : workers_) any |= worker->Drain(machine_);
    return any;
  }

  void Stop() override { workers_.clear(); }

 private:
  LocalNode& node_;
  NodeMachine& machine_;
  std::vector<std::unique_ptr<ThreadWorker>> workers_;
};

}  // namespace menger
