#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "menger/runtime/calls/task_result.h"
#include "menger/runtime/node/circles.h"
#include "menger/runtime/node/demand.h"
#include "menger/runtime/node/families.h"
#include "menger/runtime/node/lineage.h"
#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/node_status.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/node/scheduler.h"
#include "menger/runtime/node/time_limits.h"
#include "menger/runtime/values/task_error.h"
#include "menger/runtime/watching/node_events.h"

namespace menger {

// What the node's logic asks of the world; done at once, before the call returns, and without a
// call of the machine.
class NodeEffects : public WorkerQueues {
 public:
  // A watched object has its value (or error) now. The watch is over.
  virtual void Ready(const Watch& watch, Object& object) = 0;
  // A value that nobody needs any longer, wherever it lies.
  virtual void Free(const ObjectValue& value) = 0;
  // The worker is to end: its process is killed. It is gone for the machine: WorkerDied is not
  // called for it, and nothing that it says is told any longer.
  virtual void EndWorker(Worker& worker, std::string_view why) = 0;
  // The same, but the process may end of itself first, as a program does: it has done its work.
  virtual void DismissWorker(Worker& worker, std::string_view why) { EndWorker(worker, why); }
  // The call should stop; a thread cannot be made to.
  virtual void Interrupt(Worker& worker, const Task& task) = 0;
  // Nobody refers to the actor any longer, and none of its calls runs. Where its worker was a
  // process, that ends.
  virtual void ActorReleased(ActorId) {}
  // Its state or place is another.
  virtual void ActorChanged(const Actor&) {}
  // A value in shared memory is ready.
  virtual void SharedReady(const Object&) {}
  // A worker is gone; `ran` is the call that it had begun, if any: the first of `begun`.
  // `cause.worker` is "" where the node itself wished for its end.
  virtual void WorkerLost(const Worker&, const Task* /*ran*/, std::size_t /*begun*/,
                          const TaskFailure& /*cause*/) {}
  // Goes to the machine of that node.
  virtual void TellPeer(const Peer&, const PeerMessage&) {}
  // From now on what the worker says goes to that node, until it is back: it is offered a call of
  // this node's then.
  virtual void Lent(Worker&, const Peer&) {}
  // What somebody should know.
  virtual void Warn(std::string_view) {}
  // What people call the function; "" if nobody knows.
  virtual std::string NameOfFunction(FunctionId) { return ""; }

 protected:
  ~NodeEffects() = default;
};

// What the node has, and its bounds. What is left out is as said here.
struct NodeMachineOptions {
  Resources resources;
  int workers = 1;       // Of the pool, without those of actors.
  int pool_max = 512;    // So many there may be in the pool, with those that stand in for others.
  bool threads = false;  // The workers are threads of the driver.
  std::uint64_t job = 0;
  // Of the calls that are kept so that their results can be made again; beyond that the oldest are
  // dropped, and what is lost of their results is lost for good.
  std::size_t lineage_bytes_max = std::size_t{256} << 20;
  // Of the calls that an actor has done since its last checkpoint, with their arguments: beyond
  // that the next checkpoint comes early.
  std::size_t log_bytes_max = std::size_t{16} << 20;
  // So many calls that need the same wait before other nodes are asked for workers.
  std::size_t waiting_here_max = 16;
};

// The node's logic: which calls there are, what each waits for, where it runs, what it gave, who
// still needs that, and what happens when a worker dies. It is told what has happened and says what
// is to be done (NodeEffects); it does no input or output, takes no lock, reads no clock and draws
// no number, so the same logic runs under real processes and under a simulator.
//
// Everything that a process tells is checked before it comes here, except ids: one that nobody
// knows means an object that does not exist yet.
//
// One thread at a time calls.
class NodeMachine : private ObjectTable::Listener {
 public:
  NodeMachine(NodeMachineOptions options, NodeEffects& effects);
  ~NodeMachine();

  // The moment in nanoseconds at which everything told next happens; never goes back.
  void SetTime(std::int64_t now) {
    now_ = now;
    scheduler_.SetTime(now);
  }

  // ---- Workers.
  WorkerIndex NewWorkerIndex() { return ++last_worker_; }
  Worker& AddWorker(WorkerIndex index);
  // As many as the pool shall have.
  void StartWorkers() { scheduler_.StartAll(); }
  // A start that was asked for came to nothing: whoever needs it gets that as its error. Without a
  // cause it is tried again.
  void StartFailed(std::string_view cause);
  Worker* FindWorker(WorkerIndex index);  // Null also for one that is gone.
  // It is gone, as `cause` says: what it ran is run again elsewhere or fails, its actors are made
  // again or die, its references are dropped. The record goes with the next Run.
  void WorkerDied(Worker& worker, const TaskFailure& cause);
  // It has done all that it shall do, and is ended.
  void WorkerLeaves(Worker& worker);
  std::vector<WorkerIndex> WorkerIndices() const;  // Of those that are not gone.

