#include "menger/runtime/node/checkpoints.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

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

bool Checkpoints::IsUpkeep(const Task& task) {
  const CallKind kind = task.header().kind;
  return task.logged || kind == CallKind::kSave || kind == CallKind::kLoad;
}

Task& Checkpoints::MakeUpkeep(Actor& actor, CallKind kind) {
  const Task& construction = *actor.construction;
  const bool load = kind == CallKind::kLoad;
  SpecHeader header{.kind = kind,
                    .task = ChildTask(TaskId{actor.id}, ++actor.checkpoints),
                    .parent = construction.header().task,
                    .function = construction.header().function,
                    .actor = actor.id};
  header.results = load ? 0 : 1;
  SpecBuilder builder(header, load ? 1 : 0, {}, "", construction.spec->name(), 0);
  Task& task = *node_.tasks.Make();
  if (load) {
    builder.AddReference(actor.checkpoint->id);
    task.arguments.push_back(actor.checkpoint);
    task.references = 1;
    node_.objects.Hold(*actor.checkpoint);
  } else {
    Object& result = node_.objects.FindOrMake(ResultOf(header.task, 0));
    task.results.push_back(&result);
    node_.objects.Hold(result);
    actor.unsaved_calls = 0;
    actor.unsaved_bytes = 0;
  }
  task.spec = builder.Finish();
  task.actor = &actor;
  task.scheduling = construction.scheduling;
  task.name = construction.name;
  task.times = &node_.scheduler.TimesOf({});
  return task;
}

void Checkpoints::DropUpkeep(Task& task) {
  const std::vector<Object*> results = std::move(task.results);
  node_.calls.Drop(task);
  for (Object* const result : results) node_.objects.Release(*result);
}

void Checkpoints::Ask(Actor& actor) {
  node_.actors.JoinMailbox(MakeUpkeep(actor, CallKind::kSave), Scheduler::Place::kFirst);
}

bool Checkpoints::IsDue(const Actor& actor) const {
  if (actor.checkpoint_every == 0 || actor.state != Actor::State::kAlive) return false;
  if (actor.coming != nullptr) return false;
  if (actor.unsaved_calls < actor.checkpoint_every &&
      (actor.unsaved_bytes < node_.options.log_bytes_max || actor.unsaved_calls == 0)) {
    return false;
  }
  // Not before it is what it was.
  return actor.mailbox.empty() || !IsUpkeep(*actor.mailbox.front());
}

void Checkpoints::Log(Task& task) {
  Actor& actor = *task.actor;
  actor.log.push_back(&task);
  actor.unsaved_bytes += task.unrepeatable ? node_.options.log_bytes_max : LogBytes(task);
  task.arguments.pop_back();
  const auto rest = task.arguments.begin() + task.references;
  const auto others = std::remove(rest, task.arguments.end(), actor.object);
  for (auto own = others; own != task.arguments.end(); ++own) node_.objects.Release(*actor.object);
  task.arguments.erase(others, task.arguments.end());
  if (IsDue(actor)) node_.actors.ServeLater(actor);
}

void Checkpoints::DropLog(Actor& actor) {
  for (Task* const task : std::exchange(actor.log, {})) node_.calls.Drop(*task);
}

void Checkpoints::UpkeepDone(Task& task, std::span<TaskResult> results) {
  Actor& actor = *task.actor;
  if (task.header().kind == CallKind::kSave && results.empty()) {
    return UpkeepFailed(task, node_.notes.Describe(FailureKind::kActorDied, ErrorCode::kInternal,
                                                   task, "its worker gave no checkpoint"));
  }
  Object& object = *actor.object;
  node_.objects.Hold(object);  // What the log lets go of may be what still held it.
  node_.actors.LeaveWorker(task);
  if (task.header().kind == CallKind::kSave) {
    ++node_.counts.checkpoints;
    node_.notes.NoteActor(NodeEventKind::kActorCheckpointed, actor);
    Object& checkpoint = *task.results.front();
    task.results.clear();
    node_.values.Fill(checkpoint, std::move(results[0].value), results[0].contained);
    DropUpkeep(task);
    GiveUpComing(actor);  // It was asked for before that one was there.
    actor.covered = actor.log.size();
    if (checkpoint.value.kind == ObjectValue::Kind::kRemote) {
      actor.coming = &checkpoint;
      coming_.emplace(&checkpoint, &actor);
      node_.copies.Bring(checkpoint, 0);
    } else {
      TakeOver(actor, checkpoint);
    }
  } else {
    for (const TaskResult& result : results) node_.values.Free(result.value);
    UpkeepLost(task);
  }
  node_.actors.Serve(actor);
  node_.objects.Release(object);
}

