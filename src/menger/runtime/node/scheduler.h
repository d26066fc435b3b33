#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/node/reading_rooms.h"

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

 protected:
  ~WorkerQueues() = default;
};

// Where values lie, of this node (0) and others: see Copies.
class ValuePlaces {
 public:
  // It is there, in memory, or travels with the call.
  virtual bool IsAt(const Object& object, PeerIndex node) const = 0;
  // How long it would take to come there, by what values took so far; 0 where it is.
  virtual double NanosecondsTo(const Object& object, PeerIndex node) const = 0;
  // It shall come to lie there; until then no call is offered there that needs it. Again changes
  // nothing.
  virtual void Bring(Object& object, PeerIndex node) = 0;

 protected:
  ~ValuePlaces() = default;
};

// Decides which worker gets which call, and when.
//
// Calls that need the same resources form a class. A worker serves one class at a time and holds
// what its calls need meanwhile; it is given several short calls ahead, by the time that calls of
// their names took so far, and one at a time of those that take long. What one worker has not
// begun is taken back for another that has nothing to do, and whenever its call starts to wait.
//
// Nobody starves. What a call that waits needs goes first, the latest such call's before others',
// and gets a worker of its own while a CPU is free. A call that nobody waits for begins only while
// few workers wait; after that one at a time is let in, at growing intervals, since calls
// may wait for others without saying so. The one call that a thread of the driver waits for is let
// in then, too. A class, or an actor, that has waited for a while for what
// workers of other classes keep busy has it next: those get nothing new until it does.
//
// The arguments of what is offered stay in memory until it is done. Where one is on the disk, the
// call waits at the head of its queue: it comes before those that would push it out again.
//
// Libraries ask once in the life of a process which GPUs there are. So a process is given calls
// that need GPUs only if it has done no others, and when it is to do others it ends: it is spent.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Scheduler {
 private:
  // What calls are timed by: a function, and which one it is or how it is called.
  struct TimesKey {
    FunctionId function;
    std::uint64_t kind = 0;
    bool operator==(const TimesKey&) const = default;
  };
  struct TimesHash {
    std::size_t operator()(const TimesKey& key) const {
      return key.kind ^ key.function.module ^ (key.function.offset * 0x9e3779b97f4a7c15ULL);
    }
  };

 public:
  using Times = std::unordered_map<TimesKey, FunctionTimes, TimesHash>;

  // `pool_max`: so many workers at the most, beside those of actors.
  Scheduler(Resources total, int workers, int pool_max, ObjectTable& objects, States& states,
            WorkerQueues& queues, ValuePlaces& places);

  const Resources& total() const { return total_; }
  const Resources& available() const { return available_; }
  std::size_t ready() const { return ready_; }
  bool HasIdleWorker() const { return pool_size_ > busy_; }
  int pool_size() const { return pool_size_; }
  int blocked() const { return blocked_; }  // Of the pool.
  bool IsStarting() const { return workers_starting_ > 0; }

  // The class of that text (TaskSpec::scheduling). Throws InvalidArgument for a text that cannot be
  // read or needs that no node has, Unavailable if a node had them that is gone.
  SchedulingClass& ClassFor(std::string_view text);
  const std::vector<std::unique_ptr<SchedulingClass>>& classes() const { return classes_; }
  // What is known of calls of one name. `callee`: see SpecHeader.
  FunctionTimes& TimesOf(FunctionId function, std::uint64_t callee = 0, std::string_view name = "");
  const Times& times() const { return times_; }  // Of all that were called.

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
  // One that the pool has had no need of for a while; or null.
  Worker* Spare() const;
  // One that is to be ended, having had GPUs, or to make room for one that can have them; or null.
  Worker* TakeSpent();
  enum class Place : std::uint8_t { kLast, kFirst };      // Of those of its turn.
  void Enqueue(Task& task, Place place = Place::kLast);   // In the queue of its class.
  void Dequeue(Task& task);                               // It is not to run after all.
  static Task* Front(const SchedulingClass& scheduling);  // Of its queue; or null.

  // One more call for a worker, past the queues of the classes: an actor's. False: no room, or its
  // arguments are not in memory.
  bool OfferTo(Worker& worker, Task& task);

  ReadingRooms& reading_rooms() { return reading_rooms_; }
  // Those that were to be offered and wait for arguments: whoever comes back to them finds these
  // in memory, or one of them lost. They are still in their queues.
  const std::vector<Task*>& fetching() const { return fetching_; }
  // The call needs its arguments in memory no longer.
  void StopReading(Task& task);

  // The worker has done (or given back, or lost) one of its calls.
  void Done(Worker& worker, Task& task, double nanoseconds);

  // Its call waits, as Worker::waits_as: its resources are lent and what it has not begun goes
  // elsewhere; `recalled` gets those calls that are an actor's.
  void Block(Worker& worker, std::vector<Task*>& recalled);
  void Unblock(Worker& worker);
  // What the worker has not begun is taken back, since it fills the way to it; as above.
  void Empty(Worker& worker, std::vector<Task*>& recalled);

  // ---- Workers of other nodes (scheduler_loans.cc).
  // Another node, and what it has in all.
  struct Elsewhere {
    PeerIndex node = 0;
    Resources total;
  };
  void SetElsewhere(std::vector<Elsewhere> elsewhere);
  // What none of them has may yet come: see NodeMachineOptions::node_patience.
  void AwaitNodes() { awaits_nodes_ = true; }
  // NodeMachineOptions::only_borrows. Before all else.
  void OnlyBorrow();
  bool IsElsewhere(const Resources& need) const;
  // So much is free here now, whether or not a worker is.
  bool HasRoomFor(const SchedulingClass& need) const {
    return !need.foreign && available_.Contains(need.need);
  }
  // Another node's, for calls of the class, until RemoveWorker: its resources are not this node's.
  void AddBorrowed(Worker& worker, SchedulingClass& scheduling);
  void RemoveBorrowed(Worker& worker);
  // How many of the class's calls can begin here, as it is expected, before one has waited for so
  // long.
  static double BegunHereWithin(double nanoseconds, const SchedulingClass& scheduling);
  // It is one actor's from now on.
  static void Keep(Worker& worker);
  // A borrowed one that has nothing to do, for an actor; null if there is none, or it is another
  // node's turn.
  Worker* FreeBorrowed(SchedulingClass& need) const;
  // Calls that prefer what no node has any longer (`otherwise`) wait for it no longer.
  bool HasPreferring() const { return preferring_ > 0; }
  void GoElsewhere(SchedulingClass& scheduling);
  // It is to be given back: what it has not begun is asked for, and it gets no more.
  void AskBack(Worker& worker);
  // Takes a worker that has nothing to do, with resources that nobody uses, out of the pool; null
  // if there is none now. TakeIn: it is back.
  Worker* Lend(SchedulingClass& need);
  void TakeIn(Worker& worker);
  bool HasTooMany() const { return pool_size_ > workers_wanted_ + blocked_; }
  // A guest has what the class needs from now on: false if that is not free. Vacate: no longer.
  bool Occupy(Worker& guest, SchedulingClass& need);
  void Vacate(Worker& guest);

  // ---- Nodes that do the calls of a class in turn (scheduler_spread.cc).
  // Whether that one has room, as far as is known.
  static void SetFull(SchedulingClass& scheduling, PeerIndex node, bool full);

  // ---- Placement groups (scheduler_groups.cc): what is set aside goes by names of its own.
  // False if it is not free now.
  bool SetAside(const Group& group);
  // Likewise of a group whose calls are there already: the bundles are here then.
  bool SetAside(Group& group, const std::vector<std::size_t>& bundles);
  void GiveBack(const Group& group);
  void ReturnBundles(const Group& group);  // Its calls will be somewhere else.
  // What is free once idle workers have left their classes.
  Resources FreeOfIdle();
  // The group ends before the worker is back that was lent for its calls: it has nothing of it.
  void LeaveGroup(const Group& group, Worker& lent);
  // Whether so much is free once the calls that run now are done.
  bool ComesFree(const Resources& need) const;
  // Of calls that need so much of that bundle, or of any (-1). Throws InvalidArgument if none has
  // it.
  SchedulingClass& ClassIn(const Group& group, const Resources& need, int bundle);
  // Some call of the group that has not ended; null if there is none.
  Task* CallIn(const Group& group) const;

  void SetTime(std::int64_t now) { now_ = now; }  // Nanoseconds.

  // ---- Whose turn it is (scheduler_turns.cc).
  // Hands out what can be handed out; not what needs what `waiting` waits for, if it is not null.
  void Run(const Group* waiting = nullptr);
  // All that waits for a worker of its own asks again after this, before the next Run.
  void BeginRound() {
    ++round_;
    asking_ = 0;
  }
  // The call is waited for by the one whose wait has that number.
  void Want(Task& task, std::uint64_t wait);
  // Workers whose calls wait, by the number of the wait; the latest last. Null: the driver waits.
  const std::map<std::uint64_t, Worker*>& waits() const { return waits_; }
  void BeginDriverWait(std::uint64_t wait) { waits_.emplace(wait, nullptr); }
  void EndDriverWait(std::uint64_t wait) { waits_.erase(wait); }
  // So many workers wait that calls which nobody waits for do not begin.
  bool IsCrowded() const;
  // A call that some other waits for, and that no worker will ever be had for: all wait, and there
  // may be no more. Null if there is none.
  Task* Stranded();
  // A call that is ready, where no worker is there or comes that could do it; null if there is
  // none.
  Task* WithoutWorker() const;
  // When Run has to look again, if nothing happens: as NodeMachine::next_deadline.
  std::optional<std::int64_t> NextTurn() const;

  // Takes calls back from workers that do not come to them, for those that have nothing to do, or
  // has one started that stands in for one that waits;
  // `recalled` as for Block.
  void Balance(std::vector<Task*>& recalled);

 private:
  static bool IsOfPool(const Worker& worker) { return !worker.dedicated && worker.lender == 0; }
  void Insert(Task& task, Place place);  // In its queue.
  bool IsStuck(const Worker& worker) const;
  static bool MayQueue(const Task& task);

  // scheduler_turns.cc
  bool MayEnter(const Task& task);
  void OpenDoor() { next_entry_ = entry_interval_ = 0; }
  void CloseDoorBehind();
  Task* Next(SchedulingClass& scheduling);
  std::uint64_t StillWantedBy(const Task& task) const;
  void AskAgain(Claim& claim);
  void HadTurn(Claim& claim);
  void FindClaims();
  bool IdleAreForCalls() const;
  bool IsHeldBack(const SchedulingClass& scheduling) const;
  bool HoldsBack(const Claim& claim, const Resources& claimed, const SchedulingClass& other) const;
  void ServeAll(const Group* waiting, bool wanted);

  SchedulingClass& NewClass(std::string_view text, Resources need);
  void CheckElsewhere(const Resources& need, bool was_elsewhere) const;
  SchedulingClass& CheckKnown(SchedulingClass& known) const;
  bool Serve(SchedulingClass& scheduling);
  bool ServeFetched(Worker& worker, const SchedulingClass& scheduling);
  Worker* WorkerFor(SchedulingClass& scheduling);
  Worker* LeastBusy(const SchedulingClass& scheduling, const Task* next) const;
  Worker* InTurn(SchedulingClass& scheduling, const Task* next) const;
  bool IsTurnOf(PeerIndex node, SchedulingClass& scheduling) const;
  bool Assign(Worker& worker, SchedulingClass& scheduling);
  void Unassign(Worker& worker);
  void ReclaimIdle();

  // scheduler_gpus.cc
  Worker* IdleFor(const SchedulingClass& scheduling);
  bool AllWaitForGpus() const;
  void Spend(Worker& worker);
  void Rest(Worker& worker);
  bool HasRoom(const Worker& worker) const;
  bool TakesMore(const Worker& worker) const;
  void Await(Worker& worker, Task& task) const;
  static void StopAwaiting(Task& task);
  bool IsAwaited(const Task& task) const;
  Task* NextFor(const Worker& worker, SchedulingClass& scheduling);
  Task* NextFree(const Worker& worker, const SchedulingClass& scheduling);
  bool AwaitsNearer(const Worker& worker, Task& task);
  double MissingNanoseconds(const Task& task, PeerIndex node) const;
  double CostOf(const Worker& worker, const Task* next) const;
  void TakeBack(Worker& worker, std::size_t keep, std::vector<Task*>& recalled);
  void TakeBackAll(Worker& worker, std::vector<Task*>& recalled);
  bool BeginReading(const Worker& worker, Task& task);
  bool Reserve(const Resources& need);
  void StartOneMore();

  Resources total_;
  Resources available_;
  int workers_wanted_;
  int pool_max_;
  int workers_starting_ = 0;
  int asking_ = 0;     // Those that had none to be theirs in this round.
  int pool_size_ = 0;  // Workers that are not an actor's;
  int blocked_ = 0;    // of these whose call waits,
  int busy_ = 0;       // which have calls,
  int stacked_ = 0;    // and which more than one.
  std::vector<Elsewhere> elsewhere_;
  std::int64_t no_nearer_at_ = 0;  // A call goes where it can then; 0: none waits for a nearer one.
  bool awaits_nodes_ = false;
  bool only_borrows_ = false;
  ObjectTable* objects_;
  States* states_;
  WorkerQueues* queues_;
  ValuePlaces* places_;
  std::vector<Task*> fetching_;
  ReadingRooms reading_rooms_{*places_};
  std::vector<std::unique_ptr<SchedulingClass>> classes_;
  std::unordered_map<std::string, SchedulingClass*> class_by_text_;
  std::vector<SchedulingClass*> spare_classes_;  // Of groups that are no more.
  SchedulingClass nothing_;                      // Needs none.
  Times times_;
  std::vector<Worker*> idle_;  // In the pool, serving no class.
  std::vector<Worker*> all_;   // Of the pool.
  std::vector<Worker*> spent_;
  int gpu_classes_ = 0;
  int preferring_ = 0;  // Classes with another that their calls go to.
  std::size_t ready_ = 0;
  std::size_t wanted_ready_ = 0;  // Of these, that some call waits for.
  std::int64_t now_ = 0;
  std::map<std::uint64_t, Worker*> waits_;
  // While it is crowded: when the next call that nobody waits for is let in, and how long after
  // that the one after it. 0: not decided.
  std::int64_t next_entry_ = 0;
  std::int64_t entry_interval_ = 0;
  std::uint64_t round_ = 0;
  std::int64_t turn_at_ = 0;              // When somebody who had waited had his turn.
  std::vector<SchedulingClass*> claims_;  // Those that wait for what others have, in this Run.
  Task* stranded_ = nullptr;
};

}  // namespace menger
