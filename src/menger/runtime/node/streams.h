#pragma once

#include "menger/runtime/calls/task_result.h"
#include "menger/runtime/node/node_records.h"

namespace menger {

// Calls whose readers want more (stream.h): holds the items that were yielded and not taken, and
// lets the writer go on by its gate, an object that is ready while there are not too many.
class Streams {
 public:
  explicit Streams(NodeParts& node) : node_(node) {}

  void Open(ProcessIndex reader, const Task& task);
  void Forget(const SpecHeader& header);
  // As NodeMachine's.
  void Yield(Worker& worker, LeaseNumber lease, std::uint64_t index, TaskResult item);
  void Take(ProcessIndex reader, TaskId call, std::uint64_t count);
  // The reader is gone.
  void CloseOf(ProcessIndex reader);
  // Some writer waits only until the driver has read more, or another node.
  bool AwaitsReader() const;

 private:
  void MoveGate(Stream& stream);
  void SetGate(Object& gate, std::uint64_t taken);
  void Close(TaskId call, bool ends);  // `ends`: the call is cancelled.

  NodeParts& node_;
  std::unordered_map<TaskId, Stream, IdHash> streams_;
};

}  // namespace menger
