#include "menger/runtime/node/values.h"

#include <algorithm>
#include <span>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {

void Values::Put(ProcessIndex process, ObjectId id, ObjectValue value,
                 std::span<const ObjectId> contained) {
  if (!node_.workers.Speaks(process)) return Free(value);
  Object& object = node_.objects.FindOrMake(id);
  node_.objects.AddReferrer(process, object);
  // Somebody runs a second time, and what he put before is not there any longer.
  if (object.state == Object::State::kFreed) node_.objects.Lose(object);
  Fill(object, std::move(value), contained);
  SpreadNews();
}

void Values::Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained) {
  if (object.state != Object::State::kPending) {
    Free(value);
    return;
  }
  node_.objects.Fill(object, std::move(value), contained);
  if (object.value.kind == ObjectValue::Kind::kRemote && !object.foreign) {
    node_.copies.Add(object, std::exchange(object.value.node, 0), object.value.kept);
  }
  if (object.value.kind == ObjectValue::Kind::kShared) node_.effects.SharedReady(object);
  if (object.waiting.empty() && object.watches.empty()) return;
  node_.objects.Hold(object);
  news_.push_back(&object);
}

void Values::Free(const ObjectValue& value) {
  if (value.node != 0) node_.peers.DropAt(value.node, value.kept);
  node_.effects.Free(value);
}

void Values::OnFreed(Object& object) {
  node_.copies.Forget(object);
  if (object.foreign) node_.foreign.Freed(object);
  Free(object.value);
}

void Values::SpreadNews() {
  if (spreading_) return;
  spreading_ = true;
  while (!news_.empty()) {
    Object& object = *news_.front();
    news_.pop_front();
    if (object.state == Object::State::kReady) {
      for (const Watch& watch : node_.objects.TakeWatches(object)) TellReady(watch, object);
      TellWaiting(object);
    }
    node_.objects.Release(object);
  }
  spreading_ = false;
}

void Values::TellReady(const Watch& watch, Object& object) {
  if (!node_.foreign.Ready(watch, object)) node_.effects.Ready(watch, object);
}

void Values::TellWaiting(Object& object) {
  const bool failed = object.value.kind == ObjectValue::Kind::kError;
  const Payload error = failed ? object.value.payload : Payload();
  object.stopped_waiting = 0;
  // What one does may end others of them; one that fails is passed over where it is there again.
  for (const auto& [task, wait] : std::exchange(object.waiting, {})) {
    if (task->wait != wait) continue;
    failed ? FailWaiting(*task, error) : Came(*task);
  }
}

void Values::Await(Task& task, Object& object) {
  const bool ready = object.state == Object::State::kReady;
  if (ready && object.value.kind != ObjectValue::Kind::kError) return;
  AwaitMore(task);
  object.waiting.push_back({&task, task.wait});
  if (!ready && object.foreign) node_.foreign.Ask(object);
  if (!ready) return;
  // An error that is there already arrives as the news of one does.
  node_.objects.Hold(object);
  news_.push_back(&object);
}

void Values::AwaitMore(Task& task) {
  if (task.pending++ == 0) task.wait = ++last_wait_;
}

void Values::Came(Task& task) {
  if (--task.pending == 0) node_.calls.Start(task);
}

