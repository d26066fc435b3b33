#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "menger/runtime/node_records.h"
#include "menger/runtime/object_table.h"

namespace menger {

// How a queue of a worker is reached; see NodeEffects.
class WorkerQueues {
 public:
  // Puts the call at the end of the worker's queue; false if there is no room.
  virtual bool Offer(Worker& worker, const Task& task) = 0;
  // Takes back a call that the worker has not begun; false if it has. Of another node's worker
  // always false: it is asked, and NodeMachine::Returned may follow.
  virtual bool Recall(Worker& worker, const Task& task) = 0;
  // After some offers: the worker looks at its queue.
  virtual void Announce(Worker& worker) = 0;
  // One more worker is wanted; AddWorker follows, sooner or later.
  virtual void StartWorker() = 0;
  // The value is wanted in memory; until then no call is offered that needs it.
  virtual void Restore(Object&) {}

 protected:
  ~WorkerQueues() = default;
};

// Decides which worker gets which call, and when.
//
// Calls that need the same resources form a class. A worker serves one class at a time and holds
// what its calls need meanwhile; it is given several short calls ahead, by the time that calls of
// their functions took so far, and one at a time of those that take long. What one worker has not
// begun is taken back for another that has nothing to do, and whenever its call starts to wait.
//
// The arguments of what is offered stay in memory until it is done. Where one is on the disk, the
// call waits at the head of its queue: it comes before those that would push it out again.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Scheduler {
 private:
  struct FunctionHash {
    std::size_t operator()(const FunctionId& id) const {
      return id.module ^ (id.offset * 0x9e3779b97f4a7c15ULL);
    }
  };

 public:
  using Functions = std::unordered_map<FunctionId, FunctionTimes, FunctionHash>;

  Scheduler(Resources total, int workers, ObjectTable& objects, WorkerQueues& queues);

  const Resources& total() const { return total_; }
  const Resources& available() const { return available_; }
  std::size_t ready() const { return ready_; }
  bool HasIdleWorker() const;

  // The class of that text ("cpu=1 gpu=0.5"; "" means one CPU). Throws InvalidArgument for a text
  // that cannot be read or needs that no node has, Unavailable if a node had them that is gone.
  SchedulingClass& ClassFor(std::string_view text);
  const std::vector<std::unique_ptr<SchedulingClass>>& classes() const { return classes_; }
  FunctionTimes& TimesOf(FunctionId function);
  const Functions& functions() const { return times_; }  // That were called.

  void AddWorker(Worker& worker);
  void StartAll() {
    for (int i = pool_size_; i < workers_wanted_; ++i) StartOneMore();
  }
  void StartFailed() { --workers_starting_; }
  // Its resources are free, and it gets no calls any longer.
  void RemoveWorker(Worker& worker);

  // Takes a worker that has nothing to do out of the pool, for an actor with its resources.
  // Null if there is none now; a start was then asked for where that makes sense.
  Worker* Dedicate(SchedulingClass& need);
  // The worker of the pool that has least to do and room; null if there is none now, as above.
  Worker* Freest();
  void Enqueue(Task& task);       // At the end of its class's queue;
  void EnqueueFirst(Task& task);  // before all others of its priority.
  void Dequeue(Task& task);       // It is not to run after all.

  // One more call for a worker, past the queues of the classes: an actor's. False: no room, or its
  // arguments are not in memory.
  bool OfferTo(Worker& worker, Task& task);

  // Those that were to be offered and wait for arguments: whoever comes back to them finds these
  // in memory, or one of them lost. They are still in their queues.
  const std::vector<Task*>& fetching() const { return fetching_; }
  // The call needs its arguments in memory no longer.
  void StopReading(Task& task);

  // The worker has done (or given back, or lost) one of its calls.
  void Done(Worker& worker, Task& task, double nanoseconds);

  // Its call waits: its resources are lent and what it has not begun goes elsewhere; `recalled`
  // gets those calls that are an actor's.
  void Block(Worker& worker, std::vector<Task*>& recalled);
  void Unblock(Worker& worker);
  // What the worker has not begun is taken back, since it fills the way to it; as above.
  void Empty(Worker& worker, std::vector<Task*>& recalled);

  // ---- Workers of other nodes (scheduler_loans.cc).
  // What each of the others has in all.
  void SetElsewhere(std::vector<Resources> elsewhere);
  bool IsElsewhere(const Resources& need) const;
  // Another node's, for calls of the class, until RemoveWorker: its resources are not this node's.
  void AddBorrowed(Worker& worker, SchedulingClass& scheduling);
  // It is to be given back: what it has not begun is asked for, and it gets no more.
  void AskBack(Worker& worker);
  // Takes a worker that has nothing to do, with resources that nobody uses, out of the pool; null
  // if there is none now. TakeIn: it is back.
  Worker* Lend(SchedulingClass& need);
  void TakeIn(Worker& worker);
  bool HasTooMany() const { return pool_size_ > workers_wanted_ + blocked_; }

  // ---- Placement groups (scheduler_groups.cc): what is set aside goes by names of its own.
  // False if it is not free now.
  bool SetAside(const Group& group);
  void GiveBack(const Group& group);
  // Whether it is free once the calls that run now are done.
  bool ComesFree(const Group& group) const;
  // Of calls that need so much of that bundle, or of any (-1). Throws InvalidArgument if none has
  // it.
  SchedulingClass& ClassIn(const Group& group, const Resources& need, int bundle);
  // Some call of the group that has not ended; null if there is none.
  Task* CallIn(const Group& group) const;

  void SetTime(std::int64_t now) { now_ = now; }  // Nanoseconds.

  // Hands out what can be handed out; not what needs what `waiting` waits for, if it is not null.
  void Run(const Group* waiting = nullptr);

  // Takes calls back from workers that do not come to them, for those that have nothing to do;
  // `recalled` as for Block.
  void Balance(std::vector<Task*>& recalled);
  bool WantsBalance() const;  // Some worker waits while others have more than one call.

 private:
  SchedulingClass& NewClass(std::string_view text, Resources need);
  void CheckElsewhere(const Resources& need, bool was_elsewhere) const;
  bool Serve(SchedulingClass& scheduling);
  Worker* WorkerFor(SchedulingClass& scheduling);
  Worker* LeastBusy(SchedulingClass& scheduling) const;
  bool Assign(Worker& worker, SchedulingClass& scheduling);
  void Unassign(Worker& worker);
  void ReclaimIdle();
  bool HasRoom(const Worker& worker) const;
  Task* Take(SchedulingClass& scheduling);
  void TakeBack(Worker& worker, std::size_t keep, std::vector<Task*>& recalled);
  void TakeBackAll(Worker& worker, std::vector<Task*>& recalled);
  bool BeginReading(const Worker& worker, Task& task);
  bool Reserve(const Resources& need);
  void StartOneMore();

  Resources total_;
  Resources available_;
  int workers_wanted_;
  int workers_starting_ = 0;
  int pool_size_ = 0;  // Workers that are not an actor's.
  int blocked_ = 0;
  std::vector<Resources> elsewhere_;
  ObjectTable* objects_;
  WorkerQueues* queues_;
  std::vector<Task*> fetching_;
  std::vector<std::unique_ptr<SchedulingClass>> classes_;
  std::unordered_map<std::string, SchedulingClass*> class_by_text_;
  std::vector<SchedulingClass*> spare_classes_;  // Of groups that are no more.
  Functions times_;
  std::vector<Worker*> idle_;  // In the pool, serving no class.
  std::vector<Worker*> all_;   // Of the pool.
  std::size_t ready_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace menger
