#include "menger/runtime/node/node_machine.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

// Of one call: it must fit into a message with the call. 20 bytes an answer of a clock.
constexpr std::size_t kRecordBytesMax = 64 * 1024;

}  // namespace

NodeMachine::NodeMachine(NodeMachineOptions options, NodeEffects& effects)
    : options_(std::move(options)),
      effects_(&effects),
      objects_(*this, states_),
      scheduler_(options_.resources, options_.workers, options_.pool_max, objects_, states_,
                 effects),
      lineage_(objects_, tasks_),
      demand_(scheduler_, objects_, workers_),
      circles_(scheduler_, objects_, workers_) {}

NodeMachine::~NodeMachine() = default;

// ---- Workers.

Worker& NodeMachine::AddWorker(WorkerIndex index) {
  auto worker = std::make_unique<Worker>();
  worker->index = index;
  worker->thread = options_.threads;
  worker->progress_at = now_;
  worker->ended_at = now_;
  Worker& result = *worker;
  workers_.emplace(result.index, std::move(worker));
  scheduler_.AddWorker(result);
  NoteWorker(NodeEventKind::kWorkerStarted, result);
  return result;
}

Worker* NodeMachine::FindWorker(WorkerIndex index) {
  const auto found = workers_.find(index);
  return found != workers_.end() && !found->second->gone() ? found->second.get() : nullptr;
}

std::vector<WorkerIndex> NodeMachine::WorkerIndices() const {
  std::vector<WorkerIndex> indices;
  for (const auto& [index, worker] : workers_) {
    if (!worker->gone()) indices.push_back(index);
  }
  return indices;
}

bool NodeMachine::Speaks(ProcessIndex process) {
  return process == kDriver || FindWorker(process) != nullptr;
}

// ---- Calls.

