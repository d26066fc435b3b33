#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that makes actors again as they were.
//
// Of an actor that is checkpointed the node keeps the last checkpoint and the calls that it has
// done since, in their order, with their arguments, what they were told (CallInputs) and what their
// own calls gave. When its worker dies the actor is constructed, loads the checkpoint, and does
// those calls once more; what they give is known and dropped, and the calls that they make are
// known, too. Then it goes on. A checkpoint is asked for by a call in the worker's queue like any
// other: what has been reported before its result arrives is exactly what it contains.
namespace menger {
namespace {

std::size_t LogBytes(const Task& task) {
  std::size_t bytes = sizeof(Task) + task.spec->bytes().size() + task.records.size();
  for (std::uint32_t i = 0; i < task.references; ++i) {
    const ObjectValue& value = task.arguments[i]->value;
    bytes += value.payload.size() + static_cast<std::size_t>(value.extent.bytes);
  }
  return bytes;
}

}  // namespace

// What is done for the actor's sake, not a caller's: to save, to load, to do once more.
bool NodeMachine::IsUpkeep(const Task& task) {
  const CallKind kind = task.header().kind;
  return task.logged || kind == CallKind::kSave || kind == CallKind::kLoad;
}

Task& NodeMachine::MakeUpkeep(Actor& actor, CallKind kind) {
  const Task& construction = *actor.construction;
  const bool load = kind == CallKind::kLoad;
  SpecHeader header{.kind = kind,
                    .task = ChildTask(TaskId{actor.id}, ++actor.checkpoints),
                    .parent = construction.header().task,
                    .function = construction.header().function,
                    .actor = actor.id};
  header.results = load ? 0 : 1;
  SpecBuilder builder(header, load ? 1 : 0, {}, "", construction.spec->name(), 0);
  Task& task = *tasks_.Make();
  if (load) {
    builder.AddReference(actor.checkpoint->id);
    task.arguments.push_back(actor.checkpoint);
    task.references = 1;
    objects_.Hold(*actor.checkpoint);
  } else {
    Object& result = objects_.FindOrMake(ResultOf(header.task, 0));
    task.results.push_back(&result);
    objects_.Hold(result);
    actor.unsaved_calls = 0;
    actor.unsaved_bytes = 0;
  }
  task.spec = builder.Finish();
  task.actor = &actor;
  task.scheduling = construction.scheduling;
  task.name = construction.name;
  task.times = &scheduler_.TimesOf({});
  return task;
}

void NodeMachine::DropUpkeep(Task& task) {
  const std::vector<Object*> results = std::move(task.results);
  const std::vector<Object*> arguments = std::move(task.arguments);
  tasks_.Return(&task);
  for (Object* const result : results) objects_.Release(*result);
  for (Object* const argument : arguments) objects_.Release(*argument);
}

void NodeMachine::AskForCheckpoint(Actor& actor) {
  JoinMailbox(MakeUpkeep(actor, CallKind::kSave), Scheduler::Place::kFirst);
}

bool NodeMachine::NeedsCheckpoint(const Actor& actor) const {
  if (actor.checkpoint_every == 0 || actor.state != Actor::State::kAlive) return false;
  if (actor.unsaved_calls < actor.checkpoint_every &&
      (actor.unsaved_bytes < options_.log_bytes_max || actor.unsaved_calls == 0)) {
    return false;
  }
  // Not before it is what it was.
  return actor.mailbox.empty() || !IsUpkeep(*actor.mailbox.front());
}

// The call is done; from now on it is part of what the actor is. It does not hold its own actor.
void NodeMachine::Log(Task& task) {
  Actor& actor = *task.actor;
  actor.log.push_back(&task);
  actor.unsaved_bytes += task.unrepeatable ? options_.log_bytes_max : LogBytes(task);
  task.arguments.pop_back();
  const auto rest = task.arguments.begin() + task.references;
  const auto others = std::remove(rest, task.arguments.end(), actor.object);
  for (auto own = others; own != task.arguments.end(); ++own) objects_.Release(*actor.object);
  task.arguments.erase(others, task.arguments.end());
  if (NeedsCheckpoint(actor)) ServeLater(actor);
}

void NodeMachine::DropLog(Actor& actor) {
  for (Task* const task : std::exchange(actor.log, {})) {
    const std::vector<Object*> arguments = std::move(task->arguments);
    const std::vector<Object*> held = std::move(task->held);
    tasks_.Return(task);
    for (Object* const argument : arguments) objects_.Release(*argument);
    for (Object* const object : held) objects_.Release(*object);
  }
}

void NodeMachine::UpkeepDone(Task& task, std::span<TaskResult> results) {
  Actor& actor = *task.actor;
  if (task.header().kind == CallKind::kSave && results.empty()) {
    return UpkeepFailed(task, Describe(FailureKind::kActorDied, ErrorCode::kInternal, task,
                                       "its worker gave no checkpoint"));
  }
  Object& object = *actor.object;
  objects_.Hold(object);  // What the log lets go of may be what still held it.
  LeaveWorker(task);
  if (task.header().kind == CallKind::kSave) {
    ++counts_.checkpoints;
    NoteActor(NodeEventKind::kActorCheckpointed, actor);
    Object* const before = std::exchange(actor.checkpoint, task.results.front());
    task.results.clear();
    Fill(*actor.checkpoint, std::move(results[0].value), results[0].contained);
    DropUpkeep(task);
    DropLog(actor);
    if (before != nullptr) objects_.Release(*before);
  } else {
    for (const TaskResult& result : results) FreeValue(result.value);
    UpkeepLost(task);
  }
  ServeActor(actor);
  objects_.Release(object);
}

void NodeMachine::UpkeepFailed(Task& task, const Payload& error) {
  Actor& actor = *task.actor;
  LeaveWorker(task);
  const bool replay = task.logged;
  UpkeepLost(task);
  // A call may throw: it did before. A state that cannot be saved or loaded is the end.
  return replay ? ServeActor(actor) : ActorDead(actor, error);
}

// It is not to be done, or not in this life.
void NodeMachine::UpkeepLost(Task& task) {
  scheduler_.StopReading(task);
  if (task.logged) {
    states_.Enter(task.state, Task::State::kDone);
  } else {
    DropUpkeep(task);
  }
}

// The actor is as constructed: it becomes what it was.
void NodeMachine::Replay(Actor& actor) {
  actor.unsaved_calls = 0;
  actor.unsaved_bytes = 0;
  for (std::size_t i = actor.log.size(); i-- > 0;) {
    Task& task = *actor.log[i];
    JoinMailbox(task, Scheduler::Place::kFirst);
    actor.unsaved_bytes += LogBytes(task);
    ++counts_.replayed;
  }
  if (actor.checkpoint != nullptr) {
    JoinMailbox(MakeUpkeep(actor, CallKind::kLoad), Scheduler::Place::kFirst);
  }
}

// ---- What a further run calls again.

// Whether an earlier run of the method that makes the call made it, too.
bool NodeMachine::KnowsCall(ProcessIndex process, const Worker& worker, const TaskSpec& spec) {
  if (worker.actor == nullptr || worker.actor->checkpoint_every == 0) return false;
  const SpecHeader& header = spec.header();
  ForgetStream(header);
  const Object* const first = objects_.Find(ResultOf(header.task, 0));
  if (first == nullptr || first->callee == 0) return false;
  if (first->callee != CalleeOf(spec)) {
    EndUnlike(*worker.actor, spec, *first);
    return true;
  }
  if (first->producer == nullptr && first->state != Object::State::kReady) return false;
  for (std::uint32_t i = 0; i < header.results; ++i) {
    objects_.AddReferrer(process, objects_.FindOrMake(ResultOf(header.task, i)));
  }
  return true;
}

// What others were told since the last checkpoint would not be so any longer.
void NodeMachine::EndUnlike(Actor& actor, const TaskSpec& spec, const Object& known) {
  const std::string before(events_.names()[known.callee_name]);
  const std::string now(spec.name().empty() ? effects_->NameOfFunction(spec.header().function)
                                            : spec.name());
  const TaskFailure failure{
      .kind = FailureKind::kActorDied,
      .code = ErrorCode::kFailedPrecondition,
      .text = fmt::format("a call of it that ran again called '{}'{} where it had called '{}': "
                          "methods of a checkpointed actor must do the same when they are given "
                          "the same",
                          now, now == before ? " with others" : "", before),
      .task = std::string(NameOf(*actor.construction))};
  ActorDead(actor, Encode(failure));
}

}  // namespace menger
