#pragma once

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/node_status.h"
#include "menger/runtime/values/task_error.h"
#include "menger/runtime/watching/node_events.h"

namespace menger {

// What others see a node by: what it notes as it happens, and what it says of itself when it is
// asked.
class Notes {
 public:
  explicit Notes(NodeParts& node) : node_(node) {}

  NodeEvents& events() { return events_; }
  const NodeEvents& events() const { return events_; }

  // What events call a call of that specification.
  std::uint16_t NumberOfName(FunctionTimes& times, const TaskSpec& spec);
  std::string_view NameOf(const Task& task) const { return events_.names()[task.name]; }
  // An error of the call, as its results get it.
  Payload Describe(FailureKind kind, ErrorCode code, const Task& task, std::string text) const;

  void NoteTask(NodeEventKind kind, Worker& worker, const Task& task, double nanoseconds,
                std::int64_t ended_at);
  void NoteWorker(NodeEventKind kind, const Worker& worker, std::string_view cause = "");
  void NoteActor(NodeEventKind kind, const Actor& actor);  // Its state has changed.
  void NoteObject(NodeEventKind kind, const Object& object);

  void FillStatus(NodeStatus& status) const;
  void CopyRunning(std::vector<NodeEvent>& events) const;
  // Appends the calls that are not done among `limit` records from number `from` on, and returns
  // the number of the next; 0: there are no more.
  std::size_t CopyCalls(std::size_t from, std::size_t limit,
                        std::vector<NodeStatus::CallStatus>& calls) const;

 private:
  void FillActors(NodeStatus& status) const;
  void FillTasks(NodeStatus& status) const;

  NodeParts& node_;
  NodeEvents events_;
};

}  // namespace menger
