#include <algorithm>
#include <limits>
#include <utility>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that ends calls before their time: because their worker is lost,
// somebody cancels them, or they take too long.
namespace menger {
// ---- Lost workers.

void NodeMachine::WorkerDied(Worker& worker, const TaskFailure& cause) {
  if (worker.gone()) return;
  if (worker.loan != 0) EndLoan(worker, cause);
  Retire(worker, cause.text);
  // What it had not begun is not to blame. Its queue is asked backwards: it began from the front.
  std::vector<std::pair<Task*, bool>> lost;
  while (Task* const task = worker.outstanding.back()) {
    const bool begun = !effects_->Recall(worker, *task);
    if (begun) {
      const std::int64_t ran = now_ - task->offered_at;
      NoteTask(NodeEventKind::kTaskLost, worker, *task, static_cast<double>(ran), now_);
    }
    scheduler_.Done(worker, *task, -1);
    lost.emplace_back(task, begun);
  }
  const auto ran = std::find_if(lost.rbegin(), lost.rend(), [](auto& call) { return call.second; });
  const auto begun = std::ranges::count_if(lost, [](const auto& call) { return call.second; });
  effects_->WorkerLost(worker, ran != lost.rend() ? ran->first : nullptr,
                       static_cast<std::size_t>(begun), cause);
  // The last call of an actor may be what still held it.
  Object* const stands_for = worker.actor != nullptr ? worker.actor->object : nullptr;
  if (stands_for != nullptr) objects_.Hold(*stands_for);
  for (const auto& [task, begun] : lost) RunAgain(*task, begun, cause);
  if (stands_for != nullptr) {
    ActorWorkerLost(*worker.actor, cause);
    objects_.Release(*stands_for);
  }
  CloseStreamsOf(worker.index);
  SpreadNews();
}

void NodeMachine::Retire(Worker& worker, std::string_view cause) {
  NoteWorker(NodeEventKind::kWorkerDied, worker, cause);
  if (worker.loan != 0) {
    EndLoan(worker, {.kind = FailureKind::kWorkerDied,
                     .code = ErrorCode::kUnavailable,
                     .text = std::string(cause)});
  }
  scheduler_.RemoveWorker(worker);
  states_.Enter(worker.state, Worker::State::kGone);
  retired_.push_back(worker.index);
}

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

void NodeMachine::RunAgain(Task& task, bool begun, const TaskFailure& cause) {
  if (IsUpkeep(task)) return UpkeepLost(task);
  if (task.abandoned()) return Conclude(task);
  if (task.header().kind == CallKind::kConstruct) return;  // Counted by what its actor may do.
  // A run that needs more memory than there is would need it again: it is as one that threw.
  const bool hopeless = cause.kind == FailureKind::kOutOfMemory && !task.header().retry_errors;
  if (begun && (++task.lost > RunsMax(task, RetriesOf(task)) || hopeless)) {
    TaskFailure failure = cause;
    const bool died =
        cause.kind == FailureKind::kWorkerDied || cause.kind == FailureKind::kActorDied;
    if (task.actor != nullptr && died) failure.kind = FailureKind::kActorUnavailable;
    failure.task = NameOf(task);
    failure.text +=
        fmt::format("; the call was begun {} time{}", task.lost, task.lost > 1 ? "s" : "");
    return SettleFailed(task, Encode(failure));
  }
  if (begun) {
    ++counts_.retried;
    EndRun(task);
  }
  if (task.actor != nullptr) {
    JoinMailbox(task, Scheduler::Place::kFirst);
  } else {
    scheduler_.Enqueue(task, Scheduler::Place::kFirst);
  }
}

// ---- Cancelling and time.

void NodeMachine::StopWaiting(Task& task) {
  if (task.pending == 0) return;
  task.pending = 0;
  task.wait = 0;
  // What is left of it in their lists goes when half of one may have stopped.
  for (Object* const argument : task.arguments) {
    std::vector<WaitingTask>& waiting = argument->waiting;
    if (++argument->stopped_waiting <= waiting.size() / 2) continue;
    std::erase_if(waiting, [](const WaitingTask& one) { return one.task->wait != one.wait; });
    argument->stopped_waiting = 0;
  }
}

void NodeMachine::Cancel(Object& object, bool force, bool recursive) {
  Task* const task = object.producer;
  if (task == nullptr) return;
  if (task->header().kind == CallKind::kReserve) return RemoveGroup(object);
  if (task->state == Task::State::kDone || task->abandoned()) return;
  if (task->header().kind == CallKind::kConstruct) {
    if (task->actor != nullptr) KillActor(*task->actor, false);
    return;
  }
  // By their names: the end of one may be that of others.
  const std::vector<ObjectId> others = recursive ? DescendantsOf(*task) : std::vector<ObjectId>();
  CancelTask(*task, force);
  for (const ObjectId& id : others) {
    const Object* const other = objects_.Find(id);
    if (other != nullptr && other->producer != nullptr) CancelTask(*other->producer, force);
  }
  SpreadNews();
}

void NodeMachine::CancelTask(Task& task, bool force) {
  if (task.state == Task::State::kDone || task.abandoned()) return;
  End(task, Describe(FailureKind::kCancelled, ErrorCode::kCancelled, task, "it was cancelled"),
      force);
}

// Settles a call with an error wherever it is.
void NodeMachine::End(Task& task, const Payload& error, bool force) {
  if (task.state == Task::State::kLeased) {
    Worker& worker = *task.worker;
    if (!effects_->Recall(worker, task)) return EndRunning(task, error, force);
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
  if (task.actor != nullptr) {
    LeaveLine(task);
    ServeLater(*task.actor);
  }
  SettleFailed(task, error);
}

void NodeMachine::EndRunning(Task& task, const Payload& error, bool force) {
  Worker& worker = *task.worker;
  for (Object* const result : task.results) Fill(*result, ObjectValue::Failed(error), {});
  states_.Enter(task.state, Task::State::kAbandoned);
  ++counts_.failed;
  effects_->Interrupt(worker, task);
  if (!force || worker.thread || task.actor != nullptr) return;
  EndAsDied(worker, "a call that it ran was ended", "the worker was ended for another call's sake");
}

// Ends a worker that others' calls may have been given to: these are given to others.
void NodeMachine::EndAsDied(Worker& worker, std::string_view why, std::string_view cause) {
  if (worker.lender != 0) {
    Tell(worker.lender,
         {.kind = PeerMessage::Kind::kEnd, .loan = worker.loan, .text = std::string(why)});
  } else {
    effects_->EndWorker(worker, why);
  }
  WorkerDied(worker, {.kind = FailureKind::kWorkerDied,
                      .code = ErrorCode::kUnavailable,
                      .text = std::string(cause)});
}

void NodeMachine::WorkerLeaves(Worker& worker) {
  EndAsDied(worker, "it has done as many calls as it may", "the worker had done all its calls");
}

void NodeMachine::CheckTimeLimits() {
  if (!time_limits_.IsDue(now_)) return;
  for (const WorkerIndex index : time_limits_.Look(workers_, now_)) {
    const Worker* const worker = FindWorker(index);
    // The end of one call may end others.
    if (worker == nullptr || !TimeLimits::EndOf(*worker)) continue;
    Task& task = *worker->outstanding.front();
    End(task,
        Describe(FailureKind::kDeadline, ErrorCode::kDeadlineExceeded, task,
                 fmt::format("it ran longer than its limit of {:.3f} s",
                             static_cast<double>(task.header().time_limit) * 1e-9)),
        /*force=*/true);
  }
  SpreadNews();
}

std::optional<std::int64_t> NodeMachine::next_deadline() const {
  std::optional<std::int64_t> next;
  const auto at = [&next](std::int64_t time) { next = std::min(next.value_or(time), time); };
  if (const std::optional<std::int64_t> limit = time_limits_.due()) at(*limit);
  if (const std::optional<std::int64_t> turn = scheduler_.NextTurn()) at(*turn);
  if (const std::optional<std::int64_t> patience = PatienceEnds()) at(*patience);
  for (const auto& [index, peer] : peers_) {
    if (!peer->borrowed.empty()) at(now_ + 1'000'000);  // To be given back when it is idle.
  }
  return next;
}

}  // namespace menger