  // ---- Calls and values; `process` refers to what it makes.
  // Of a checkpointed actor a call that is known already is not made twice. What a worker says that
  // is gone is ignored. `thread`: the worker whose call makes it, where that is of the driver.
  void Submit(ProcessIndex process, SpecPointer spec, Worker* thread = nullptr);
  void Put(ProcessIndex process, ObjectId id, ObjectValue value,
           std::span<const ObjectId> contained);

  // ---- What has become of a call. An unknown lease is that of a call whose results are settled.
  // `ended_at`: when, by the worker's clock, which is the node's; 0: now.
  void Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                double nanoseconds, std::int64_t ended_at = 0);
  void Failed(Worker& worker, LeaseNumber lease, TaskFailure failure, double nanoseconds,
              std::int64_t ended_at = 0);
  // What the call was told that a further run of it shall be told again.
  void Record(Worker& worker, LeaseNumber lease, std::span<const std::byte> bytes);
  // Item `index` of the stream that a call is. What a further run yields again is dropped.
  void Yield(Worker& worker, LeaseNumber lease, std::uint64_t index, TaskResult item);
  // The reader of a stream has the first `count` items; kStreamDropped: it wants no more.
  void Take(ProcessIndex reader, TaskId call, std::uint64_t count);
  // Its call waits for objects, and for what it waited for already; `timed`: not for ever.
  void Block(Worker& worker, std::span<Object* const> objects, bool timed = false);
  void Unblock(Worker& worker);
  // A thread of the driver waits for objects, until EndDriverWait: where so many calls wait that
  // others do not begin, that which it needs does. Where it needs several calls at once, or more
  // threads wait than Demand::kDriverWaitsMax, these wait their turn; the number is 0 then.
  std::uint64_t BeginDriverWait(std::span<Object* const> objects) {
    return demand_.BeginDriverWait(objects);
  }
  void EndDriverWait(std::uint64_t wait) { demand_.EndDriverWait(wait); }
  // The way to it is so full of calls that answers to those that it does find no room; and it has
  // room again.
  void TakeBackCalls(Worker& worker);
  void HasRoomAgain(Worker& worker);

  // ---- Objects.
  ObjectTable& objects() { return objects_; }
  const ObjectTable& objects() const { return objects_; }
  // True if the object is ready; otherwise effects.Ready comes once, unless Unwatch comes first.
  // The caller refers to the object, or somebody does for it.
  // `with_value`: one whose value is on the disk is not, until that is in memory.
  bool WatchObject(const Watch& watch, Object& object, bool with_value = false);
  void Unwatch(const Watch& watch, Object& object);
  // The value is gone: the call that made it runs again, with its arguments made again where they
  // are gone, too; what cannot be made again becomes an error.
  void Lose(Object& object);
  // A value that was on the disk is in memory again, too.
  void Restored(Object& object, const SharedExtent& extent);
  // There is no room for it: the calls that wait for that fail.
  void NoRoom(Object& object, const Payload& error);
  // Who reads the largest of the values that are read, and so keeps them in memory.
  std::string LargestReaders() const;
  // Whether some call runs, of another worker than this one, and waits for nothing.
  bool IsBusy(ProcessIndex besides) const;

  // Settles the results as cancelled, if they are not there yet. A call that runs is interrupted;
  // with `force` its worker is ended (a thread cannot be). `recursive`: so is what the call has
  // called. An actor is killed, a placement group removed: its calls and actors end.
  void Cancel(Object& object, bool force, bool recursive = true);

  // ---- Other nodes (node_peers.cc). What their workers do that this node has borrowed is told
  // like what its own do, with its own time. Another node, in the life `epoch`; an earlier one is
  // over with that.
  Peer& AddPeer(NodeId node, std::uint64_t epoch, Resources total);
  Peer* FindPeer(PeerIndex index);  // Null for one that is gone.
  // It is gone, with the workers that it lent and the values that lay there.
  void PeerDied(Peer& peer, const TaskFailure& cause);
  void Receive(Peer& peer, const PeerMessage& message);
  static Worker* FindBorrowed(const Peer& peer, LoanNumber loan);  // Null for one that is gone.
  // A borrowed worker gives back a call that it had not begun.
  void Returned(Worker& worker, LeaseNumber lease);
  // What a lent worker made lies here for its borrower, until he drops it or is gone: under which
  // number. For him it is an ObjectValue::Remote.
  std::uint64_t KeepFor(const Peer& peer, ObjectValue value);
  Object* FindKept(const Peer& peer, std::uint64_t kept) const;

  // ---- Actors.
  Actor* FindActor(ActorId id);
  Actor* FindActor(std::string_view name);
  // `why`: for those who have called it.
  void KillActor(Actor& actor, bool may_restart,
                 std::string_view why = "the actor was killed by its user");

