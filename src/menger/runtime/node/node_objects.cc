#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with values: who waits for them, and how they are made
// again when they are lost.
namespace menger {

void NodeMachine::Put(ProcessIndex process, ObjectId id, ObjectValue value,
                      std::span<const ObjectId> contained) {
  if (!Speaks(process)) return FreeValue(value);
  Object& object = objects_.FindOrMake(id);
  objects_.AddReferrer(process, object);
  // Somebody runs a second time, and what he put before is not there any longer.
  if (object.state == Object::State::kFreed) objects_.Lose(object);
  Fill(object, std::move(value), contained);
  SpreadNews();
}

void NodeMachine::Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained) {
  if (object.state != Object::State::kPending) {
    FreeValue(value);
    return;
  }
  objects_.Fill(object, std::move(value), contained);
  if (object.value.kind == ObjectValue::Kind::kShared) effects_->SharedReady(object);
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
      for (const Watch& watch : objects_.TakeWatches(object)) effects_->Ready(watch, object);
      TellWaiting(object);
    }
    objects_.Release(object);
  }
  spreading_ = false;
}

void NodeMachine::TellWaiting(Object& object) {
  const bool failed = object.value.kind == ObjectValue::Kind::kError;
  const Payload error = failed ? object.value.payload : Payload();
  object.stopped_waiting = 0;
  // What one does may end others of them; one that fails is passed over where it is there again.
  for (const auto& [task, wait] : std::exchange(object.waiting, {})) {
    if (task->wait != wait) continue;
    if (failed) {
      FailWaiting(*task, error);
    } else if (--task->pending == 0) {
      Start(*task);
    }
  }
}

void NodeMachine::FailWaiting(Task& task, const Payload& error) {
  StopWaiting(task);
  if (task.header().kind == CallKind::kConstruct) return ActorDead(*task.actor, error);
  if (task.actor != nullptr) LeaveLine(task);
  SettleFailed(task, error);
}

bool NodeMachine::WatchObject(const Watch& watch, Object& object, bool with_value) {
  if (object.state == Object::State::kFreed) Lose(object);
  if (object.state == Object::State::kReady) {
    if (!with_value || IsThere(object, watch.process)) return true;
    effects_->Restore(object);
  }
  objects_.AddWatch(watch, object);
  return false;
}

// In memory of the node that the reader lives on.
bool NodeMachine::IsThere(const Object& object, ProcessIndex reader) const {
  if (object.value.kind != ObjectValue::Kind::kRemote) {
    return object.value.kind != ObjectValue::Kind::kSpilled;
  }
  const auto worker = workers_.find(reader);
  return worker != workers_.end() && worker->second->lender == object.value.node;
}

void NodeMachine::Unwatch(const Watch& watch, Object& object) { objects_.DropWatch(watch, object); }

// ---- Lineage.

void NodeMachine::OnUnneeded(Object& object) {
  const Task* const task = object.producer;
  if (task == nullptr) return;
  if (task->header().kind == CallKind::kReserve) return ReleaseGroup(object);
  if (task->actor != nullptr && task->header().kind == CallKind::kConstruct) {
    ReleaseActor(*task->actor);
  }
}

void NodeMachine::OnForgotten(Task& producer) {
  if (producer.kept_for == 0 || --producer.kept_for != 0) return;
  if (IsUnique(producer)) {
    tasks_.Return(&producer);
  } else {
    lineage_.Drop(producer);
  }
}

void NodeMachine::Lose(Object& lost) {
  MakeAgain(lost);
  SpreadNews();
}

void NodeMachine::MakeAgain(Object& lost, const TaskFailure* cause) {
  // A list, not recursion: the arguments of what is made again may be gone, too.
  std::vector<Object*> gone = {&lost};
  while (!gone.empty()) {
    Object& object = *gone.back();
    gone.pop_back();
    Task* const task = object.producer;
    if (object.state == Object::State::kPending) continue;
    objects_.Lose(object);
    // An actor that is made again is the same one: nobody gives its object a value then.
    const bool unique = task != nullptr && IsUnique(*task);
    if (task != nullptr && !unique && task->state != Task::State::kDone) continue;  // Being made.
    if (task == nullptr || unique || task->kept_for == 0) {
      NoteObject(NodeEventKind::kObjectLost, object);
      Fill(object,
           ObjectValue::Failed(
               Encode({.kind = cause != nullptr ? cause->kind : FailureKind::kObjectLost,
                       .code = ErrorCode::kDataLoss,
                       .text = fmt::format(
                           "object {} is lost{}, and what made it is no longer "
                           "known (it was put, or came from an actor or a placement group)",
                           ToString(object.id), cause != nullptr ? ": " + cause->text : "")})),
           {});
      continue;
    }
    ++counts_.rebuilt;
    NoteObject(NodeEventKind::kObjectRebuilt, object);
    Revive(*task, gone);
  }
}

// Makes a call that was kept one that is to be run, as it was when it was made.
void NodeMachine::Revive(Task& task, std::vector<Object*>& gone) {
  lineage_.TakeOut(task);
  states_.Enter(task.state, Task::State::kWaiting);
  EndRun(task);
  for (std::uint32_t i = 0; i < task.header().results; ++i) {
    // Some may be forgotten; what is made again is dropped then.
    Object& result = objects_.FindOrMake(ResultOf(task.header().task, i));
    result.producer = &task;
    objects_.Hold(result);
    task.results.push_back(&result);
  }
  CountWaiting(task, true);
  for (std::uint32_t i = 0; i < task.references; ++i) {
    Object& argument = *task.arguments[i];
    if (argument.state == Object::State::kFreed) gone.push_back(&argument);
    AwaitArgument(task, argument);
  }
  if (IsInGroup(task.header())) AwaitGroupAgain(task);
  demand_.WantAlready(task);
  if (task.pending == 0) Start(task);
}

}  // namespace menger
