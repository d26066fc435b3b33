#pragma once

#include <deque>
#include <functional>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/scheduler.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Actors: a call waits until its arguments are there and the calls that its caller made before it
// have gone ahead; then it is the actor's turn, one call at a time, wherever the actor lives. Calls
// of an actor with concurrency do not wait for each other: the one that would make the other's
// argument may be among them.
class Actors {
 public:
  explicit Actors(NodeParts& node) : node_(node) {}

  const std::unordered_map<ActorId, std::unique_ptr<Actor>, IdHash>& all() const { return actors_; }
  Actor* Find(ActorId id);
  Actor* Find(std::string_view name);

  // ---- Its construction, and its calls.
  bool Declare(Task& construction);  // False if an actor has that name already.
  void Construct(Task& task);        // Its arguments are there.
  void OrderCall(Task& task);        // A method was called,
  void CallReady(Task& task);        // its arguments are there,
  void CallDone(Task& task);         // and it, or the construction, has ended.
  void JoinMailbox(Task& task, Scheduler::Place place);
  void LeaveLine(Task& task);    // It waits for its turn no longer.
  void LeaveWorker(Task& task);  // It was offered, and is no longer.
  // What its construction reads was lost, and is to be made again, perhaps where it would live.
  void LeaveHome(Actor& actor);
  // Calls of actors that their workers had not begun; the last one first.
  void CallsReturned(const std::vector<Task*>& calls);

  // ---- Whose turn it is.
  void Serve(Actor& actor);
  void ServeLater(Actor& actor);  // In the next Run:
  void ServeWaiting();
  const std::deque<Actor*>& waiting() const { return waiting_; }
  Actor* Homeless() const;  // The first that waits for a worker; or null.

  // ---- Ends.
  // As NodeMachine's KillActor.
  void Kill(Actor& actor, bool may_restart,
            std::string_view why = "the actor was killed by its user");
  void WorkerLost(Actor& actor, const TaskFailure& cause);
  // Its worker's node will leave: it is made again elsewhere, if it is checkpointed.
  void AskToMove(Worker& worker);
  // All calls that it has not begun fail; its process, if it had one, has ended or ends.
  void Die(Actor& actor, const Payload& death);
  void Release(Actor& actor);  // Nobody refers to it any longer, and it has no calls: each held it.

 private:
  void SettleDead(Task& task, const Actor* actor);
  void LetCallerGo(Actor& actor, const Id& caller);
  static bool IsToMove(const Actor& actor);
  void MoveSaved(Actor& actor);
  void Move(Actor& actor);
  void EndHome(Actor& actor, std::string_view why);
  void AwaitArguments(Task& construction);
  void MakeAgain(Actor& actor);
  std::size_t OfferCalls(Actor& actor, std::size_t most);
  bool FindHome(Actor& actor);
  Worker* FindProcess(SchedulingClass& need);
  void SortWaiting();
  Worker* EndLife(Actor& actor);
  std::vector<Task*> TakeCalls(Actor& actor, std::vector<Task*>& calls);

  NodeParts& node_;
  std::unordered_map<ActorId, std::unique_ptr<Actor>, IdHash> actors_;
  std::map<std::string, Actor*, std::less<>> by_name_;
  std::deque<Actor*> waiting_;  // Have calls, or their construction, and no room.
};

}  // namespace menger