  // Hands out what can run and keeps time limits.
  void Run();
  // When Run should be called at the latest; nothing if only news matter.
  std::optional<std::int64_t> next_deadline() const;

  // submitted + rebuilt = finished + failed + those that are under way.
  struct Counts {
    std::uint64_t submitted = 0;
    std::uint64_t finished = 0;
    std::uint64_t failed = 0;
    std::uint64_t retried = 0;
    std::uint64_t rebuilt = 0;
    std::uint64_t actors_restarted = 0;
    std::uint64_t checkpoints = 0;
    std::uint64_t replayed = 0;  // Calls of actors that were made again.
  };
  const Counts& counts() const { return counts_; }
  const NodeEvents& events() const { return events_; }
  NodeEvents& events() { return events_; }  // For what others have to add.
  // Calls that are not done, and the bytes of what says what they are.
  std::size_t waiting_calls() const { return waiting_calls_; }
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  std::size_t live_tasks() const { return tasks_.in_use(); }
  std::size_t lineage_bytes() const { return lineage_.bytes(); }
  const Scheduler& scheduler() const { return scheduler_; }
  const States& states() const { return states_; }
  // Its own name or its function's. Valid until the next call is made.
  std::string_view NameOf(const Task& task) const { return events_.names()[task.name]; }
  // For whoever looks at it: all but what only the outside knows of workers and the store.
  void FillStatus(NodeStatus& status) const;
  // What its workers do now, as events that have begun.
  void CopyRunning(std::vector<NodeEvent>& events) const;
  std::size_t workers() const { return workers_.size(); }

 private:
  void OnUnneeded(Object& object) override;
  void OnFreed(const ObjectValue& value) override { FreeValue(value); }
  void OnForgotten(Task& producer) override;

  void FreeValue(const ObjectValue& value) {
    if (value.node != 0) DropAt(value);
    effects_->Free(value);
  }

  bool Speaks(ProcessIndex process);
  Task& MakeTask(ProcessIndex process, SpecPointer spec);
  void HoldArgument(Task& task, ObjectId id, bool needs_value);
  void AwaitArgument(Task& task, Object& object);
  // So often may a run that a worker's loss cut short be done once more: of a method its actor
  // says, unless it says so itself.
  static std::uint16_t RetriesOf(const Task& task);

  // node_waits.cc
  void BeginBlock(Worker& worker, Task& call);
  bool SomeCallGoesOn() const;
  void SortWaitingActors();
  std::string WaitersOf(const Task& task) const;
  void FailStranded();
  void EndSpare();
  void LookForCircle();

  void Start(Task& task);  // Its arguments are ready.
  void Settle(Task& task, std::span<TaskResult> results);
  void SettleFailed(Task& task, const Payload& error);
  void CountWaiting(const Task& task, bool begins);
  bool StandsForLiving(const Task& task) const;
  void Conclude(Task& task);  // Its results are settled: lets go of what it held.
  Task* FindLease(Worker& worker, LeaseNumber lease);
  Payload Describe(FailureKind kind, ErrorCode code, const Task& task, std::string text) const;

