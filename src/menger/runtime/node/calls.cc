#include "menger/runtime/node/calls.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {

void Calls::Submit(ProcessIndex process, SpecPointer spec, Worker* thread) {
  const SpecHeader header = spec->header();
  if (!node_.workers.Speaks(process)) return;
  const Worker* const worker = process == kDriver ? thread : node_.workers.Find(process);
  if (worker != nullptr && node_.checkpoints.KnowsCall(process, *worker, *spec))
    return node_.values.SpreadNews();
  if (node_.foreign.IsForAnother(header)) return node_.foreign.Forward(process, worker, *spec);
  ++node_.counts.submitted;
  Task& task = MakeTask(process, std::move(spec));
  if (worker != nullptr) AdoptChild(*worker, task, node_.objects);
  if (header.stream_ahead > 0) node_.streams.Open(process, task);
  try {
    if (Groups::IsInGroup(header)) {
      task.scheduling = node_.groups.ClassFor(task);
    } else if (header.kind != CallKind::kReserve) {
      task.scheduling = &node_.scheduler.ClassFor(task.spec->scheduling());
    }
    if (task.parent != nullptr && task.parent->abandoned()) {
      throw Cancelled("the call that made it was cancelled");
    }
    if (node_.options.threads && header.concurrency > 1) {
      throw InvalidArgument("an actor with concurrency {} needs Isolation::kProcess",
                            header.concurrency);
    }
  } catch (const Error& error) {
    FailureKind kind = FailureKind::kException;
    if (error.code() == ErrorCode::kUnavailable) kind = FailureKind::kNodeDied;
    if (error.code() == ErrorCode::kCancelled) kind = FailureKind::kCancelled;
    SettleFailed(task, node_.notes.Describe(kind, error.code(), task, error.what()));
    return node_.values.SpreadNews();
  }
  for (const SpecArgument& argument : task.spec->arguments()) {
    if (argument.object.valid()) HoldArgument(task, argument.object, true);
  }
  for (const ObjectId& id : task.spec->contained()) HoldArgument(task, id, false);
  if (header.home.valid()) HoldArgument(task, header.home, false);
  if (Groups::IsInGroup(header)) node_.values.Await(task, *task.arguments.back());
  node_.demand.WantAlready(task);
  if (header.kind == CallKind::kMethod) {
    node_.actors.OrderCall(task);
  } else if (header.kind == CallKind::kConstruct && !node_.actors.Declare(task)) {
    node_.values.StopWaiting(task);
    SettleFailed(task, node_.notes.Describe(
                           FailureKind::kException, ErrorCode::kFailedPrecondition, task,
                           fmt::format("an actor named '{}' lives already", task.spec->name())));
  } else if (task.pending == 0) {
    Start(task);
  }
  if (node_.values.has_news()) node_.values.SpreadNews();
}

Task& Calls::MakeTask(ProcessIndex process, SpecPointer spec) {
  Task& task = *node_.tasks.Make();
  task.spec = std::move(spec);
  const SpecHeader& header = task.header();
  task.caller = header.parent;
  task.times = &node_.scheduler.TimesOf(header.function, header.callee, task.spec->name());
  task.name = node_.notes.NumberOfName(*task.times, *task.spec);
  for (std::uint32_t i = 0; i < header.results; ++i) {
    Object& result = node_.objects.FindOrMake(ResultOf(header.task, i));
    result.producer = &task;
    node_.objects.Hold(result);
    node_.objects.AddReferrer(process, result);
    if (result.state == Object::State::kFreed) node_.objects.Lose(result);
    task.results.push_back(&result);
  }
  CountWaiting(task, true);
  return task;
}

void Calls::CountWaiting(const Task& task, bool begins) {
  const std::size_t bytes = sizeof(Task) + task.spec->bytes().size();
  waiting_ += begins ? 1 : -1;
  waiting_bytes_ += begins ? bytes : -bytes;
  const std::int64_t limit = task.header().time_limit;
  begins ? time_limits_.Add(limit, node_.now) : time_limits_.Remove(limit);
}

std::uint16_t Calls::RetriesOf(const Task& task) {
  const bool says_itself = task.actor == nullptr || task.header().retries > 0;
  return (says_itself ? task : *task.actor->construction).header().retries;
}

void Calls::HoldArgument(Task& task, ObjectId id, bool needs_value) {
  Object& object = node_.objects.FindOrMake(id);
  node_.objects.Hold(object);
  task.arguments.push_back(&object);
  if (!needs_value) return;
  ++task.references;
  if (object.state == Object::State::kFreed) node_.values.MakeAgain(object);
  node_.values.Await(task, object);
}

void Calls::Start(Task& task) {
  if (Groups::IsInGroup(task.header()) && !node_.groups.Lives(task)) return;
  switch (task.header().kind) {
    case CallKind::kFunction:
      return node_.scheduler.Enqueue(task);
    case CallKind::kConstruct:
      return node_.actors.Construct(task);
    case CallKind::kMethod:
      return node_.actors.CallReady(task);
    case CallKind::kReserve:
      return node_.groups.Ask(task);
    case CallKind::kSave:
    case CallKind::kLoad:
      return;  // They are not submitted.
  }
}

// ---- What becomes of them.

Task* Calls::FindLease(Worker& worker, LeaseNumber lease) {
  for (Task* task = worker.outstanding.front(); task != nullptr; task = task->next) {
    if (task->lease == lease) return task;
  }
  return nullptr;
}

