#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "menger/runtime/calls/placement_group.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/node/states.h"
#include "menger/runtime/values/ids.h"
#include "menger/runtime/values/object_ref.h"
#include "menger/runtime/values/object_value.h"
#include "menger/runtime/values/pool.h"
#include "menger/runtime/values/resources.h"

namespace menger {

// What the node keeps about objects, tasks, workers and actors. Plain records: the rules are those
// of the parts of NodeMachine (node_parts.h). All of it is guarded by whoever drives the machine;
// nothing here is shared with another process.

struct Actor;
struct Group;
struct NodeParts;
struct Task;
struct Worker;
class WorkerHost;

// A request that a process has made; what it means is the process's affair.
struct Watch {
  ProcessIndex process = kDriver;
  std::uint64_t request = 0;
  bool operator==(const Watch&) const = default;
};

// A call that cannot start without an object, in that object's list. It may have stopped waiting
// since (Task::wait is another then, or the record another call's): whoever reads the list passes
// over it.
struct WaitingTask {
  Task* task = nullptr;
  std::uint64_t wait = 0;
};

struct Object {
  using State = ObjectState;
  ObjectId id;
  StateOf<State> state;
  bool elsewhere = false;       // Copies knows places where it lies, or comes to lie.
  bool foreign = false;         // Another node owns it (ForeignObjects).
  bool unsettled = false;       // Waits for ObjectTable to see whether anybody needs it.
  std::uint32_t referrers = 0;  // References that processes count.
  std::uint32_t holds = 0;      // Calls that need it or will give it, values that contain it.
  std::uint32_t pins = 0;       // Who reads its bytes in shared memory: they may not be moved.
  std::uint32_t lineage = 0;    // Kept calls that would need it again.
  // Of what a checkpointed actor has called: CalleeOf of that call, and its name.
  std::uint64_t callee = 0;
  std::uint16_t callee_name = 0;
  ObjectValue value;
  Task* producer = nullptr;  // The call that makes it, while that is known.
  std::vector<WaitingTask> waiting;
  std::uint32_t stopped_waiting = 0;  // Of these so many at the most.
  std::vector<Watch> watches;
  std::vector<Object*> contained;  // What its value refers to; each is held.
  Object* previous = nullptr;      // Among the values in shared memory.
  Object* next = nullptr;
};

// By the id, so that the order in which objects are met is the same in every run.
struct ObjectHash {
  std::size_t operator()(const Object* object) const { return IdHash()(object->id); }
};

// How long calls of one name take: how many may be given to a worker at once.
struct FunctionTimes {
  static constexpr double kUnknown = 1e6;
  double mean_nanoseconds = kUnknown;  // Exponential averages:
  double waits = 0;                    // how many of them wait for others.
  // Of the last call: its own name, or none, and what NodeEvents calls it then.
  std::string name;
  std::uint16_t name_number = 0;
  bool has_name_number = false;
};

// When a call runs, of those that need the same; greater turns come earlier.
struct Turn {
  std::uint64_t wanted = 0;  // Task::wanted.
  int priority = 0;
  bool operator>(const Turn& other) const {
    return wanted != other.wanted ? wanted > other.wanted : priority > other.priority;
  }
};

// On what workers of other classes keep busy.
struct Claim {
  std::uint64_t round = 0;  // Of the scheduler, in which it was made last,
  std::int64_t since = 0;  // and when it was made first, of rounds behind one another: nanoseconds.
};

// A node among those that do the calls of a class in turn.
struct NodeTurn {
  std::uint64_t last = 0;          // Of the class, when it had one; 0: never.
  bool full = false;               // It had no room, as it said, or lent nothing.
  std::int64_t awaited_since = 0;  // It is its turn, and it may lend a worker; 0: it is not.
};

// Calls that need the same resources: a worker that has them serves one call after the other.
struct SchedulingClass {
  std::string text;
  Resources need;
  SchedulingClass* otherwise = nullptr;  // What its calls need where no node has that; null: it.
  bool spread = false;                   // Nodes do its calls in turn (scheduler_spread.cc):
  std::uint64_t turns = 0;               // that many so far.
  std::map<PeerIndex, NodeTurn> turn_of;
  // It needs what this node never has; what another had, which may be gone.
  bool foreign = false;
  bool was_elsewhere = false;
  bool gpus = false;               // It needs some; see Scheduler.
  std::int64_t missing_since = 0;  // No node has had what it needs, and calls wait; 0: no.
  bool warned = false;             // Somebody was told of that.
  std::int64_t short_since = 0;    // Likewise: actors have had it; see Shortage.
  bool told_short = false;
  const Group* group = nullptr;  // Of whose resources they take theirs; null: of the node's.
  int bundle = -1;               // Of which of its bundles; -1: of any,
  Resources wish;                // and what, by the usual names.
  std::map<Turn, IntrusiveList<Task>, std::greater<>> ready;
  std::size_t ready_count = 0;
  double mean_nanoseconds = FunctionTimes::kUnknown;  // Of its calls; an exponential average.
  std::vector<Worker*> workers;                       // That serve it now,
  std::vector<Worker*> blocked;                       // and those of them whose call waits.
  Claim calls;                                        // Of its calls, none of which has a worker,
  Claim actors;                                       // and of actors that need the same.
};

// A call, from the moment that it is made until its results are there and it need not run again.
struct Task {
  using State = TaskState;
  StateOf<State> state;
  std::uint16_t lost = 0;     // Runs that a lost worker ended.
  bool brief = false;         // Expected to take less than it costs to tell of it.
  bool reading = false;       // The values of its references are pinned.
  bool fetching = false;      // It could run, but some of them are not in memory.
  bool unrepeatable = false;  // What a run of it was told was too much to keep.
  bool in_line = false;       // Of its caller's calls to its actor (Actor::held_back).
  bool logged = false;        // Done, and part of what its actor has become (Actor::log).
  std::uint16_t name = 0;     // See NodeEvents.
  // The runs that were begun and have ended, however, without results that are still there; of what
  // does the same in every run always 0. See RunOf.
  std::uint32_t run = 0;
  // The latest of the waits (waits_as) of which the end needs this call; 0: of none. It may be
  // over.
  std::uint64_t wanted = 0;
  std::uint64_t waits_as = 0;  // How its own waits are numbered, once it has waited.
  std::uint32_t pending = 0;   // Arguments that are not ready.
  std::uint64_t wait = 0;      // The number of its wait for them; 0: it does not wait.
  SpecPointer spec;
  Worker* worker = nullptr;
  Worker* awaited_by = nullptr;  // Of another node, to which its arguments are on their way.
  LeaseNumber lease = 0;
  std::int64_t offered_at = 0;
  std::int64_t nearer_since = 0;  // It could have begun, away from its arguments; 0: it could not.
  SchedulingClass* scheduling = nullptr;
  FunctionTimes* times = nullptr;
  Actor* actor = nullptr;
  Id caller;                     // Whose calls to one actor keep their order.
  std::vector<Object*> results;  // Each held until the call is done.
  // What it needs, each held likewise: first the arguments by reference, then what is contained in
  // the others, then its home (SpecHeader).
  std::vector<Object*> arguments;
  std::uint32_t references = 0;  // Of the first kind.
  // Values that are held because a further run needs them: of a checkpointed actor's call the
  // results of its own calls, of one that is kept for lineage small arguments.
  std::vector<Object*> held;
  // What a run of it was told that another would be told otherwise (call_inputs.h).
  std::vector<std::byte> records;
  std::uint32_t kept_for = 0;  // Results that may have to be made again from it.
  // In a queue of calls that are ready, of a worker, of an actor's caller, or of those kept.
  Task* previous = nullptr;
  Task* next = nullptr;
  // The call that made it, while both are under way; its own calls likewise, the newest first.
  Task* parent = nullptr;
  Task* first_child = nullptr;
  Task* older_sibling = nullptr;
  Task* newer_sibling = nullptr;

