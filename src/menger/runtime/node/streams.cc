#include "menger/runtime/node/streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/runtime/calls/stream.h"
#include "menger/runtime/node/node_parts.h"

namespace menger {

void Streams::Open(ProcessIndex reader, const Task& task) {
  const SpecHeader& header = task.header();
  Stream& stream = streams_[header.task];
  stream.reader = reader;
  const Peer* const peer = std::as_const(node_.peers).OfProcess(reader);
  if (peer != nullptr) stream.reader_node = peer->index;
  stream.ahead = header.stream_ahead;
  stream.gate = &node_.objects.FindOrMake(StreamGate(header.task));
  node_.objects.Hold(*stream.gate);
  SetGate(*stream.gate, 0);
}

// Whoever reads anew (its reader died, and runs again) has it done anew.
void Streams::Forget(const SpecHeader& header) {
  if (header.stream_ahead == 0 || streams_.contains(header.task)) return;
  Object* const end = node_.objects.Find(StreamEnd(header.task));
  if (end == nullptr) return;
  node_.objects.Hold(*end);
  if (Task* const before = std::exchange(end->producer, nullptr)) {
    node_.calls.CountWaiting(*before, false);
    for (Object* const result : std::exchange(before->results, {})) node_.objects.Release(*result);
  }
  if (end->state != Object::State::kPending) node_.objects.Lose(*end);
  node_.objects.Release(*end);
}

// Says to the writer that so many were taken.
void Streams::SetGate(Object& gate, std::uint64_t taken) {
  if (gate.state == Object::State::kReady) node_.objects.Lose(gate);
  Payload value = Payload::Allocate(sizeof(taken));
  std::memcpy(value.fill().data(), &taken, sizeof(taken));
  node_.values.Fill(gate, ObjectValue::Inline(std::move(value)), {});
}

void Streams::Yield(Worker& worker, LeaseNumber lease, std::uint64_t index, TaskResult item) {
  const Task* const task = Calls::FindLease(worker, lease);
  const auto found = task != nullptr ? streams_.find(task->header().task) : streams_.end();
  if (found == streams_.end() || task->abandoned()) {
    node_.values.Free(item.value);
    // Nobody reads: a call that is replayed must not wait.
    if (task != nullptr && found == streams_.end() && task->header().stream_ahead > 0) {
      Object& gate = node_.objects.FindOrMake(StreamGate(task->header().task));
      if (gate.state == Object::State::kPending) SetGate(gate, kStreamDropped / 2);
      node_.values.SpreadNews();
    }
    return;
  }
  Stream& stream = found->second;
  // A further run yields what is there already.
  if (index != stream.yielded) return node_.values.Free(item.value);
  Object& object = node_.objects.FindOrMake(StreamItem(task->header().task, index));
  node_.objects.Hold(object);
  ++stream.yielded;
  node_.values.Fill(object, std::move(item.value), item.contained);
  if (stream.reader_node != 0) {
    node_.foreign.TellItem(stream.reader_node, task->header().task, index, object);
  }
  if (stream.yielded - stream.told >= stream.ahead) MoveGate(stream);
  node_.values.SpreadNews();
}

void Streams::Take(ProcessIndex reader, TaskId call, std::uint64_t count) {
  const auto found = streams_.find(call);
  if (found == streams_.end()) return node_.foreign.Take(reader, call, count);
  if (found->second.reader != reader) return;
  if (count >= kStreamLeft) {
    Close(call, /*ends=*/count == kStreamDropped);
    return node_.values.SpreadNews();
  }
  Stream& stream = found->second;
  while (stream.taken < std::min(count, stream.yielded)) {
    Object* const item = node_.objects.Find(StreamItem(call, stream.taken++));
    if (item != nullptr) node_.objects.Release(*item);
  }
  // Not for each of many items: the writer is told when an eighth of what it may be ahead is taken.
  if (stream.taken - stream.told >= (stream.ahead + 7) / 8 || stream.taken == stream.yielded) {
    MoveGate(stream);
    node_.values.SpreadNews();
  }
}

// Open exactly where the writer, who knows what the gate says, may yield another item.
void Streams::MoveGate(Stream& stream) {
  stream.told = stream.taken;
  if (stream.yielded - stream.told < stream.ahead) {
    SetGate(*stream.gate, stream.told);
  } else if (stream.gate->state == Object::State::kReady) {
    node_.objects.Lose(*stream.gate);
  }
}

void Streams::Close(TaskId call, bool ends) {
  const auto found = streams_.find(call);
  const Stream stream = found->second;
  streams_.erase(found);
  for (std::uint64_t i = stream.taken; i < stream.yielded; ++i) {
    Object* const item = node_.objects.Find(StreamItem(call, i));
    if (item != nullptr) node_.objects.Release(*item);
  }
  Object* const end = node_.objects.Find(StreamEnd(call));
  if (end != nullptr && ends) node_.calls.Cancel(*end, /*force=*/false);
  SetGate(*stream.gate, kStreamDropped / 2);
  node_.objects.Release(*stream.gate);
}

void Streams::CloseOf(ProcessIndex reader) {
  std::vector<TaskId> calls;
  for (const auto& [call, stream] : streams_) {
    if (stream.reader == reader) calls.push_back(call);
  }
  for (const TaskId& call : calls) Close(call, /*ends=*/true);
}

bool Streams::AwaitsReader() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const Stream& stream = entry.second;
    const bool elsewhere = stream.reader == kDriver || stream.reader_node != 0;
    return elsewhere && stream.gate->state == Object::State::kPending;
  });
}

}  // namespace menger
