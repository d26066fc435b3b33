#include <algorithm>
#include <span>

#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with values on the disk: calls that need one wait until
// it is in memory again, or fail for want of room.
namespace menger {

void NodeMachine::Restored(Object& object, const SharedExtent& extent) {
  ObjectValue value = ObjectValue::Shared(extent);
  value.spilled_at = object.value.spilled_at;
  value.node = object.value.node;
  value.kept = object.value.kept;
  objects_.Move(object, std::move(value));
  objects_.Hold(object);
  for (const Watch& watch : objects_.TakeWatches(object)) effects_->Ready(watch, object);
  objects_.Release(object);
}

void NodeMachine::NoRoom(Object& object, const Payload& error) {
  const std::vector<Task*> fetching = scheduler_.fetching();
  for (Task* const task : fetching) {
    // The end of one may have ended others.
    const auto& left = scheduler_.fetching();
    if (std::find(left.begin(), left.end(), task) == left.end()) continue;
    const auto end = task->arguments.begin() + task->references;
    if (std::find(task->arguments.begin(), end, &object) != end) FailReady(*task, error);
  }
  SpreadNews();
}

// Calls that could run may not any longer: an argument was lost. True if something has changed.
bool NodeMachine::ReconsiderFetching() {
  bool changed = false;
  const std::vector<Task*> fetching = scheduler_.fetching();
  for (Task* const task : fetching) {
    const auto& left = scheduler_.fetching();
    if (std::find(left.begin(), left.end(), task) == left.end()) continue;
    const std::span<Object* const> arguments(task->arguments.data(), task->references);
    const auto failed = std::find_if(arguments.begin(), arguments.end(), [](const Object* one) {
      return one->value.kind == ObjectValue::Kind::kError;
    });
    if (failed != arguments.end()) {
      const Payload error = (*failed)->value.payload;
      FailReady(*task, error);
    } else if (task->actor != nullptr ||
               std::all_of(arguments.begin(), arguments.end(), [](const Object* argument) {
                 return argument->state == Object::State::kReady;
               })) {
      // It keeps its place until they are there; so does an actor's, whatever it waits for.
      continue;
    } else {
      // What makes the argument again may need its place.
      scheduler_.StopReading(*task);
      scheduler_.Dequeue(*task);
      states_.Enter(task->state, Task::State::kWaiting);
      for (Object* const argument : arguments) AwaitArgument(*task, *argument);
    }
    changed = true;
  }
  if (changed) SpreadNews();
  return changed;
}

void NodeMachine::FailReady(Task& task, const Payload& error) {
  // An actor that cannot become what it was is dead, too.
  if (task.header().kind == CallKind::kConstruct || IsUpkeep(task))
    return ActorDead(*task.actor, error);
  End(task, error, /*force=*/false);
}

std::string NodeMachine::LargestReaders() const {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (const ObjectTable::Read& read : objects_.LargestRead(kNamed)) {
    std::vector<std::string> readers;
    std::uint32_t others = read.object->pins;
    for (const auto& [process, pins] : read.pins) {
      readers.push_back(fmt::format("worker {}", process));
      others -= std::min(others, pins);
    }
    for (const auto& [index, worker] : workers_) {
      for (const Task* task = worker->outstanding.front(); task != nullptr; task = task->next) {
        const auto end = task->arguments.begin() + task->references;
        if (std::find(task->arguments.begin(), end, read.object) == end || others == 0) continue;
        readers.push_back(fmt::format("call '{}' of worker {}", task->spec->name(), index));
        --others;
      }
    }
    if (others > 0) readers.emplace_back("the driver");
    text += fmt::format("{}object {} of {} bytes by {}", text.empty() ? "" : "; ",
                        ToString(read.object->id), read.object->value.extent.bytes,
                        fmt::join(readers, ", "));
  }
  return text;
}

bool NodeMachine::IsBusy(ProcessIndex besides) const {
  return std::any_of(workers_.begin(), workers_.end(), [besides](const auto& entry) {
    const Worker& worker = *entry.second;
    return entry.first != besides && !worker.gone() && !worker.blocked() &&
           !worker.outstanding.empty();
  });
}

}  // namespace menger
