#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/runtime/node/node_effects.h"
#include "menger/runtime/node/node_parts.h"

namespace menger {

// The node's logic: which calls there are, what each waits for, where it runs, what it gave, who
// still needs that, and what happens when a worker dies. It is told what has happened and says what
// is to be done (NodeEffects); it does no input or output, takes no lock, reads no clock and draws
// no number, so the same logic runs under real processes and under a simulator. Its parts
// (node_parts.h) do the work.
//
// Everything that a process tells is checked before it comes here, except ids: one that nobody
// knows means an object that does not exist yet.
//
// One thread at a time calls.
class NodeMachine {
 public:
  NodeMachine(NodeMachineOptions options, NodeEffects& effects)
      : parts_(std::move(options), effects) {}

  // The moment in nanoseconds at which everything told next happens; never goes back.
  void SetTime(std::int64_t now) {
    parts_.now = now;
    parts_.scheduler.SetTime(now);
  }

  // ---- Workers.
  WorkerIndex NewWorkerIndex() { return parts_.workers.NewIndex(); }
  Worker& AddWorker(WorkerIndex index) { return parts_.workers.Add(index); }
  // One that runs another node's program, which SetProgram has named; null where that node is gone.
  Worker* AddGuest(WorkerIndex index, ProgramIndex program) {
    return parts_.guests.Add(index, program);
  }
  // As many as the pool shall have.
  void StartWorkers() { parts_.scheduler.StartAll(); }
  // A start that was asked for came to nothing: whoever needs it gets that as its error. Without a
  // cause it is tried again.
  void StartFailed(std::string_view cause) { parts_.workers.StartFailed(cause); }
  void GuestFailed(ProgramIndex program, std::string_view cause) {
    parts_.guests.StartFailed(program, cause);
  }
  // Null also for one that is gone.
  Worker* FindWorker(WorkerIndex index) { return parts_.workers.Find(index); }
  // It is gone, as `cause` says: what it ran is run again elsewhere or fails, its actors are made
  // again or die, its references are dropped. The record goes with the next Run.
  void WorkerDied(Worker& worker, const TaskFailure& cause) { parts_.workers.Died(worker, cause); }
  // It has done all that it shall do, and is ended.
  void WorkerLeaves(Worker& worker) { parts_.workers.Leave(worker); }
  // Of those that are not gone.
  std::vector<WorkerIndex> WorkerIndices() const { return parts_.workers.Indices(); }

  // ---- Calls and values; `process` refers to what it makes.
  // Of a checkpointed actor a call that is known already is not made twice. What a worker says that
  // is gone is ignored. `thread`: the worker whose call makes it, where that is of the driver.
  void Submit(ProcessIndex process, SpecPointer spec, Worker* thread = nullptr) {
    parts_.calls.Submit(process, std::move(spec), thread);
  }
  void Put(ProcessIndex process, ObjectId id, ObjectValue value,
           std::span<const ObjectId> contained) {
    parts_.values.Put(process, id, std::move(value), contained);
  }

  // ---- What has become of a call. An unknown lease is that of a call whose results are settled.
  // `ended_at`: when, by the worker's clock, which is the node's; 0: now.
  void Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                double nanoseconds, std::int64_t ended_at = 0) {
    parts_.calls.Finished(worker, lease, results, nanoseconds, ended_at);
  }
  void Failed(Worker& worker, LeaseNumber lease, TaskFailure failure, double nanoseconds,
              std::int64_t ended_at = 0) {
    parts_.calls.Failed(worker, lease, std::move(failure), nanoseconds, ended_at);
  }
  // What the call was told that a further run of it shall be told again.
  void Record(Worker& worker, LeaseNumber lease, std::span<const std::byte> bytes) {
    parts_.calls.Record(worker, lease, bytes);
  }
  // Item `index` of the stream that a call is. What a further run yields again is dropped.
  void Yield(Worker& worker, LeaseNumber lease, std::uint64_t index, TaskResult item) {
    parts_.streams.Yield(worker, lease, index, std::move(item));
  }
  // The reader of a stream has the first `count` items; kStreamDropped: it wants no more.
  void Take(ProcessIndex reader, TaskId call, std::uint64_t count) {
    parts_.streams.Take(reader, call, count);
  }
  // Its call waits for objects, and for what it waited for already; `timed`: not for ever.
  void Block(Worker& worker, std::span<Object* const> objects, bool timed = false) {
    parts_.waits.Block(worker, objects, timed);
  }
  void Unblock(Worker& worker) { parts_.waits.Unblock(worker); }
  // A thread of the driver waits for objects, until EndDriverWait: where so many calls wait that
  // others do not begin, that which it needs does. Where it needs several calls at once, or more
  // threads wait than Demand::kDriverWaitsMax, these wait their turn; the number is 0 then.
  std::uint64_t BeginDriverWait(std::span<Object* const> objects) {
    return parts_.demand.BeginDriverWait(objects);
  }
  void EndDriverWait(std::uint64_t wait) { parts_.demand.EndDriverWait(wait); }
  // The way to it is so full of calls that answers to those that it does find no room; and it has
  // room again.
  void TakeBackCalls(Worker& worker) { parts_.workers.TakeBackCalls(worker); }
  void HasRoomAgain(Worker& worker) { parts_.workers.HasRoomAgain(worker); }

