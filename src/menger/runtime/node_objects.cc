#include <algorithm>
#include <utility>

#include "menger/runtime/node_machine.h"

// The part of the node's logic that deals with values: who waits for them, and how they are made
// again when they are lost.
namespace menger {

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

// ---- Lineage.

// A value in a message is as safe as the node itself. One in shared memory may be lost.
bool NodeMachine::KeepForLineage(const Task& task) const {
  if (task.header().kind != CallKind::kFunction || task.cancelled) return false;
  return std::any_of(task.results.begin(), task.results.end(), [](const Object* result) {
    return result->value.kind == ObjectValue::Kind::kShared;
  });
}

void NodeMachine::OnFreed(const ObjectValue& value) { effects_->Free(value); }

void NodeMachine::OnForgotten(Task& producer) {
  if (producer.kept_for == 0 || --producer.kept_for != 0) return;
  if (producer.header().kind == CallKind::kConstruct) return ReleaseActor(*producer.actor);
  const std::vector<Object*> arguments = std::move(producer.arguments);
  tasks_.Return(&producer);
  for (Object* const argument : arguments) objects_.ReleaseLineage(*argument);
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

}  // namespace menger
