#include "menger/runtime/node_machine.h"

#include <algorithm>
#include <utility>

namespace menger {

NodeMachine::NodeMachine(NodeMachineOptions options, NodeEffects& effects)
    : options_(std::move(options)),
      effects_(&effects),
      objects_(*this),
      scheduler_(options_.resources, options_.workers, effects) {}

NodeMachine::~NodeMachine() = default;

// ---- Workers.

Worker& NodeMachine::AddWorker(WorkerIndex index) {
  auto worker = std::make_unique<Worker>();
  worker->index = index;
  worker->thread = options_.threads;
  worker->progress_at = now_;
  Worker& result = *worker;
  workers_.emplace(result.index, std::move(worker));
  scheduler_.AddWorker(result);
  return result;
}

Worker* NodeMachine::FindWorker(WorkerIndex index) {
  const auto found = workers_.find(index);
  return found != workers_.end() ? found->second.get() : nullptr;
}

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

// ---- Calls.

void NodeMachine::Submit(ProcessIndex process, SpecPointer spec) {
  const SpecHeader header = spec->header();
  const Object* const first = objects_.Find(ResultOf(header.task, 0));
  if (first != nullptr && (first->producer != nullptr || first->state != Object::State::kPending)) {
    // The caller runs a second time, and this call is known from the first.
    for (std::uint32_t i = 0; i < header.results; ++i) {
      objects_.AddReferrer(process, objects_.FindOrMake(ResultOf(header.task, i)));
    }
    return;
  }
  ++counts_.submitted;
  Task& task = MakeTask(process, std::move(spec));
  if (process != kDriver) {
    if (Worker* const worker = FindWorker(process)) AdoptChild(*worker, task);
  }
  try {
    task.scheduling = &scheduler_.ClassFor(task.spec->scheduling());
  } catch (const Error& error) {
    SettleFailed(task, Describe(FailureKind::kException, error.code(), task, error.what()));
    return SpreadNews();
  }
  for (const SpecArgument& argument : task.spec->arguments()) {
    if (argument.object.valid()) HoldArgument(task, argument.object, true);
  }
  for (const ObjectId& id : task.spec->contained()) HoldArgument(task, id, false);
  if (header.actor_object.valid()) HoldArgument(task, header.actor_object, false);
  if (header.kind == CallKind::kMethod) {
    OrderCall(task);
  } else if (header.kind == CallKind::kConstruct && !DeclareActor(task)) {
    StopWaiting(task);
    SettleFailed(task, Describe(FailureKind::kException, ErrorCode::kFailedPrecondition, task,
                                fmt::format("an actor named '{}' lives already",
                                            task.spec->name())));
  } else if (task.pending == 0) {
    Start(task);
  }
  if (!news_.empty()) SpreadNews();
}

Task& NodeMachine::MakeTask(ProcessIndex process, SpecPointer spec) {
  Task& task = *tasks_.Make();
  task.spec = std::move(spec);
  const SpecHeader& header = task.header();
  task.caller = header.parent;
  task.times = &scheduler_.TimesOf(header.function);
  for (std::uint32_t i = 0; i < header.results; ++i) {
    Object& result = objects_.FindOrMake(ResultOf(header.task, i));
    result.producer = &task;
    objects_.Hold(result);
    objects_.AddReferrer(process, result);
    task.results.push_back(&result);
  }
  return task;
}

// A call keeps what its own calls give until it is done: if it is run again, they are not.
void NodeMachine::AdoptChild(Worker& worker, Task& child) {
  for (Task* parent = worker.outstanding.front(); parent != nullptr; parent = parent->next) {
    if (parent->header().task != child.header().parent) continue;
    if (parent->actor != nullptr) child.caller = parent->actor->id;
    if (parent->header().retries == 0) return;
    for (Object* const result : child.results) {
      objects_.Hold(*result);
      parent->children.push_back(result);
    }
    return;
  }
}

void NodeMachine::HoldArgument(Task& task, ObjectId id, bool needs_value) {
  Object& object = objects_.FindOrMake(id);
  objects_.Hold(object);
  task.arguments.push_back(&object);
  if (!needs_value) return;
  ++task.references;
  if (object.state == Object::State::kFreed) Lose(object);
  if (object.state == Object::State::kPending ||
      object.value.kind == ObjectValue::Kind::kError) {
    // An error that is there already arrives as the news of one does.
    ++task.pending;
    object.waiting.push_back(&task);
    if (object.state == Object::State::kReady) {
      objects_.Hold(object);
      news_.push_back(&object);
    }
  }
}

void NodeMachine::Start(Task& task) {
  switch (task.header().kind) {
    case CallKind::kFunction:
      return scheduler_.Enqueue(task);
    case CallKind::kConstruct:
      return Construct(task);
    case CallKind::kMethod:
      return CallReady(task);
  }
}

Task* NodeMachine::FindLease(Worker& worker, LeaseNumber lease) {
  for (Task* task = worker.outstanding.front(); task != nullptr; task = task->next) {
    if (task->lease == lease) return task;
  }
  return nullptr;
}

void NodeMachine::Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                           double nanoseconds) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  scheduler_.Done(worker, *task, nanoseconds);
  if (task->actor != nullptr) ActorCallDone(*task);
  if (task->cancelled) return Conclude(*task);
  Settle(*task, results);
  SpreadNews();
}

