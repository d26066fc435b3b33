#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/channel/worker_flags.h"
#include "menger/runtime/driver/guest_output.h"
#include "menger/runtime/driver/process_worker.h"
#include "menger/runtime/driver/spiller.h"
#include "menger/runtime/driver/worker_process.h"
#include "menger/runtime/driver/worker_team.h"
#include "menger/runtime/memory/value_store.h"

namespace menger {

// Workers that are processes: starts them, hands them what they share with the node, and tells the
// machine of their ends.
//
// All but what is said is called under the node's lock, so nothing here waits for a worker: what
// its socket has no room for is sent later, and the worker waits for it where it needs it.
//
// A worker costs the node three descriptors: its control socket, what it prints, its end. A segment
// for its values is one more, made when it first has a large one.
class ProcessTeam final : public TeamOfWorkers, private WorkerOwner {
 public:
  // `wake` is called on another thread, without the lock, when there is something to drain.
  // `node`: this one, in its life, as if that were a call.
  ProcessTeam(const RuntimeOptions& options, TaskId node, NodeMachine& machine, ValueStore& store,
              Spiller& spiller, GuestOutput& guest_output, WorkerFlags& flags, int bell_descriptor,
              std::function<void()> wake);

  // Null for one that is gone.
  ProcessWorker* FindHost(WorkerIndex index) {
    const auto found = members_.find(index);
    return found != members_.end() ? found->second.host.get() : nullptr;
  }

  void StartWorker() override;
  void StartGuest(ProgramIndex program) override;
  void SetProgram(ProgramIndex program, const GuestProgram& what) override;
  void DropProgram(ProgramIndex program) override;
  void AfterOutput(const std::function<void()>& then) override { processes_->AfterReading(then); }
  bool Drain(bool all) override;
  void Announce() override;
  void Stop() override;
  pid_t ProcessOf(WorkerIndex index) override {
    return processes_ ? processes_->ProcessOf(static_cast<int>(index)) : 0;
  }

 private:
  struct Death {
    WorkerIndex index;
    pid_t process;
    ChildEnd end;
  };
  // A descriptor that a member is to be sent.
  struct Handing {
    enum class Kind : std::uint8_t { kChannel, kOwnSegment, kSegment } kind = Kind::kChannel;
    std::uint32_t segment = 0;
  };

  void Connected(WorkerIndex index) override;
  void KillWorker(WorkerIndex index, std::string_view why, std::chrono::nanoseconds after) override;
  void RequestExtent(WorkerIndex index, std::uint64_t request, std::uint64_t bytes) override;
  bool ReturnExtent(WorkerIndex index, const SharedExtent& extent) override;
  bool PublishExtent(WorkerIndex index, const SharedExtent& extent) override;
  void SendSegment(WorkerIndex index, std::uint32_t segment) override;
  void NameWorker(WorkerIndex index, std::string_view name) override;
  void Attend(WorkerIndex index) override { attended_.push_back(index); }

  struct Member {
    ProgramIndex program = kOwnProgram;
    TaskId job;
    std::optional<std::uint32_t> place;             // Of its flag.
    std::unique_ptr<ProcessWorker> host;            // None if the process could not be started.
    std::optional<std::uint32_t> segment;           // That it writes, once it has needed one.
    std::unordered_set<std::uint32_t> has_segment;  // Was sent, or waits to be.
    std::deque<Handing> unsent;                     // In order; at most one a segment.
  };
  // Another node's program, and the starts that failed one after the other.
  struct Guest {
    GuestProgram program;
    double failed_starts = 0;
  };
  void Start(ProgramIndex program, TaskId job, const WorkerProgram& runs);
  void StartDelayed();
  void GuestFailed(ProgramIndex program, const ChildEnd& end);
  void Bury(const Death& death);
  void CountFailedStart(const std::string& cause, const ChildEnd& end);
  void TellLine(int worker, pid_t process, std::string_view text);
  std::uint32_t NewPlace();
  bool DrainMember(WorkerIndex index, Member& member);
  std::uint32_t SegmentOf(Member& member);
  void Hand(Member& member, const Handing& handing);
  void SendWaiting(Member& member);
  bool TrySend(Member& member, const Handing& handing);

  const RuntimeOptions options_;
  const TaskId node_;
  NodeMachine& machine_;
  ValueStore& store_;
  Spiller& spiller_;
  GuestOutput& guest_output_;
  WorkerFlags& flags_;
  const int bell_descriptor_;
  std::map<WorkerIndex, Member> members_;
  std::map<ProgramIndex, Guest> guests_;
  struct Place {
    WorkerIndex index = 0;
    Member* member = nullptr;
  };
  std::vector<Place> places_;  // Of flags; those that are nobody's have no member.
  std::vector<std::uint32_t> free_places_;
  std::vector<WorkerIndex> attended_;          // Each once: who waits for room, or for being woken.
  std::vector<std::uint32_t> free_segments_;   // Of dead workers.
  double failed_starts_ = 0;                   // One after the other:
  Deadline next_start_ = Deadline::After({});  // after these the next waits,
  int delayed_starts_ = 0;                     // and so do so many.

  std::mutex deaths_mutex_;
  std::vector<Death> deaths_;  // Guarded by deaths_mutex_.
  std::mutex names_mutex_;
  std::map<WorkerIndex, std::string> names_;  // Of actors' workers. Guarded by names_mutex_.
  const std::function<void()> wake_;
  std::optional<WorkerProcesses> processes_;  // The last member: its thread uses those above.
};

}  // namespace menger
