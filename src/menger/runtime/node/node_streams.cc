#include <algorithm>
#include <utility>

#include "menger/runtime/calls/stream.h"
#include "menger/runtime/node/node_machine.h"

// The part of the node's logic that deals with streams (stream.h): it holds the items that were
// yielded and not taken, and lets the writer go on by its gate, an object that is ready while there
// are not too many.
namespace menger {

void NodeMachine::OpenStream(ProcessIndex reader, const Task& task) {
  const SpecHeader& header = task.header();
  Stream& stream = streams_[header.task];
  stream.reader = reader;
  stream.ahead = header.stream_ahead;
  stream.gate = &objects_.FindOrMake(StreamGate(header.task));
  objects_.Hold(*stream.gate);
  SetGate(*stream.gate, 0);
}

// Whoever reads anew (its reader died, and runs again) has it done anew.
void NodeMachine::ForgetStream(const SpecHeader& header) {
  if (header.stream_ahead == 0 || streams_.contains(header.task)) return;
  Object* const end = objects_.Find(StreamEnd(header.task));
  if (end == nullptr) return;
  objects_.Hold(*end);
  if (Task* const before = std::exchange(end->producer, nullptr)) {
    CountWaiting(*before, false);
    for (Object* const result : std::exchange(before->results, {})) objects_.Release(*result);
  }
  if (end->state != Object::State::kPending) objects_.Lose(*end);
  objects_.Release(*end);
}

// Says to the writer that so many were taken.
void NodeMachine::SetGate(Object& gate, std::uint64_t taken) {
  if (gate.state == Object::State::kReady) objects_.Lose(gate);
  Payload value = Payload::Allocate(sizeof(taken));
  std::memcpy(value.fill().data(), &taken, sizeof(taken));
  Fill(gate, ObjectValue::Inline(std::move(value)), {});
}

void NodeMachine::Yield(Worker& worker, LeaseNumber lease, std::uint64_t index, TaskResult item) {
  const Task* const task = FindLease(worker, lease);
  const auto found = task != nullptr ? streams_.find(task->header().task) : streams_.end();
  if (found == streams_.end() || task->abandoned()) {
    FreeValue(item.value);
    // Nobody reads: a call that is replayed must not wait.
    if (task != nullptr && found == streams_.end() && task->header().stream_ahead > 0) {
      Object& gate = objects_.FindOrMake(StreamGate(task->header().task));
      if (gate.state == Object::State::kPending) SetGate(gate, kStreamDropped / 2);
      SpreadNews();
    }
    return;
  }
  Stream& stream = found->second;
  // A further run yields what is there already.
  if (index != stream.yielded) return FreeValue(item.value);
  Object& object = objects_.FindOrMake(StreamItem(task->header().task, index));
  objects_.Hold(object);
  ++stream.yielded;
  Fill(object, std::move(item.value), item.contained);
  if (stream.yielded - stream.told >= stream.ahead) MoveGate(stream);
  SpreadNews();
}

void NodeMachine::Take(ProcessIndex reader, TaskId call, std::uint64_t count) {
  const auto found = streams_.find(call);
  if (found == streams_.end() || found->second.reader != reader) return;
  if (count == kStreamDropped) {
    CloseStream(call);
    return SpreadNews();
  }
  Stream& stream = found->second;
  while (stream.taken < std::min(count, stream.yielded)) {
    Object* const item = objects_.Find(StreamItem(call, stream.taken++));
    if (item != nullptr) objects_.Release(*item);
  }
  // Not for each item: the writer is told when half of what it may be ahead is taken.
  if (stream.taken - stream.told >= (stream.ahead + 1) / 2 || stream.taken == stream.yielded) {
    MoveGate(stream);
    SpreadNews();
  }
}

// Open exactly where the writer, who knows what the gate says, may yield another item.
void NodeMachine::MoveGate(Stream& stream) {
  stream.told = stream.taken;
  if (stream.yielded - stream.told < stream.ahead) {
    SetGate(*stream.gate, stream.told);
  } else if (stream.gate->state == Object::State::kReady) {
    objects_.Lose(*stream.gate);
  }
}

void NodeMachine::CloseStream(TaskId call) {
  const auto found = streams_.find(call);
  const Stream stream = found->second;
  streams_.erase(found);
  for (std::uint64_t i = stream.taken; i < stream.yielded; ++i) {
    Object* const item = objects_.Find(StreamItem(call, i));
    if (item != nullptr) objects_.Release(*item);
  }
  Object* const end = objects_.Find(StreamEnd(call));
  if (end != nullptr) Cancel(*end, /*force=*/false);
  SetGate(*stream.gate, kStreamDropped / 2);
  objects_.Release(*stream.gate);
}

void NodeMachine::CloseStreamsOf(ProcessIndex reader) {
  std::vector<TaskId> calls;
  for (const auto& [call, stream] : streams_) {
    if (stream.reader == reader) calls.push_back(call);
  }
  for (const TaskId& call : calls) CloseStream(call);
}

}  // namespace menger