void Values::StopWaiting(Task& task) {
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

void Values::FailWaiting(Task& task, const Payload& error) {
  StopWaiting(task);
  if (task.header().kind == CallKind::kConstruct) return node_.actors.Die(*task.actor, error);
  if (task.actor != nullptr) node_.actors.LeaveLine(task);
  node_.calls.SettleFailed(task, error);
}

bool Values::WatchObject(const Watch& watch, Object& object, bool with_value) {
  if (object.state == Object::State::kFreed) Lose(object);
  if (object.state == Object::State::kReady) {
    if (!with_value || IsThere(object, watch.process)) return true;
    node_.copies.Bring(object, PlaceOf(watch.process));
  } else if (object.foreign) {
    node_.foreign.Ask(object);
    if (object.state == Object::State::kReady) return true;
  }
  node_.objects.AddWatch(watch, object);
  return false;
}

PeerIndex Values::PlaceOf(ProcessIndex reader) const {
  if (reader == kDriver) return 0;
  const auto worker = node_.workers.all().find(reader);
  if (worker != node_.workers.all().end()) return worker->second->lender;
  const Peer* const peer = node_.peers.OfProcess(reader);
  return peer != nullptr ? peer->index | kOwnUse : 0;
}

bool Values::IsThere(const Object& object, ProcessIndex reader) const {
  return object.value.kind == ObjectValue::Kind::kError ||
         node_.copies.IsAt(object, PlaceOf(reader));
}

// ---- What nobody needs, and what is lost.

void Values::OnUnneeded(Object& object) {
  const Task* const task = object.producer;
  if (task == nullptr) return;
  if (task->header().kind == CallKind::kReserve) return node_.groups.Release(object);
  if (task->actor != nullptr && task->header().kind == CallKind::kConstruct) {
    node_.actors.Release(*task->actor);
  }
}

void Values::OnForgotten(Task& producer) {
  if (producer.kept_for == 0 || --producer.kept_for != 0) return;
  if (IsUnique(producer)) {
    node_.tasks.Return(&producer);
  } else {
    node_.lineage.Drop(producer);
  }
}

void Values::OnForeignForgotten(Object& object) { node_.foreign.Forgotten(object); }
void Values::OnForeignUnneeded(Object& object) { node_.foreign.LetRest(object); }

void Values::Lose(Object& lost) {
  MakeAgain(lost);
  SpreadNews();
}

void Values::MakeAgain(Object& lost, const TaskFailure* cause) {
  // A list, not recursion: the arguments of what is made again may be gone, too.
  std::vector<Object*> gone = {&lost};
  while (!gone.empty()) {
    Object& object = *gone.back();
    gone.pop_back();
    Task* const task = object.producer;
    if (object.state == Object::State::kPending) continue;
    node_.objects.Lose(object);
    if (object.foreign) continue;  // Its owner is asked by whoever needs it.
    // An actor that is made again is the same one: nobody gives its object a value then.
    const bool unique = task != nullptr && IsUnique(*task);
    if (task != nullptr && !unique && task->state != Task::State::kDone) continue;  // Being made.
    if (task == nullptr || unique || task->kept_for == 0) {
      node_.notes.NoteObject(NodeEventKind::kObjectLost, object);
      Fill(object,
           ObjectValue::Failed(
               Encode({.kind = FailureKind::kObjectLost,
                       .code = ErrorCode::kDataLoss,
                       .text = fmt::format(
                           "object {} is lost{}, and what made it is no longer "
                           "known (it was put, came from an actor, a stream or a placement group, "
                           "or may not run again)",
                           ToString(object.id), cause != nullptr ? ": " + cause->text : "")})),
           {});
      continue;
    }
    ++node_.counts.rebuilt;
    node_.notes.NoteObject(NodeEventKind::kObjectRebuilt, object);
    Revive(*task, gone);
  }
}

// Makes a call that was kept one that is to be run, as it was when it was made.
void Values::Revive(Task& task, std::vector<Object*>& gone) {
  node_.lineage.TakeOut(task);
  node_.states.Enter(task.state, Task::State::kWaiting);
  EndRun(task);
  for (std::uint32_t i = 0; i < task.header().results; ++i) {
    // Some may be forgotten; what is made again is dropped then.
    Object& result = node_.objects.FindOrMake(ResultOf(task.header().task, i));
    result.producer = &task;
    node_.objects.Hold(result);
    task.results.push_back(&result);
  }
  node_.calls.CountWaiting(task, true);
  for (Object* const argument : task.arguments) {
    if (argument->foreign) node_.foreign.WakeUp(*argument);
  }
  for (std::uint32_t i = 0; i < task.references; ++i) {
    Object& argument = *task.arguments[i];
    if (argument.state == Object::State::kFreed) gone.push_back(&argument);
    Await(task, argument);
  }
  if (Groups::IsInGroup(task.header())) node_.groups.AwaitAgain(task);
  node_.demand.WantAlready(task);
  if (task.pending == 0) node_.calls.Start(task);
}

// ---- Values on the disk.

void Values::Restored(Object& object, const SharedExtent& extent) {
  ObjectValue value = ObjectValue::Shared(extent);
  value.spilled_at = object.value.spilled_at;
  node_.objects.Move(object, std::move(value));
  node_.objects.Hold(object);
  node_.copies.Restored(object);
  TellWatches(object);
  node_.checkpoints.CameHome(object);
  node_.objects.Release(object);
}

void Values::TellWatches(Object& object) {
  for (const Watch& watch : node_.objects.TakeWatches(object)) {
    if (IsThere(object, watch.process)) {
      TellReady(watch, object);
    } else {
      node_.objects.AddWatch(watch, object);
    }
  }
}

PeerIndex Values::PlaceOf(const Task& task) {
  const Worker* const worker = task.actor != nullptr ? task.actor->worker : task.awaited_by;
  return worker != nullptr ? worker->lender : 0;
}

void Values::NoRoom(Object& object, const Payload& error, std::optional<PeerIndex> place) {
  if (place.value_or(0) == 0) node_.checkpoints.NoRoom(object);
  for (const Watch& watch : node_.objects.TakeWatches(object)) {
    if (place && PlaceOf(watch.process) != *place) {
      node_.objects.AddWatch(watch, object);
    } else {
      node_.effects.Refuse(watch, object, error);
    }
  }
  const std::vector<Task*> fetching = node_.scheduler.fetching();
  for (Task* const task : fetching) {
    // The end of one may have ended others.
    const auto& left = node_.scheduler.fetching();
    if (std::find(left.begin(), left.end(), task) == left.end()) continue;
    if (place && PlaceOf(*task) != *place) continue;
    const auto end = task->arguments.begin() + task->references;
    if (std::find(task->arguments.begin(), end, &object) != end) FailReady(*task, error);
  }
  SpreadNews();
}

bool Values::ArgumentsAreMade(const Task& task) {
  return std::all_of(
      task.arguments.begin(), task.arguments.begin() + task.references,
      [](const Object* argument) { return argument->state == Object::State::kReady; });
}

bool Values::ReconsiderFetching() {
  bool changed = false;
  const std::vector<Task*> fetching = node_.scheduler.fetching();
  for (Task* const task : fetching) {
    const auto& left = node_.scheduler.fetching();
    if (std::find(left.begin(), left.end(), task) == left.end()) continue;
    const bool constructs = task->header().kind == CallKind::kConstruct;
    const std::span<Object* const> arguments(task->arguments.data(), task->references);
    const auto failed = std::find_if(arguments.begin(), arguments.end(), [](const Object* one) {
      return one->value.kind == ObjectValue::Kind::kError;
    });
    if (failed != arguments.end()) {
      const Payload error = (*failed)->value.payload;
      FailReady(*task, error);
    } else if (ArgumentsAreMade(*task) || (task->actor != nullptr && !constructs)) {
      // It keeps its place until they are there; so does an actor that lives, whatever it waits
      // for.
      continue;
    } else if (constructs) {
      node_.actors.LeaveHome(*task->actor);
    } else {
      // What makes the argument again may need its place.
      node_.scheduler.StopReading(*task);
      node_.scheduler.Dequeue(*task);
      node_.states.Enter(task->state, Task::State::kWaiting);
      for (Object* const argument : arguments) Await(*task, *argument);
    }
    changed = true;
  }
  if (changed) SpreadNews();
  return changed;
}

void Values::FailReady(Task& task, const Payload& error) {
  // An actor that cannot become what it was is dead, too.
  if (task.header().kind == CallKind::kConstruct || Checkpoints::IsUpkeep(task))
    return node_.actors.Die(*task.actor, error);
  node_.calls.End(task, error, /*force=*/false);
}

std::string Values::LargestReaders() const {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (const ObjectTable::Read& read : node_.objects.LargestRead(kNamed)) {
    std::vector<std::string> readers;
    std::uint32_t others = read.object->pins;
    for (const auto& [process, pins] : read.pins) {
      readers.push_back(fmt::format("worker {}", process));
      others -= std::min(others, pins);
    }
    for (const auto& [index, worker] : node_.workers.all()) {
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

}  // namespace menger