void NodeMachine::Failed(Worker& worker, LeaseNumber lease, TaskFailure failure,
                         double nanoseconds) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  scheduler_.Done(worker, *task, nanoseconds);
  const bool again = task->header().retry_errors && !task->cancelled &&
                     task->lost < task->header().retries && task->actor == nullptr;
  if (again) {
    ++task->lost;
    ++counts_.retried;
    return scheduler_.Enqueue(*task);
  }
  failure.task = task->spec->name();
  const Payload error = Encode(failure);
  if (task->header().kind == CallKind::kConstruct) {
    LeaveWorker(*task);
    ActorDead(*task->actor, error);
  } else if (task->actor != nullptr) {
    ActorCallDone(*task);
  }
  if (task->cancelled) return Conclude(*task);
  SettleFailed(*task, error);
  SpreadNews();
}

void NodeMachine::Settle(Task& task, std::span<TaskResult> results) {
  ++counts_.finished;
  for (std::size_t i = 0; i < task.results.size(); ++i) {
    if (i < results.size()) {
      Fill(*task.results[i], std::move(results[i].value), results[i].contained);
    } else {
      Fill(*task.results[i],
           ObjectValue::Failed(Describe(FailureKind::kException, ErrorCode::kInternal, task,
                                        "the worker gave no such result")),
           {});
    }
  }
  Conclude(task);
}

void NodeMachine::SettleFailed(Task& task, const Payload& error) {
  ++counts_.failed;
  for (Object* const result : task.results) Fill(*result, ObjectValue::Failed(error), {});
  Conclude(task);
}

Payload NodeMachine::Describe(FailureKind kind, ErrorCode code, const Task& task,
                              std::string text) const {
  return Encode(TaskFailure{.kind = kind,
                            .code = code,
                            .text = std::move(text),
                            .task = std::string(task.spec->name())});
}

// A value in a message is as safe as the node itself. One in shared memory may be lost.
bool NodeMachine::KeepForLineage(const Task& task) const {
  if (task.header().kind != CallKind::kFunction || task.cancelled) return false;
  return std::any_of(task.results.begin(), task.results.end(), [](const Object* result) {
    return result->value.kind == ObjectValue::Kind::kShared;
  });
}

void NodeMachine::Conclude(Task& task) {
  task.state = Task::State::kDone;
  // An actor may have to be made again, with the same arguments.
  const bool construction = task.header().kind == CallKind::kConstruct && task.actor != nullptr;
  const bool keep = KeepForLineage(task);
  task.kept_for = 0;
  for (Object* const result : task.results) {
    if (keep) {
      ++task.kept_for;
    } else if (!construction) {
      result->producer = nullptr;
    }
  }
  const std::vector<Object*> results = std::move(task.results);
  const std::vector<Object*> children = std::exchange(task.children, {});
  task.results.clear();
  if (construction) task.kept_for = 1;
  if (keep) {
    for (Object* const argument : task.arguments) objects_.HoldLineage(*argument);
    for (Object* const argument : task.arguments) objects_.Release(*argument);
  }
  for (Object* const child : children) objects_.Release(*child);
  if (!keep && !construction) {
    const std::vector<Object*> arguments = std::move(task.arguments);
    tasks_.Return(&task);
    for (Object* const argument : arguments) objects_.Release(*argument);
  }
  // Last: the end of the last result may end a call that is kept.
  for (Object* const result : results) objects_.Release(*result);
}

void NodeMachine::OnFreed(const ObjectValue& value) { effects_->Free(value); }

void NodeMachine::OnForgotten(Task& producer) {
  if (producer.kept_for == 0 || --producer.kept_for != 0) return;
  if (producer.header().kind == CallKind::kConstruct) return ReleaseActor(*producer.actor);
  const std::vector<Object*> arguments = std::move(producer.arguments);
  tasks_.Return(&producer);
  for (Object* const argument : arguments) objects_.ReleaseLineage(*argument);
}

// ---- Objects.

void NodeMachine::Put(ProcessIndex process, ObjectId id, ObjectValue value,
                      std::span<const ObjectId> contained) {
  Object& object = objects_.FindOrMake(id);
  objects_.AddReferrer(process, object);
  Fill(object, std::move(value), contained);
  SpreadNews();
}

void NodeMachine::Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained) {
  if (object.state != Object::State::kPending) {
    effects_->Free(value);
    return;
  }
  objects_.Fill(object, std::move(value), contained);
  if (object.waiting.empty() && object.watches.empty()) return;
  objects_.Hold(object);
  news_.push_back(&object);
}