  const SpecHeader& header() const { return spec->header(); }
  bool abandoned() const { return state == State::kAbandoned; }
};

// The items of a call that its reader has not taken yet: [taken, yielded), each held.
struct Stream {
  ProcessIndex reader = kDriver;
  PeerIndex reader_node = 0;  // Of one elsewhere: it has what was told and not taken.
  std::uint32_t ahead = 0;    // So many there may be.
  std::uint64_t yielded = 0;
  std::uint64_t taken = 0;
  std::uint64_t told = 0;  // Of `taken`: what the writer can know.
  Object* gate = nullptr;  // Held; see stream.h.
};

// A worker of one node that does the calls of another for a while. Of the lender in one life, from
// 1, never used twice.
using LoanNumber = std::uint64_t;

// Those who keep places for outstanding leases need no more: leases count on where calls were taken
// back.
inline constexpr LeaseNumber kLeasesMax = 1024;

// What a worker process runs: 0 is what this node's own do. Others are those of other nodes, which
// are lent such workers (guests.h).
using ProgramIndex = std::uint32_t;
inline constexpr ProgramIndex kOwnProgram = 0;

// A thread or a process that does calls, as the node sees it.
struct Worker {
  using State = WorkerState;
  WorkerIndex index = 0;
  StateOf<State> state;
  WorkerHost* host = nullptr;          // How it is reached; not the machine's affair.
  bool thread = false;                 // Of the driver: its references are the driver's.
  ProgramIndex program = kOwnProgram;  // Another: it is a guest, and dedicated to be lent.
  bool dedicated = false;              // To one actor; or to nobody, since it is spent.
  bool used = false;                   // It has served some class,
  bool gpus = false;                   // or serves one that needs GPUs.
  bool timed = false;                  // While it is blocked: not for ever.
  bool full = false;                   // Its queue had no room; until it finishes something.
  SchedulingClass* serving = nullptr;  // Whose resources it has; of a dedicated one its actor's.
  IntrusiveList<Task> outstanding;     // In the order in which they were offered.
  LeaseNumber leases = 0;
  std::bitset<kLeasesMax> places;  // Of the leases that are out, by their numbers.
  std::uint64_t waits_as = 0;      // Of its call, while that waits,
  std::vector<ObjectId> awaited;   // for these.
  double queued_nanoseconds = 0;
  std::int64_t progress_at = 0;
  std::int64_t ended_at = 0;  // When it ended its last call, as it says.
  Actor* actor = nullptr;     // That lives here; of threads none does.
  LoanNumber loan = 0;        // While it is lent:
  PeerIndex lender = 0;       // it is a process of that node and does calls of this one,
  PeerIndex borrower = 0;     // or a process of this node and does calls of that one.
  std::int64_t lent_at = 0;
  Task* awaits = nullptr;  // A borrowed one: the call that it gets next (awaited_by),
  std::int64_t awaits_since = 0;
  std::uint64_t tried = 0;  // and the round in which it was to get one that could not yet go.
  bool asked_back = false;
  bool stays = false;  // Lent for an actor: it comes back to nobody.
  // Given back though it refers to objects of its borrower's: it occupies nothing, and goes on as
  // it is when it is lent to him again. One that is borrowed is in no class.
  bool rests = false;
  bool saved = false;  // Its actor was, to be made again elsewhere.