void Calls::Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                     double nanoseconds, std::int64_t ended_at) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) {
    for (const TaskResult& result : results) node_.values.Free(result.value);
    return;
  }
  node_.notes.NoteTask(NodeEventKind::kTaskEnded, worker, *task, nanoseconds, ended_at);
  node_.scheduler.Done(worker, *task, nanoseconds);
  if (Checkpoints::IsUpkeep(*task)) {
    node_.checkpoints.UpkeepDone(*task, results);
  } else {
    if (task->actor != nullptr) node_.actors.CallDone(*task);
    Settle(*task, results);
  }
  node_.values.SpreadNews();
}

void Calls::Failed(Worker& worker, LeaseNumber lease, TaskFailure failure, double nanoseconds,
                   std::int64_t ended_at) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  node_.notes.NoteTask(NodeEventKind::kTaskFailed, worker, *task, nanoseconds, ended_at);
  node_.scheduler.Done(worker, *task, nanoseconds);
  // A construction has no second try: its actor's restarts are for deaths.
  const bool again = task->header().retry_errors && task->header().kind != CallKind::kConstruct &&
                     !failure.final && !task->abandoned() && task->lost < RetriesOf(*task);
  if (again) {
    ++task->lost;
    ++node_.counts.retried;
    EndRun(*task);
    if (task->actor == nullptr) return node_.scheduler.Enqueue(*task);
    node_.actors.LeaveWorker(*task);
    node_.actors.JoinMailbox(*task, Scheduler::Place::kFirst);
    return node_.actors.Serve(*task->actor);
  }
  failure.task = node_.notes.NameOf(*task);
  if (Checkpoints::IsUpkeep(*task)) {
    node_.checkpoints.UpkeepFailed(*task, Encode(failure));
  } else if (task->header().kind == CallKind::kConstruct) {
    node_.actors.LeaveWorker(*task);
    failure.kind = FailureKind::kActorDied;
    failure.text = fmt::format("its construction threw {}: {}", failure.type, failure.text);
    node_.actors.Die(*task->actor, Encode(failure));
  } else {
    if (task->actor != nullptr) node_.actors.CallDone(*task);
    SettleFailed(*task, Encode(failure));
  }
  node_.values.SpreadNews();
}

void Calls::Record(Worker& worker, LeaseNumber lease, std::span<const std::byte> bytes) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  // It must fit into a message with the call. 20 bytes an answer of a clock.
  constexpr std::size_t kBytesMax = 64 * 1024;
  if (task->records.size() + bytes.size() > kBytesMax) {
    task->unrepeatable = true;
    task->records = {};
  } else if (!task->unrepeatable) {
    task->records.insert(task->records.end(), bytes.begin(), bytes.end());
  }
}

void Calls::Settle(Task& task, std::span<TaskResult> results) {
  // One that was cancelled is settled; of an actor that was made again, so is the construction.
  if (!task.abandoned() && !task.results.empty()) ++node_.counts.finished;
  for (std::size_t i = 0; i < std::max(results.size(), task.results.size()); ++i) {
    if (i >= task.results.size()) {
      node_.values.Free(results[i].value);
    } else if (i < results.size()) {
      node_.values.Fill(*task.results[i], std::move(results[i].value), results[i].contained);
    } else {
      node_.values.Fill(
          *task.results[i],
          ObjectValue::Failed(node_.notes.Describe(FailureKind::kException, ErrorCode::kInternal,
                                                   task, "the worker gave no such result")),
          {});
    }
  }
  Conclude(task);
}

void Calls::SettleFailed(Task& task, const Payload& error) {
  if (!task.abandoned() && !task.results.empty()) ++node_.counts.failed;
  for (Object* const result : task.results)
    node_.values.Fill(*result, ObjectValue::Failed(error), {});
  Conclude(task);
}

// Its result stands for an actor or a group that lives.
bool Calls::StandsForLiving(const Task& task) const {
  if (task.header().kind == CallKind::kConstruct) return task.actor != nullptr;
  return task.header().kind == CallKind::kReserve &&
         node_.groups.Contains(ResultOf(task.header().task, 0));
}

// Its results are settled: what it held is no longer needed, except by an actor that may have to be
// made again with the same arguments, and where lost results may have to be.
void Calls::Conclude(Task& task) {
  node_.scheduler.StopReading(task);
  // Of an actor that was made again the construction is done more than once.
  if (!task.results.empty()) CountWaiting(task, false);
  const bool again = Lineage::MayBeNeeded(task);
  node_.states.Enter(task.state, Task::State::kDone);
  LeaveFamily(task);
  const std::vector<Object*> results = std::exchange(task.results, {});
  Object* own_actor = nullptr;
  if (StandsForLiving(task)) {
    task.kept_for = 1;
  } else if (again) {
    node_.lineage.Keep(task, results);
  } else if (task.logged) {
    for (Object* const result : results) result->producer = nullptr;
    own_actor = task.actor->object;
    node_.checkpoints.Log(task);
  } else {
    for (Object* const result : results) result->producer = nullptr;
    Drop(task);
  }
  // Last: the end of the last result may end a call that is kept.
  for (Object* const result : results) node_.objects.Release(*result);
  if (own_actor != nullptr) node_.objects.Release(*own_actor);
}

void Calls::Drop(Task& task) {
  const std::vector<Object*> arguments = std::move(task.arguments);
  const std::vector<Object*> held = std::move(task.held);
  node_.tasks.Return(&task);
  for (Object* const argument : arguments) node_.objects.Release(*argument);
  for (Object* const object : held) node_.objects.Release(*object);
}

}  // namespace menger