void NodeMachine::SpreadNews() {
  if (spreading_) return;
  spreading_ = true;
  while (!news_.empty()) {
    Object& object = *news_.front();
    news_.pop_front();
    if (object.state == Object::State::kReady) {
      for (const Watch& watch : std::exchange(object.watches, {})) {
        effects_->Ready(watch, object);
        objects_.Release(object);
      }
      TellWaiting(object);
    }
    objects_.Release(object);
  }
  spreading_ = false;
}

void NodeMachine::TellWaiting(Object& object) {
  if (object.value.kind == ObjectValue::Kind::kError) {
    const Payload error = object.value.payload;
    // Each fails with the error of its argument, and is taken out of the list, however often it is
    // there.
    while (!object.waiting.empty()) FailWaiting(*object.waiting.front(), error);
    return;
  }
  for (Task* const task : std::exchange(object.waiting, {})) {
    if (--task->pending == 0) Start(*task);
  }
}

void NodeMachine::FailWaiting(Task& task, const Payload& error) {
  StopWaiting(task);
  if (task.actor != nullptr) LeaveLine(task);
  if (task.header().kind == CallKind::kConstruct && task.actor != nullptr) {
    ActorDead(*task.actor, error);
  }
  SettleFailed(task, error);
}

bool NodeMachine::WatchObject(const Watch& watch, Object& object) {
  if (object.state == Object::State::kFreed) Lose(object);
  if (object.state == Object::State::kReady) return true;
  objects_.Hold(object);
  object.watches.push_back(watch);
  return false;
}

void NodeMachine::Unwatch(const Watch& watch, Object& object) {
  const auto found = std::find(object.watches.begin(), object.watches.end(), watch);
  if (found == object.watches.end()) return;
  object.watches.erase(found);
  objects_.Release(object);
}

void NodeMachine::Lose(Object& lost) {
  // A list, not recursion: the arguments of what is made again may be gone, too.
  std::vector<Object*> gone = {&lost};
  while (!gone.empty()) {
    Object& object = *gone.back();
    gone.pop_back();
    Task* const task = object.producer;
    if (object.state == Object::State::kPending) continue;
    objects_.Lose(object);
    if (task != nullptr && task->state != Task::State::kDone) continue;  // It is being made.
    if (task == nullptr || task->kept_for == 0) {
      Fill(object,
           ObjectValue::Failed(Encode({.kind = FailureKind::kObjectLost,
                                       .code = ErrorCode::kDataLoss,
                                       .text = fmt::format("object {} is lost, and what made it is "
                                                           "no longer known (it was put, or came "
                                                           "from an actor)",
                                                           ToString(object.id))})),
           {});
      continue;
    }
    ++counts_.rebuilt;
    Revive(*task, gone);
  }
  SpreadNews();
}

// Makes a call that was kept one that is to be run, as it was when it was made.
void NodeMachine::Revive(Task& task, std::vector<Object*>& gone) {
  task.state = Task::State::kWaiting;
  task.kept_for = 0;
  for (std::uint32_t i = 0; i < task.header().results; ++i) {
    Object* const result = objects_.Find(ResultOf(task.header().task, i));
    if (result == nullptr) continue;
    objects_.Hold(*result);
    task.results.push_back(result);
  }
  for (Object* const argument : task.arguments) {
    objects_.Hold(*argument);
    objects_.ReleaseLineage(*argument);
  }
  for (const SpecArgument& argument : task.spec->arguments()) {
    if (!argument.object.valid()) continue;
    Object& object = objects_.FindOrMake(argument.object);
    if (object.state == Object::State::kReady) continue;
    ++task.pending;
    object.waiting.push_back(&task);
    if (object.state == Object::State::kFreed) gone.push_back(&object);
  }
  if (task.pending == 0) Start(task);
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

void NodeMachine::Block(Worker& worker) {
  std::vector<Task*> actor_calls;
  scheduler_.Block(worker, actor_calls);
  for (Task* const call : actor_calls) {
    LeaveWorker(*call);
    call->state = Task::State::kReady;
    call->actor->mailbox.PushFront(call);
    waiting_actors_.push_back(call->actor);
  }
}

void NodeMachine::Unblock(Worker& worker) { scheduler_.Unblock(worker); }

void NodeMachine::Run() {
  for (const WorkerIndex index : std::exchange(retired_, {})) {
    objects_.DropProcess(index);
    workers_.erase(index);
  }
  CheckTimeLimits();
  for (Actor* const actor : std::exchange(waiting_actors_, {})) ServeActor(*actor);
  scheduler_.Run(now_);
  scheduler_.Balance(now_);
}

std::optional<std::int64_t> NodeMachine::next_deadline() const {
  std::optional<std::int64_t> next;
  const auto at = [&next](std::int64_t time) { next = std::min(next.value_or(time), time); };
  for (const auto& [index, worker] : workers_) {
    const Task* const task = worker->outstanding.front();
    if (task == nullptr || task->header().time_limit == 0 || task->cancelled) continue;
    at(task->offered_at + task->header().time_limit);
  }
  if (scheduler_.WantsBalance()) at(now_ + 1'000'000);
  return next;
}

}  // namespace menger