  bool blocked() const { return state == State::kBlocked; }
  bool gone() const { return state == State::kGone; }
};

using WorkersByIndex = std::unordered_map<WorkerIndex, std::unique_ptr<Worker>>;

// Another node, in one of its lives.
struct Peer {
  PeerIndex index = 0;
  NodeId node;
  std::uint64_t epoch = 0;   // Which life.
  ProcessIndex process = 0;  // As which it refers to its values that lie here.
  Resources total;
  // What its calls' workers run, where that is known and to be had here; and who runs it and is not
  // lent now, who was idle for the longest first.
  std::optional<ProgramIndex> program = kOwnProgram;
  std::vector<Worker*> guests;
  std::uint32_t guests_starting = 0;
  bool told_cannot = false;  // That its calls cannot be done here.
  bool lends = true;         // Or it is a program's, and has no workers for others.
  std::string cannot_serve;  // Why it can do no call of this node; "": it can.
  // Workers that it would have, and those that it was asked for: by the class of calls.
  std::map<std::string, std::uint32_t> wanted;
  std::map<std::string, std::uint32_t> asked;
  std::set<std::string> told_full;  // Those wanted that it knows there is no room for.
  std::optional<Resources> free;    // What it said that it had, when a bundle found no room.
  // Bundles of its placement groups that are here, by what it calls these.
  std::map<std::uint64_t, std::unique_ptr<Group>> groups;
  // Objects of its that this node brings for its own use, and those that it has, by what the owner
  // calls these copies.
  std::map<std::uint64_t, ObjectId> own_pulls;
  std::map<std::uint64_t, ObjectId> own_copies;
  // It will leave; it knows that this node will, and needs nothing of it any longer (drains.h).
  bool leaves = false;
  bool told = false;
  bool lets_go = false;
  // This node's that it has, and its own that this node has.
  std::map<LoanNumber, Worker*> lent;
  std::int64_t lent_at = 0;        // The last of them.
  std::uint32_t told_sharers = 1;  // Of this node's memory; as it knows.
  std::int64_t short_since = 0;    // It wants more than there was for it; 0: it does not.
  std::map<LoanNumber, Worker*> borrowed;
};

// Resources that are set aside together for the calls that name them, from the call that asks for
// them until nobody refers to its result: a placement group.
struct Group {
  static constexpr PeerIndex kNowhere = ~PeerIndex{0};
  // Bundles that are to be on another node, since theirs is gone: by what that was asked for them.
  struct Move {
    PeerIndex to = 0;
    std::uint64_t asked_as = 0;
    std::vector<std::size_t> bundles;
  };