  void Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained);
  void SpreadNews();  // Tells who waits for objects that are ready.
  void MakeAgain(Object& lost, const TaskFailure* cause = nullptr);
  bool IsThere(const Object& object, ProcessIndex reader) const;
  void TellWaiting(Object& object);
  void FailWaiting(Task& task, const Payload& error);
  bool ReconsiderFetching();
  void FailReady(Task& task, const Payload& error);
  void StopWaiting(Task& task);
  void Revive(Task& task, std::vector<Object*>& gone);
  void End(Task& task, const Payload& error, bool force);
  void EndRunning(Task& task, const Payload& error, bool force);
  void EndAsDied(Worker& worker, std::string_view why, std::string_view cause);
  void CancelTask(Task& task, bool force);
  void Retire(Worker& worker, std::string_view cause);
  void RunAgain(Task& task, bool begun, const TaskFailure& cause);
  void CheckTimeLimits();

  // node_watching.cc
  std::uint16_t NumberOfName(FunctionTimes& times, const TaskSpec& spec);
  void NoteTask(NodeEventKind kind, Worker& worker, const Task& task, double nanoseconds,
                std::int64_t ended_at);
  void NoteWorker(NodeEventKind kind, const Worker& worker, std::string_view cause = "");
  void NoteActor(NodeEventKind kind, const Actor& actor);  // Its state has changed.
  void NoteObject(NodeEventKind kind, const Object& object);
  void FillActors(NodeStatus& status) const;
  void FillTasks(NodeStatus& status) const;

  // node_peers.cc
  void TellScheduler();
  void Tell(PeerIndex to, const PeerMessage& message);
  void ReceiveOfLent(Worker& worker, const PeerMessage& message);
  void Borrow(Peer& peer, const PeerMessage& message);
  void ServePeers();
  void FailForeign(SchedulingClass& scheduling);
  void AskFor(Peer& peer);
  void GiveBackIdle(Peer& peer);
  void DropAt(const ObjectValue& value);
  void LoseAt(PeerIndex node, const TaskFailure& cause);
  void LendTo(Peer& peer);
  Worker* LendOne(const std::string& scheduling);
  void AskBack();
  void TakeIn(Worker& worker, bool clean);
  void EndLoan(Worker& worker, const TaskFailure& cause);

  // node_streams.cc
  void OpenStream(ProcessIndex reader, const Task& task);
  void ForgetStream(const SpecHeader& header);
  void MoveGate(Stream& stream);
  void SetGate(Object& gate, std::uint64_t taken);
  void CloseStream(TaskId call);
  void CloseStreamsOf(ProcessIndex reader);

  // node_groups.cc
  static bool IsInGroup(const SpecHeader& header) {
    return header.home.valid() && header.kind != CallKind::kMethod;
  }
  void AskForGroup(Task& task);
  const Group* ServeGroups();
  std::optional<std::int64_t> PatienceEnds() const;
  SchedulingClass* ClassInGroup(const Task& task);
  bool GroupLives(Task& task);
  void AwaitGroupAgain(Task& task);
  void ReleaseGroup(const Object& object);
  void RemoveGroup(Object& object);
  void EndActorsIn(ObjectId group);

  // node_actors.cc
  bool DeclareActor(Task& construction);
  void Construct(Task& task);
  void OrderCall(Task& task);
  void CallReady(Task& task);
  void JoinMailbox(Task& task, Scheduler::Place place);
  void LetCallerGo(Actor& actor, const Id& caller);
  void LeaveLine(Task& task);
  void ServeActor(Actor& actor);
  void ServeLater(Actor& actor);
  bool FindHome(Actor& actor);
  void LeaveWorker(Task& task);
  void CallsReturned(const std::vector<Task*>& calls);
  void ActorCallDone(Task& task);
  void ActorWorkerLost(Actor& actor, const TaskFailure& cause);
  void SettleDead(Task& task, const Actor* actor);
  void ActorDead(Actor& actor, const Payload& death);
  Worker* EndLife(Actor& actor);
  std::vector<Task*> TakeCalls(Actor& actor, std::vector<Task*>& calls);
  void ReleaseActor(Actor& actor);

  // node_checkpoints.cc
  static bool IsUpkeep(const Task& task);
  Task& MakeUpkeep(Actor& actor, CallKind kind);
  void DropUpkeep(Task& task);
  bool NeedsCheckpoint(const Actor& actor) const;
  void AskForCheckpoint(Actor& actor);
  void Log(Task& task);
  void DropLog(Actor& actor);
  void UpkeepDone(Task& task, std::span<TaskResult> results);
  void UpkeepFailed(Task& task, const Payload& error);
  void UpkeepLost(Task& task);
  void Replay(Actor& actor);
  bool KnowsCall(ProcessIndex process, const Worker& worker, const TaskSpec& spec);
  void EndUnlike(Actor& actor, const TaskSpec& spec, const Object& known);

  NodeMachineOptions options_;
  NodeEffects* effects_;
  std::int64_t now_ = 0;
  States states_;
  ObjectTable objects_;
  Scheduler scheduler_;
  Pool<Task> tasks_;
  Workers workers_;
  Lineage lineage_;
  Demand demand_;
  Circles circles_;
  TimeLimits time_limits_;
  WorkerIndex last_worker_ = 0;
  std::unordered_map<TaskId, Stream, IdHash> streams_;  // Whose readers want more.
  std::unordered_map<ActorId, std::unique_ptr<Actor>, IdHash> actors_;
  std::map<std::string, Actor*, std::less<>> actor_by_name_;
  std::deque<Actor*> waiting_actors_;  // Have calls, or their construction, and no room.
  std::vector<WorkerIndex> retired_;   // Gone; forgotten by the next Run.
  std::unordered_map<ObjectId, std::unique_ptr<Group>, IdHash> groups_;  // By what stands for it.
  std::vector<Group*> waiting_groups_;                                   // In their order.
  std::uint64_t last_group_ = 0;
  std::deque<Object*> news_;  // Ready, but not told yet; each held.
  bool spreading_ = false;
  std::map<PeerIndex, std::unique_ptr<Peer>> peers_;
  PeerIndex last_peer_ = 0;
  LoanNumber last_loan_ = 0;
  std::uint64_t last_kept_ = 0;
  Counts counts_;
  NodeEvents events_;
  std::uint64_t last_wait_ = 0;
  std::size_t waiting_calls_ = 0;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace menger
