#pragma once

#include <optional>
#include <span>

#include "menger/runtime/calls/task_result.h"
#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/time_limits.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Calls, from the moment that they are made until their results are settled: Submit, Start,
// Finished or Failed, Settle, Conclude; and how they end before their time (calls_endings.cc).
class Calls {
 public:
  explicit Calls(NodeParts& node) : node_(node) {}

  // ---- As NodeMachine's.
  void Submit(ProcessIndex process, SpecPointer spec, Worker* thread);
  void Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                double nanoseconds, std::int64_t ended_at);
  void Failed(Worker& worker, LeaseNumber lease, TaskFailure failure, double nanoseconds,
              std::int64_t ended_at);
  void Record(Worker& worker, LeaseNumber lease, std::span<const std::byte> bytes);
  void Returned(Worker& worker, LeaseNumber lease);
  void Cancel(Object& object, bool force, bool recursive = true);
  std::size_t waiting() const { return waiting_; }
  std::size_t waiting_bytes() const { return waiting_bytes_; }

  void Start(Task& task);                                     // Its arguments are ready.
  static Task* FindLease(Worker& worker, LeaseNumber lease);  // Null if it is settled.
  void Settle(Task& task, std::span<TaskResult> results);
  void SettleFailed(Task& task, const Payload& error);
  void Conclude(Task& task);  // Its results are settled: lets go of what it held.
  void Drop(Task& task);      // Nobody needs its record: lets go of what it needed.
  // It begins to be under way, or is no longer.
  void CountWaiting(const Task& task, bool begins);

  // ---- Before their time.
  // Its worker is lost, or has given it back without having begun it.
  void RunAgain(Task& task, bool begun, const TaskFailure& cause);
  // Settles a call with an error wherever it is; `force`: with its worker, where that is a process.
  void End(Task& task, const Payload& error, bool force);
  void EndRunning(Task& task, const Payload& error, bool force);  // The same, of one that runs.
  void CheckTimeLimits();
  std::optional<std::int64_t> next_limit() const { return time_limits_.due(); }

 private:
  Task& MakeTask(ProcessIndex process, SpecPointer spec);
  void HoldArgument(Task& task, ObjectId id, bool needs_value);
  // So often may a run that a worker's loss cut short be done once more: of a method its actor
  // says, unless it says so itself.
  static std::uint16_t RetriesOf(const Task& task);
  bool StandsForLiving(const Task& task) const;
  void CancelTask(Task& task, bool force);

  NodeParts& node_;
  TimeLimits time_limits_;
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace menger
