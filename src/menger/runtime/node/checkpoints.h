#pragma once

#include <span>
#include <unordered_map>

#include "menger/runtime/calls/task_result.h"
#include "menger/runtime/node/node_records.h"

namespace menger {

// Makes actors again as they were.
//
// Of an actor that is checkpointed the node keeps the last checkpoint and the calls that it has
// done since, in their order, with their arguments, what they were told (CallInputs) and what their
// own calls gave. When its worker dies the actor is constructed, loads the checkpoint, and does
// those calls once more; what they give is known and dropped, and the calls that they make are
// known, too. Then it goes on. A checkpoint is asked for by a call in the worker's queue like any
// other: what has been reported before its result arrives is exactly what it contains. One that
// lies at another node counts once it is here: it must not go with the node that the actor does.
//
// What is kept lies in the records of the actors.
class Checkpoints {
 public:
  explicit Checkpoints(NodeParts& node) : node_(node) {}

  bool IsDue(const Actor& actor) const;
  void Ask(Actor& actor);
  // The call is done; from now on it is part of what the actor is. It does not hold its own actor.
  void Log(Task& task);
  void DropLog(Actor& actor);
  // The actor is as constructed: it becomes what it was.
  void Replay(Actor& actor);
  // As NodeMachine's.
  void BeginWith(Actor& actor, Object& checkpoint);

  // ---- Upkeep: what is done for the actor's sake, not a caller's: to save, to load, to do once
  // more.
  static bool IsUpkeep(const Task& task);
  void UpkeepDone(Task& task, std::span<TaskResult> results);
  void UpkeepFailed(Task& task, const Payload& error);
  void UpkeepLost(Task& task);  // It is not to be done, or not in this life.

  // ---- A checkpoint that lies where the actor lives.
  void CameHome(Object& object);      // If it is one that is awaited.
  void NoRoom(const Object& object);  // Likewise: the one before stays, and the calls since.
  void GiveUpComing(Actor& actor);    // Likewise, if there is any.

  // Whether an earlier run of the method that makes the call made it, too.
  bool KnowsCall(ProcessIndex process, const Worker& worker, const TaskSpec& spec);

 private:
  Task& MakeUpkeep(Actor& actor, CallKind kind);
  void DropUpkeep(Task& task);
  void TakeOver(Actor& actor, Object& checkpoint);
  void EndUnlike(Actor& actor, const TaskSpec& spec, const Object& known);

  NodeParts& node_;
  std::unordered_map<const Object*, Actor*> coming_;
};

}  // namespace menger