void NodeMachine::Submit(ProcessIndex process, SpecPointer spec, Worker* thread) {
  const SpecHeader header = spec->header();
  if (!Speaks(process)) return;
  const Worker* const worker = process == kDriver ? thread : FindWorker(process);
  if (worker != nullptr && KnowsCall(process, *worker, *spec)) return SpreadNews();
  ++counts_.submitted;
  Task& task = MakeTask(process, std::move(spec));
  if (worker != nullptr) AdoptChild(*worker, task, objects_);
  if (header.stream_ahead > 0) OpenStream(process, task);
  try {
    if (IsInGroup(header)) {
      task.scheduling = ClassInGroup(task);
    } else if (header.kind != CallKind::kReserve) {
      task.scheduling = &scheduler_.ClassFor(task.spec->scheduling());
    }
    if (task.parent != nullptr && task.parent->abandoned()) {
      throw Cancelled("the call that made it was cancelled");
    }
    if (options_.threads && header.concurrency > 1) {
      throw InvalidArgument("an actor with concurrency {} needs Isolation::kProcess",
                            header.concurrency);
    }
    const bool foreign = task.scheduling != nullptr && task.scheduling->foreign;
    if (header.kind == CallKind::kConstruct && foreign) {
      throw InvalidArgument("an actor lives on the node that makes it: {}",
                            task.scheduling->need.MissingFrom(scheduler_.total()));
    }
  } catch (const Error& error) {
    FailureKind kind = FailureKind::kException;
    if (error.code() == ErrorCode::kUnavailable) kind = FailureKind::kNodeDied;
    if (error.code() == ErrorCode::kCancelled) kind = FailureKind::kCancelled;
    SettleFailed(task, Describe(kind, error.code(), task, error.what()));
    return SpreadNews();
  }
  for (const SpecArgument& argument : task.spec->arguments()) {
    if (argument.object.valid()) HoldArgument(task, argument.object, true);
  }
  for (const ObjectId& id : task.spec->contained()) HoldArgument(task, id, false);
  if (header.home.valid()) HoldArgument(task, header.home, false);
  if (IsInGroup(header)) AwaitArgument(task, *task.arguments.back());
  demand_.WantAlready(task);
  if (header.kind == CallKind::kMethod) {
    OrderCall(task);
  } else if (header.kind == CallKind::kConstruct && !DeclareActor(task)) {
    StopWaiting(task);
    SettleFailed(task,
                 Describe(FailureKind::kException, ErrorCode::kFailedPrecondition, task,
                          fmt::format("an actor named '{}' lives already", task.spec->name())));
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
  task.times = &scheduler_.TimesOf(header.function, header.callee, task.spec->name());
  task.name = NumberOfName(*task.times, *task.spec);
  for (std::uint32_t i = 0; i < header.results; ++i) {
    Object& result = objects_.FindOrMake(ResultOf(header.task, i));
    result.producer = &task;
    objects_.Hold(result);
    objects_.AddReferrer(process, result);
    if (result.state == Object::State::kFreed) objects_.Lose(result);
    task.results.push_back(&result);
  }
  CountWaiting(task, true);
  return task;
}

void NodeMachine::CountWaiting(const Task& task, bool begins) {
  const std::size_t bytes = sizeof(Task) + task.spec->bytes().size();
  waiting_calls_ += begins ? 1 : -1;
  waiting_bytes_ += begins ? bytes : -bytes;
  const std::int64_t limit = task.header().time_limit;
  begins ? time_limits_.Add(limit, now_) : time_limits_.Remove(limit);
}

std::uint16_t NodeMachine::RetriesOf(const Task& task) {
  const bool says_itself = task.actor == nullptr || task.header().retries > 0;
  return (says_itself ? task : *task.actor->construction).header().retries;
}

void NodeMachine::HoldArgument(Task& task, ObjectId id, bool needs_value) {
  Object& object = objects_.FindOrMake(id);
  objects_.Hold(object);
  task.arguments.push_back(&object);
  if (!needs_value) return;
  ++task.references;
  if (object.state == Object::State::kFreed) MakeAgain(object);
  AwaitArgument(task, object);
}

void NodeMachine::AwaitArgument(Task& task, Object& object) {
  const bool ready = object.state == Object::State::kReady;
  if (ready && object.value.kind != ObjectValue::Kind::kError) return;
  if (task.pending++ == 0) task.wait = ++last_wait_;
  object.waiting.push_back({&task, task.wait});
  if (!ready) return;
  // An error that is there already arrives as the news of one does.
  objects_.Hold(object);
  news_.push_back(&object);
}

void NodeMachine::Start(Task& task) {
  if (IsInGroup(task.header()) && !GroupLives(task)) return;
  switch (task.header().kind) {
    case CallKind::kFunction:
      return scheduler_.Enqueue(task);
    case CallKind::kConstruct:
      return Construct(task);
    case CallKind::kMethod:
      return CallReady(task);
    case CallKind::kReserve:
      return AskForGroup(task);
    case CallKind::kSave:
    case CallKind::kLoad:
      return;  // They are not submitted.
  }
}

Task* NodeMachine::FindLease(Worker& worker, LeaseNumber lease) {
  for (Task* task = worker.outstanding.front(); task != nullptr; task = task->next) {
    if (task->lease == lease) return task;
  }
  return nullptr;
}

void NodeMachine::Finished(Worker& worker, LeaseNumber lease, std::span<TaskResult> results,
                           double nanoseconds, std::int64_t ended_at) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) {
    for (const TaskResult& result : results) FreeValue(result.value);
    return;
  }
  NoteTask(NodeEventKind::kTaskEnded, worker, *task, nanoseconds, ended_at);
  scheduler_.Done(worker, *task, nanoseconds);
  if (IsUpkeep(*task)) {
    UpkeepDone(*task, results);
  } else {
    if (task->actor != nullptr) ActorCallDone(*task);
    Settle(*task, results);
  }
  SpreadNews();
}

void NodeMachine::Failed(Worker& worker, LeaseNumber lease, TaskFailure failure, double nanoseconds,
                         std::int64_t ended_at) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  NoteTask(NodeEventKind::kTaskFailed, worker, *task, nanoseconds, ended_at);
  scheduler_.Done(worker, *task, nanoseconds);
  // A construction has no second try: its actor's restarts are for deaths.
  const bool again = task->header().retry_errors && task->header().kind != CallKind::kConstruct &&
                     !failure.final && !task->abandoned() && task->lost < RetriesOf(*task);
  if (again) {
    ++task->lost;
    ++counts_.retried;
    EndRun(*task);
    if (task->actor == nullptr) return scheduler_.Enqueue(*task);
    LeaveWorker(*task);
    JoinMailbox(*task, Scheduler::Place::kFirst);
    return ServeActor(*task->actor);
  }
  failure.task = NameOf(*task);
  if (IsUpkeep(*task)) {
    UpkeepFailed(*task, Encode(failure));
  } else if (task->header().kind == CallKind::kConstruct) {
    LeaveWorker(*task);
    failure.kind = FailureKind::kActorDied;
    failure.text = fmt::format("its construction threw {}: {}", failure.type, failure.text);
    ActorDead(*task->actor, Encode(failure));
  } else {
    if (task->actor != nullptr) ActorCallDone(*task);
    SettleFailed(*task, Encode(failure));
  }
  SpreadNews();
}