  // ---- Objects.
  ObjectTable& objects() { return parts_.objects; }
  const ObjectTable& objects() const { return parts_.objects; }
  // True if the object is ready; otherwise effects.Ready comes once, unless Unwatch comes first.
  // The caller refers to the object, or somebody does for it.
  // `with_value`: one whose value is on the disk is not, until that is in memory.
  bool WatchObject(const Watch& watch, Object& object, bool with_value = false) {
    return parts_.values.WatchObject(watch, object, with_value);
  }
  // Whether the process finds its value (or error) in the memory of the node that it lives on.
  bool IsThere(const Object& object, ProcessIndex reader) const {
    return parts_.values.IsThere(object, reader);
  }
  void Unwatch(const Watch& watch, Object& object) { parts_.objects.DropWatch(watch, object); }
  // The value is gone: the call that made it runs again, with its arguments made again where they
  // are gone, too; what cannot be made again becomes an error.
  void Lose(Object& object) { parts_.values.Lose(object); }
  // A value that was on the disk is in memory again, too.
  void Restored(Object& object, const SharedExtent& extent) {
    parts_.values.Restored(object, extent);
  }
  // There is no room for it: the calls that wait for that fail, and those who watch it are refused.
  void NoRoom(Object& object, const Payload& error) { parts_.values.NoRoom(object, error); }
  // Who reads the largest of the values that are read, and so keeps them in memory.
  std::string LargestReaders() const { return parts_.values.LargestReaders(); }
  // Whether some call runs, of another worker than this one, and waits for nothing.
  bool IsBusy(ProcessIndex besides) const { return parts_.workers.IsBusy(besides); }

  // Settles the results as cancelled, if they are not there yet. A call that runs is interrupted;
  // with `force` its worker is ended (a thread cannot be). `recursive`: so is what the call has
  // called. An actor is killed, a placement group removed: its calls and actors end.
  void Cancel(Object& object, bool force, bool recursive = true) {
    parts_.calls.Cancel(object, force, recursive);
  }

  // ---- Other nodes (peers.h). What their workers do that this node has borrowed is told
  // like what its own do, with its own time. Another node, in the life `epoch`; an earlier one is
  // over with that. One that could not be reached, and so had died for this node, may be met again
  // in the same life: once this node has died for it, too.
  // Of its memory calls read as much as NodeMachineOptions::reading_bytes_max has it.
  Peer& AddPeer(NodeId node, std::uint64_t epoch, Resources total,
                std::uint64_t reading_bytes_max = 0) {
    return parts_.peers.Add(node, epoch, std::move(total), reading_bytes_max);
  }
  // This node's life among others is over, as `why` says: calls wait for no other node any longer.
  void CutOff(std::string_view why) { parts_.peers.CutOff(why); }
  // Its calls' workers run a program of its own; it is lent none before it is known as what, to no
  // other node.
  void AwaitProgram(Peer& peer) { peer.program.reset(); }
  void SetProgram(Peer& peer, ProgramIndex program) { parts_.guests.SetProgram(peer, program); }
  // Nor ever.
  void CannotServe(Peer& peer, std::string_view why) { parts_.guests.CannotServe(peer, why); }
  // It is a program's, and lends no workers: it is not asked for any, nor waited for.
  void LendsNothing(Peer& peer) { parts_.peers.LendsNothing(peer); }
  // Null for one that is gone.
  Peer* FindPeer(PeerIndex index) { return parts_.peers.Find(index); }
  // It is gone, with the workers that it lent and the values that lay there.
  void PeerDied(Peer& peer, const TaskFailure& cause) { parts_.peers.Died(peer, cause); }
  void Receive(Peer& peer, const PeerMessage& message) { parts_.peers.Receive(peer, message); }
  // Null for one that is gone.
  static Worker* FindBorrowed(const Peer& peer, LoanNumber loan) {
    return Peers::FindBorrowed(peer, loan);
  }
  // This node will leave: the others take what they would miss (drains.h).
  void Drain() { parts_.drains.Begin(); }
  DrainProgress drain_progress() const { return parts_.drains.progress(); }
  // That life of a node is over; it may never have been a peer.
  void NodeIsOver(NodeId node, std::uint64_t epoch) { parts_.foreign.LifeIsOver(node, epoch); }
  // Of which somebody has spoken, whom this node has not met.
  std::vector<ForeignName> Strangers() const { return parts_.foreign.Strangers(); }
  // The process refers to an object that another node may own, as it was told by a name. Where it
  // is known no longer its value is an error.
  Object& Refer(ProcessIndex process, const ForeignName& name) {
    return parts_.foreign.Refer(process, name);
  }
  ForeignName NameOf(const Object& object) const { return parts_.foreign.NameOf(object); }
  // Its owner knows that this node refers to it: whoever named it need not hold it any longer, and
  // others may be told of it.
  bool IsRegistered(const Object& object) const { return parts_.foreign.IsRegistered(object); }
  // A borrowed worker gives back a call that it had not begun.
  void Returned(Worker& worker, LeaseNumber lease) { parts_.calls.Returned(worker, lease); }
  // What a lent worker made lies here for its borrower, until he drops it or is gone: under which
  // number. For him it is an ObjectValue::Remote.
  std::uint64_t KeepFor(const Peer& peer, ObjectValue value) {
    return parts_.peers.KeepFor(peer, std::move(value));
  }
  Object* FindKept(const Peer& peer, std::uint64_t kept) const {
    return parts_.peers.FindKept(peer, kept);
  }
  // What was ordered (NodeEffects::Pull) has come, or will not.
  void Pulled(Peer* owner, std::uint64_t pull, ObjectValue value) {
    parts_.peers.Pulled(owner, pull, std::move(value));
  }
  void NotPulled(Peer* owner, std::uint64_t pull) { parts_.peers.NotPulled(owner, pull); }
  // There is no room for it here, and will not be: it fails what waits for it here.
  void PullRefused(Peer* owner, std::uint64_t pull, const TaskFailure& cause) {
    parts_.peers.PullRefused(owner, pull, cause);
  }
  // Which of this node's values another pulls by that name; null if it is not wanted any longer.
  Object* FindPull(std::uint64_t pull) const { return parts_.copies.Find(pull); }
  // As what that node keeps a value of this one; 0: it does not lie there.
  std::uint64_t NameAt(const Object& object, PeerIndex node) const {
    return parts_.copies.NameAt(object, node);
  }

