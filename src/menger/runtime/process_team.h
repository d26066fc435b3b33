#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/process_worker.h"
#include "menger/runtime/runtime_options.h"
#include "menger/runtime/value_store.h"
#include "menger/runtime/worker_process.h"
#include "menger/runtime/worker_team.h"

namespace menger {

// Workers that are processes: starts them, hands them what they share with the node, and tells the
// machine of their ends.
//
// All but what is said is called under the node's lock.
class ProcessTeam final : public WorkerTeam, private WorkerOwner {
 public:
  // `wake` is called on another thread, without the lock, when there is something to drain.
  ProcessTeam(const RuntimeOptions& options, NodeMachine& machine, ValueStore& store,
              int bell_descriptor, std::function<void()> wake);

  void StartWorker() override;
  void Drain() override;
  void Stop() override;

 private:
  struct Death {
    WorkerIndex index;
    pid_t process;
    std::string cause;
  };

  void Connected(WorkerIndex index) override;
  void KillWorker(WorkerIndex index, std::string_view why) override;
  Payload RefuseExtent(WorkerIndex index, std::uint64_t bytes, SharedExtent& extent) override;
  bool PublishExtent(WorkerIndex index, const SharedExtent& extent) override;
  void FreeExtent(const SharedExtent& extent) override { store_.Free(extent); }
  void SendSegment(WorkerIndex index, std::uint32_t segment) override;

  struct Member {
    std::unique_ptr<ProcessWorker> host;
    std::uint32_t segment = 0;      // That it writes.
    std::vector<bool> has_segment;  // By segment: it was sent.
    FailureKind reason = FailureKind::kWorkerDied;
  };
  void Bury(const Death& death);
  void DrainMember(WorkerIndex index, Member& member);

  const RuntimeOptions options_;
  NodeMachine& machine_;
  ValueStore& store_;
  const int bell_descriptor_;
  std::map<WorkerIndex, Member> members_;
  std::vector<std::uint32_t> free_segments_;  // Of dead workers.
  int failed_starts_ = 0;                     // One after the other.

  std::mutex deaths_mutex_;
  std::vector<Death> deaths_;  // Guarded by deaths_mutex_.
  const std::function<void()> wake_;
  std::optional<WorkerProcesses> processes_;  // The last member: its thread uses those above.
};

}  // namespace menger