void Checkpoints::TakeOver(Actor& actor, Object& checkpoint) {
  Object* const before = std::exchange(actor.checkpoint, &checkpoint);
  const auto end = actor.log.begin() + static_cast<std::ptrdiff_t>(actor.covered);
  const std::vector<Task*> covered(actor.log.begin(), end);
  actor.log.erase(actor.log.begin(), end);
  for (Task* const task : covered) node_.calls.Drop(*task);
  if (before != nullptr) node_.objects.Release(*before);
}

void Checkpoints::CameHome(Object& object) {
  const auto found = coming_.find(&object);
  if (found == coming_.end()) return;
  Actor& actor = *found->second;
  coming_.erase(found);
  actor.coming = nullptr;
  Object& stands_for = *actor.object;
  node_.objects.Hold(stands_for);  // As in UpkeepDone.
  TakeOver(actor, object);
  node_.actors.ServeLater(actor);
  node_.objects.Release(stands_for);
}

void Checkpoints::GiveUpComing(Actor& actor) {
  Object* const coming = std::exchange(actor.coming, nullptr);
  if (coming == nullptr) return;
  coming_.erase(coming);
  node_.objects.Release(*coming);
}

void Checkpoints::NoRoom(const Object& object) {
  const auto found = coming_.find(&object);
  if (found == coming_.end()) return;
  Actor& actor = *found->second;
  GiveUpComing(actor);
  node_.actors.ServeLater(actor);
}

void Checkpoints::UpkeepFailed(Task& task, const Payload& error) {
  Actor& actor = *task.actor;
  node_.actors.LeaveWorker(task);
  const bool replay = task.logged;
  UpkeepLost(task);
  // A call may throw: it did before. A state that cannot be saved or loaded is the end.
  return replay ? node_.actors.Serve(actor) : node_.actors.Die(actor, error);
}

void Checkpoints::UpkeepLost(Task& task) {
  node_.scheduler.StopReading(task);
  if (task.logged) {
    node_.states.Enter(task.state, Task::State::kDone);
  } else {
    DropUpkeep(task);
  }
}

void Checkpoints::Replay(Actor& actor) {
  actor.unsaved_calls = 0;
  actor.unsaved_bytes = 0;
  for (std::size_t i = actor.log.size(); i-- > 0;) {
    Task& task = *actor.log[i];
    node_.actors.JoinMailbox(task, Scheduler::Place::kFirst);
    actor.unsaved_bytes += LogBytes(task);
    ++node_.counts.replayed;
  }
  if (actor.checkpoint != nullptr) {
    node_.actors.JoinMailbox(MakeUpkeep(actor, CallKind::kLoad), Scheduler::Place::kFirst);
  }
}

void Checkpoints::BeginWith(Actor& actor, Object& checkpoint) {
  node_.objects.Hold(checkpoint);
  actor.checkpoint = &checkpoint;
}

// ---- What a further run calls again.

bool Checkpoints::KnowsCall(ProcessIndex process, const Worker& worker, const TaskSpec& spec) {
  if (worker.actor == nullptr || worker.actor->checkpoint_every == 0) return false;
  const SpecHeader& header = spec.header();
  node_.streams.Forget(header);
  const Object* const first = node_.objects.Find(ResultOf(header.task, 0));
  if (first == nullptr || first->callee == 0) return false;
  if (first->callee != CalleeOf(spec)) {
    EndUnlike(*worker.actor, spec, *first);
    return true;
  }
  const bool comes = first->producer != nullptr || first->foreign;
  if (!comes && first->state != Object::State::kReady) return false;
  for (std::uint32_t i = 0; i < header.results; ++i) {
    node_.objects.AddReferrer(process, node_.objects.FindOrMake(ResultOf(header.task, i)));
  }
  return true;
}

// What others were told since the last checkpoint would not be so any longer.
void Checkpoints::EndUnlike(Actor& actor, const TaskSpec& spec, const Object& known) {
  const std::string before(node_.notes.events().names()[known.callee_name]);
  const std::string now(spec.name().empty() ? node_.effects.NameOfFunction(spec.header().function)
                                            : spec.name());
  const TaskFailure failure{
      .kind = FailureKind::kActorDied,
      .code = ErrorCode::kFailedPrecondition,
      .text = fmt::format("a call of it that ran again called '{}'{} where it had called '{}': "
                          "methods of a checkpointed actor must do the same when they are given "
                          "the same",
                          now, now == before ? " with others" : "", before),
      .task = std::string(node_.notes.NameOf(*actor.construction))};
  node_.actors.Die(actor, Encode(failure));
}

}  // namespace menger