  // ---- Actors.
  const std::unordered_map<ActorId, std::unique_ptr<Actor>, IdHash>& actors() const {
    return parts_.actors.all();
  }
  Actor* FindActor(ActorId id) { return parts_.actors.Find(id); }
  // One that was not begun yet: what it was when somebody else had saved it.
  void BeginWith(Actor& actor, Object& checkpoint) {
    parts_.checkpoints.BeginWith(actor, checkpoint);
  }
  // By its name; NodeEffects::Named has the answer, perhaps before this returns, unless StopFinding
  // comes first.
  void FindActor(const Watch& asker, std::string_view name) { parts_.names.Find(asker, name); }
  // Another program's actor, by what stands for it; nothing happens if that is none.
  void KillAnothers(ObjectId object, bool may_restart) {
    Object* const found = parts_.objects.Find(object);
    if (found != nullptr && found->foreign) parts_.foreign.Cancel(*found, true, may_restart);
  }
  bool IsOfAnother(const ForeignName& name) const { return !parts_.foreign.IsOwn(name); }
  void StopFinding(const Watch& asker) { parts_.names.Unask(asker); }
  // What NodeEffects::AskName has asked; of a release nothing.
  void NameAnswered(const NameQuestion& question, const NameAnswer& answer) {
    parts_.names.Answered(question, answer);
  }
  void NameLost(const NamedActor& actor) { parts_.names.Lost(actor); }
  // `why`: for those who have called it.
  void KillActor(Actor& actor, bool may_restart,
                 std::string_view why = "the actor was killed by its user") {
    parts_.actors.Kill(actor, may_restart, why);
  }

  // Hands out what can run and keeps time limits.
  void Run();
  // When Run should be called at the latest; nothing if only news matter.
  std::optional<std::int64_t> next_deadline() const;

  using Counts = NodeCounts;
  const Counts& counts() const { return parts_.counts; }
  const NodeEvents& events() const { return parts_.notes.events(); }
  NodeEvents& events() { return parts_.notes.events(); }  // For what others have to add.
  // Calls that are not done, and the bytes of what says what they are.
  std::size_t waiting_calls() const { return parts_.calls.waiting(); }
  std::size_t waiting_bytes() const { return parts_.calls.waiting_bytes(); }
  std::size_t live_tasks() const { return parts_.tasks.in_use(); }
  std::size_t lineage_bytes() const { return parts_.lineage.bytes(); }
  const Scheduler& scheduler() const { return parts_.scheduler; }
  const States& states() const { return parts_.states; }
  // Its own name or its function's. Valid until the next call is made.
  std::string_view NameOf(const Task& task) const { return parts_.notes.NameOf(task); }
  // For whoever looks at it: all but what only the outside knows of workers and the store.
  void FillStatus(NodeStatus& status) const { parts_.notes.FillStatus(status); }
  // What its workers do now, as events that have begun.
  void CopyRunning(std::vector<NodeEvent>& events) const { parts_.notes.CopyRunning(events); }
  std::size_t CopyCalls(std::size_t from, std::size_t limit,
                        std::vector<NodeStatus::CallStatus>& calls) const {
    return parts_.notes.CopyCalls(from, limit, calls);
  }
  std::size_t workers() const { return parts_.workers.all().size(); }

 private:
  NodeParts parts_;
};

}  // namespace menger
