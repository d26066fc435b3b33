#include "menger/runtime/node/calls.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Calls that ends calls before their time: because their worker is lost, somebody
// cancels them, or they take too long.
namespace menger {
namespace {

constexpr std::uint32_t kReplaysMax = 3;

// How many workers a call may lose. For one of a checkpointed actor that costs nothing but time,
// unless it is what kills them; of an actor that ends with its worker all calls say so.
std::uint32_t RunsMax(const Task& task, std::uint32_t retries) {
  if (task.actor == nullptr) return retries;
  if (task.actor->restarts == 0) return std::numeric_limits<std::uint32_t>::max();
  return task.actor->checkpoint_every > 0 ? std::max(retries, kReplaysMax) : retries;
}

}  // namespace

void Calls::RunAgain(Task& task, bool begun, const TaskFailure& cause) {
  if (Checkpoints::IsUpkeep(task)) return node_.checkpoints.UpkeepLost(task);
  if (task.abandoned()) return Conclude(task);
  if (task.header().kind == CallKind::kConstruct) {  // What is begun counts as its actor's death.
    if (!begun) node_.actors.JoinMailbox(task, Scheduler::Place::kFirst);
    return;
  }
  // A run that needs more memory than there is would need it again: it is as one that threw.
  const bool hopeless = cause.kind == FailureKind::kOutOfMemory && !task.header().retry_errors;
  if (begun && (++task.lost > RunsMax(task, RetriesOf(task)) || hopeless)) {
    TaskFailure failure = cause;
    const bool died = cause.kind == FailureKind::kWorkerDied ||
                      cause.kind == FailureKind::kActorDied || cause.kind == FailureKind::kNodeDied;
    if (task.actor != nullptr && died) failure.kind = FailureKind::kActorUnavailable;
    failure.task = node_.notes.NameOf(task);
    failure.text +=
        fmt::format("; the call was begun {} time{}", task.lost, task.lost > 1 ? "s" : "");
    return SettleFailed(task, Encode(failure));
  }
  if (begun) {
    ++node_.counts.retried;
    EndRun(task);
  }
  if (task.actor != nullptr) {
    node_.actors.JoinMailbox(task, Scheduler::Place::kFirst);
  } else {
    node_.scheduler.Enqueue(task, Scheduler::Place::kFirst);
  }
}

// It had not begun the call when it was asked for it, or died.
void Calls::Returned(Worker& worker, LeaseNumber lease) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  node_.scheduler.Done(worker, *task, -1);
  if (task->actor != nullptr) {
    node_.actors.LeaveWorker(*task);
    node_.actors.ServeLater(*task->actor);
  }
  // What is done for an actor's sake is done all the same: it has lost nothing.
  if (Checkpoints::IsUpkeep(*task))
    return node_.actors.JoinMailbox(*task, Scheduler::Place::kFirst);
  RunAgain(*task, /*begun=*/false, {});
}

// ---- Cancelling and time.

void Calls::Cancel(Object& object, bool force, bool recursive) {
  if (object.foreign) return node_.foreign.Cancel(object, force);
  Task* const task = object.producer;
  if (task == nullptr) return;
  if (task->header().kind == CallKind::kReserve) return node_.groups.Remove(object);
  if (task->header().kind == CallKind::kConstruct) {  // Done long ago, as a rule.
    if (task->actor != nullptr) node_.actors.Kill(*task->actor, false);
    return;
  }
  if (task->state == Task::State::kDone || task->abandoned()) return;
  // By their names: the end of one may be that of others.
  const std::vector<ObjectId> others = recursive ? DescendantsOf(*task) : std::vector<ObjectId>();
  CancelTask(*task, force);
  for (const ObjectId& id : others) {
    const Object* const other = node_.objects.Find(id);
    if (other != nullptr && other->producer != nullptr) CancelTask(*other->producer, force);
  }
  node_.values.SpreadNews();
}

void Calls::CancelTask(Task& task, bool force) {
  if (task.state == Task::State::kDone || task.abandoned()) return;
  End(task,
      node_.notes.Describe(FailureKind::kCancelled, ErrorCode::kCancelled, task,
                           "it was cancelled"),
      force);
}

void Calls::End(Task& task, const Payload& error, bool force) {
  if (task.state == Task::State::kLeased) {
    Worker& worker = *task.worker;
    if (!node_.effects.Recall(worker, task)) return EndRunning(task, error, force);
    node_.scheduler.Done(worker, task, -1);
    if (task.actor != nullptr) node_.actors.LeaveWorker(task);
  } else if (task.state == Task::State::kReady) {
    if (task.actor != nullptr) {
      task.actor->mailbox.Remove(&task);
    } else {
      node_.scheduler.Dequeue(task);
    }
  } else {
    node_.values.StopWaiting(task);
  }
  if (task.actor != nullptr) {
    node_.actors.LeaveLine(task);
    node_.actors.ServeLater(*task.actor);
  }
  SettleFailed(task, error);
}

void Calls::EndRunning(Task& task, const Payload& error, bool force) {
  Worker& worker = *task.worker;
  for (Object* const result : task.results)
    node_.values.Fill(*result, ObjectValue::Failed(error), {});
  node_.states.Enter(task.state, Task::State::kAbandoned);
  ++node_.counts.failed;
  node_.effects.Interrupt(worker, task);
  if (!force || worker.thread || task.actor != nullptr) return;
  node_.workers.EndAsDied(worker, "a call that it ran was ended",
                          "the worker was ended for another call's sake");
}

void Calls::CheckTimeLimits() {
  if (!time_limits_.IsDue(node_.now)) return;
  for (const WorkerIndex index : time_limits_.Look(node_.workers.all(), node_.now)) {
    const Worker* const worker = node_.workers.Find(index);
    // The end of one call may end others.
    if (worker == nullptr || !TimeLimits::EndOf(*worker)) continue;
    Task& task = *worker->outstanding.front();
    End(task,
        node_.notes.Describe(FailureKind::kDeadline, ErrorCode::kDeadlineExceeded, task,
                             fmt::format("it ran longer than its limit of {:.3f} s",
                                         static_cast<double>(task.header().time_limit) * 1e-9)),
        /*force=*/true);
  }
  node_.values.SpreadNews();
}

}  // namespace menger