void NodeMachine::Settle(Task& task, std::span<TaskResult> results) {
  // One that was cancelled is settled; of an actor that was made again, so is the construction.
  if (!task.abandoned() && !task.results.empty()) ++counts_.finished;
  for (std::size_t i = 0; i < std::max(results.size(), task.results.size()); ++i) {
    if (i >= task.results.size()) {
      FreeValue(results[i].value);
    } else if (i < results.size()) {
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
  if (!task.abandoned() && !task.results.empty()) ++counts_.failed;
  for (Object* const result : task.results) Fill(*result, ObjectValue::Failed(error), {});
  Conclude(task);
}

Payload NodeMachine::Describe(FailureKind kind, ErrorCode code, const Task& task,
                              std::string text) const {
  return Encode(TaskFailure{
      .kind = kind, .code = code, .text = std::move(text), .task = std::string(NameOf(task))});
}

// Its result stands for an actor or a group that lives.
bool NodeMachine::StandsForLiving(const Task& task) const {
  if (task.header().kind == CallKind::kConstruct) return task.actor != nullptr;
  return task.header().kind == CallKind::kReserve &&
         groups_.contains(ResultOf(task.header().task, 0));
}

// Its results are settled: what it held is no longer needed, except by an actor that may have to be
// made again with the same arguments, and where lost results may have to be.
void NodeMachine::Conclude(Task& task) {
  scheduler_.StopReading(task);
  // Of an actor that was made again the construction is done more than once.
  if (!task.results.empty()) CountWaiting(task, false);
  const bool again = Lineage::MayBeNeeded(task);
  states_.Enter(task.state, Task::State::kDone);
  LeaveFamily(task);
  const std::vector<Object*> results = std::exchange(task.results, {});
  Object* own_actor = nullptr;
  if (StandsForLiving(task)) {
    task.kept_for = 1;
  } else if (again) {
    lineage_.Keep(task);
  } else if (task.logged) {
    for (Object* const result : results) result->producer = nullptr;
    own_actor = task.actor->object;
    Log(task);
  } else {
    for (Object* const result : results) result->producer = nullptr;
    const std::vector<Object*> arguments = std::move(task.arguments);
    const std::vector<Object*> held = std::move(task.held);
    tasks_.Return(&task);
    for (Object* const argument : arguments) objects_.Release(*argument);
    for (Object* const object : held) objects_.Release(*object);
  }
  // Last: the end of the last result may end a call that is kept.
  for (Object* const result : results) objects_.Release(*result);
  if (own_actor != nullptr) objects_.Release(*own_actor);
}

void NodeMachine::Record(Worker& worker, LeaseNumber lease, std::span<const std::byte> bytes) {
  Task* const task = FindLease(worker, lease);
  if (task == nullptr) return;
  if (task->records.size() + bytes.size() > kRecordBytesMax) {
    task->unrepeatable = true;
    task->records = {};
  } else if (!task->unrepeatable) {
    task->records.insert(task->records.end(), bytes.begin(), bytes.end());
  }
}

void NodeMachine::TakeBackCalls(Worker& worker) {
  std::vector<Task*> recalled;
  scheduler_.Empty(worker, recalled);
  CallsReturned(recalled);
}

void NodeMachine::HasRoomAgain(Worker& worker) {
  worker.full = false;
  if (worker.actor != nullptr) ServeLater(*worker.actor);
}

void NodeMachine::Run() {
  scheduler_.BeginRound();
  CheckTimeLimits();
  const Group* const waiting = waiting_groups_.empty() ? nullptr : ServeGroups();
  for (const WorkerIndex index : std::exchange(retired_, {})) {
    objects_.DropProcess(index);
    workers_.erase(index);
  }
  std::vector<Task*> recalled;
  scheduler_.Balance(recalled);
  CallsReturned(recalled);
  demand_.WantForDriver();
  SortWaitingActors();
  // Each once; an actor that is released meanwhile leaves the queue.
  for (std::size_t left = waiting_actors_.size(); left > 0 && !waiting_actors_.empty(); --left) {
    Actor& actor = *waiting_actors_.front();
    waiting_actors_.pop_front();
    actor.waits_for_room = false;
    ServeActor(actor);
  }
  do {
    scheduler_.Run(waiting);
    FailStranded();
  } while (ReconsiderFetching());
  EndSpare();
  LookForCircle();
  if (last_peer_ != 0) ServePeers();
  lineage_.Bound(options_.lineage_bytes_max);
}

}  // namespace menger
