#include <algorithm>
#include <utility>

#include "menger/runtime/node_machine.h"

// The part of the node's logic that ends calls before their time: because their worker is lost,
// somebody cancels them, or they take too long.
namespace menger {

void NodeMachine::WorkerDied(Worker& worker, const TaskFailure& cause) {
  scheduler_.RemoveWorker(worker);
  // What it had not begun is not to blame. Its queue is asked backwards: it began from the front.
  std::vector<std::pair<Task*, bool>> lost;
  while (Task* const task = worker.outstanding.back()) {
    const bool begun = !effects_->Recall(worker, *task);
    scheduler_.Done(worker, *task, -1);
    lost.emplace_back(task, begun);
  }
  const std::vector<Actor*> actors = worker.actors;
  for (const auto& [task, begun] : lost) RunAgain(*task, begun, cause);
  for (Actor* const actor : actors) ActorWorkerLost(*actor, cause);
  objects_.DropProcess(worker.index);
  workers_.erase(worker.index);
  SpreadNews();
}

void NodeMachine::RunAgain(Task& task, bool begun, const TaskFailure& cause) {
  if (task.cancelled) return Conclude(task);
  if (begun && ++task.lost > task.header().retries) {
    TaskFailure failure = cause;
    failure.task = task.spec->name();
    failure.text += fmt::format("; the call was begun {} times", task.lost);
    return SettleFailed(task, Encode(failure));
  }
  if (begun) ++counts_.retried;
  if (task.actor != nullptr) {
    task.actor->mailbox.PushFront(&task);
    task.state = Task::State::kReady;
  } else {
    scheduler_.EnqueueFirst(task);
  }
}

// ---- Cancelling and time.

void NodeMachine::StopWaiting(Task& task) {
  if (task.pending == 0) return;
  for (Object* const argument : task.arguments) {
    const auto removed = std::remove(argument->waiting.begin(), argument->waiting.end(), &task);
    argument->waiting.erase(removed, argument->waiting.end());
  }
  task.pending = 0;
}

void NodeMachine::Cancel(Object& object, bool force) {
  Task* const task = object.producer;
  if (task == nullptr || task->state == Task::State::kDone || task->cancelled) return;
  if (task->header().kind == CallKind::kConstruct) return KillActor(*task->actor, false);
  End(*task, Describe(FailureKind::kCancelled, ErrorCode::kCancelled, *task, "it was cancelled"),
      force);
  SpreadNews();
}

// Settles a call with an error wherever it is.
void NodeMachine::End(Task& task, const Payload& error, bool force) {
  if (task.state == Task::State::kLeased) {
    Worker& worker = *task.worker;
    if (!effects_->Recall(worker, task)) {
      for (Object* const result : task.results) Fill(*result, ObjectValue::Failed(error), {});
      task.cancelled = true;
      ++counts_.failed;
      effects_->Interrupt(worker, task);
      if (force && !worker.thread && task.actor == nullptr) {
        effects_->EndWorker(worker, "a call that it ran was ended");
        WorkerDied(worker, {.kind = FailureKind::kWorkerDied,
                            .code = ErrorCode::kUnavailable,
                            .text = "the worker was ended for another call's sake"});
      }
      return;
    }
    scheduler_.Done(worker, task, -1);
    if (task.actor != nullptr) LeaveWorker(task);
  } else if (task.state == Task::State::kReady) {
    if (task.actor != nullptr) {
      task.actor->mailbox.Remove(&task);
    } else {
      scheduler_.Dequeue(task);
    }
  } else {
    StopWaiting(task);
  }
  if (task.actor != nullptr) LeaveLine(task);
  SettleFailed(task, error);
}

void NodeMachine::CheckTimeLimits() {
  std::vector<std::pair<WorkerIndex, Task*>> over;
  for (const auto& [index, worker] : workers_) {
    Task* const task = worker->outstanding.front();
    if (task == nullptr || task->header().time_limit == 0 || task->cancelled) continue;
    if (now_ - task->offered_at >= task->header().time_limit) over.emplace_back(index, task);
  }
  for (const auto& [index, task] : over) {
    if (FindWorker(index) == nullptr) continue;
    End(*task,
        Describe(FailureKind::kDeadline, ErrorCode::kDeadlineExceeded, *task,
                 fmt::format("it ran longer than its limit of {:.3f} s",
                             static_cast<double>(task->header().time_limit) * 1e-9)),
        /*force=*/true);
  }
  SpreadNews();
}

}  // namespace menger