  std::string name;  // Of its resources: "cpu@3" are the CPUs of group 3, "cpu@3.0" its bundle 0's.
  ObjectId id;       // What stands for it,
  Task* reservation = nullptr;  // and what made that; none and null for another node's.
  PlacementStrategy strategy = PlacementStrategy::kPack;
  std::vector<Resources> bundles;
  // Of each the node that it is on; 0: this one; kNowhere: that is gone.
  std::vector<PeerIndex> places;
  Resources all;           // Of all bundles,
  Resources total;         // and of those that are here.
  std::int64_t since = 0;  // When it was asked for: nanoseconds.
  // Where bundles are to be on other nodes: what those are asked for it by (0: they are not), which
  // have not answered yet, and when they may be asked again, after how long a pause.
  std::uint64_t asked_as = 0;
  std::vector<PeerIndex> unanswered;
  std::int64_t again_at = 0;
  std::int64_t pause = 0;
  // Once it has all: of each bundle what its node knows it by; 0: it is here, or nowhere.
  std::vector<std::uint64_t> known_as;
  std::vector<Move> moves;
  std::int64_t lost_at = 0;  // When a node with some of it was last gone,
  std::string loss;          // and why.

  bool IsHere(std::size_t bundle) const { return places[bundle] == 0; }
  bool IsElsewhere(std::size_t bundle) const {
    return places[bundle] != 0 && places[bundle] != kNowhere;
  }
};

// An actor, from the call that makes it until nobody refers to it.
struct Actor {
  ActorId id;
  using State = ActorState;
  StateOf<State> state;
  std::string name;          // "" for none.
  bool claims_name = false;  // Its construction waits until the name is its own (shared_names.h).
  Object* object = nullptr;  // Stands for it; held by its record.
  Task* construction = nullptr;
  Worker* worker = nullptr;     // Where it lives; threads take turns.
  std::uint32_t in_flight = 0;  // Calls offered to `worker` and not finished.
  std::uint32_t restarts = 0;   // That are left.
  bool waits_for_room = false;  // It is among those that the next Run serves.
  std::uint64_t wanted = 0;     // As Task::wanted, of its calls.
  IntrusiveList<Task> mailbox;  // Calls that can run, in order.
  std::unordered_map<Id, IntrusiveList<Task>, IdHash> held_back;  // By caller: the first waits.
  Payload death;  // Of a dead one: the encoded TaskFailure that its calls get.

  // Of one that is checkpointed:
  std::uint32_t checkpoint_every = 0;  // Calls; 0 for one that is not.
  std::uint64_t checkpoints = 0;       // Saved and loaded so far.
  Object* checkpoint = nullptr;        // The last that has arrived, if any; held.
  // One that lies where the actor lives, and is on its way here; held. The first `covered` calls of
  // the log are part of it.
  Object* coming = nullptr;
  std::size_t covered = 0;
  std::vector<Task*> log;           // Calls done since, in order; with what they need.
  std::uint32_t unsaved_calls = 0;  // Offered since a checkpoint was asked for.
  std::size_t unsaved_bytes = 0;    // Of those of them that are done.
};

}  // namespace menger
