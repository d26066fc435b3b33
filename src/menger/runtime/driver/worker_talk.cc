#include "menger/runtime/driver/worker_talk.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace menger {

// ---- To the worker.

void WorkerTalk::Ready(std::uint64_t request, Object& object) {
  ValueMessage message{.request = request, .object = object.id};
  const bool with_value = request % 2 == 1;
  if (!with_value) return Send(Message(message));
  message.value = Show(object);
  Send(Message(message, object.value.payload.bytes()));
}

void WorkerTalk::Refuse(std::uint64_t request, const Object& object, const Payload& error) {
  const ValueMessage message{
      .request = request, .object = object.id, .value = HeaderOf(ObjectValue::Failed(error))};
  Send(Message(message, error.bytes()));
}

void WorkerTalk::Named(std::uint64_t request, const NameAnswer& answer) {
  using Found = NamedMessage::Found;
  NamedMessage message{.request = request};
  if (answer.error) {
    message.found = Found::kUnknown;
    const std::string why = answer.error->what();
    return Send(Message(message, std::as_bytes(std::span(why.c_str(), why.size() + 1))));
  }
  if (answer.holder) {
    message.found = Found::kActor;
    message.of_another = machine_.IsOfAnother(answer.holder->object) ? 1 : 0;
    message.actor = answer.holder->actor;
    message.object = answer.holder->object.object;
    message.actor_class = answer.holder->actor_class;
    message.construction = answer.holder->construction;
  }
  Send(Message(message));
}

// ---- From the worker.

void WorkerTalk::Handle(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  ToNode kind;
  if (bytes.size() < sizeof(kind)) throw DataLoss("a message of {} bytes", bytes.size());
  std::memcpy(&kind, bytes.data(), sizeof(kind));
  if (IsForAnother(kind, bytes)) return;
  if (kind == ToNode::kSubmit) return HandleSubmit(reader);
  if (worker_ == nullptr && kind != ToNode::kHello) {
    throw DataLoss("a message of kind {} before the first", static_cast<int>(kind));
  }
  switch (kind) {
    case ToNode::kHello:
    case ToNode::kAllocate:
    case ToNode::kReturn:
      return HandleHere(kind, reader);
    case ToNode::kFinished:
      return HandleFinished(reader);
    case ToNode::kFailed:
      return HandleFailed(reader);
    case ToNode::kPut:
      return HandlePut(reader);
    case ToNode::kAdopt:
    case ToNode::kForget:
    case ToNode::kUnpin:
      return HandleReference(kind, reader.Take<ReferenceMessage>().object);
    case ToNode::kWatch:
    case ToNode::kUnwatch:
      return HandleWatch(reader, /*begin=*/kind == ToNode::kWatch);
    case ToNode::kBlock:
      return HandleBlock(reader);
    case ToNode::kRecord: {
      const auto message = reader.Take<RecordMessage>();
      return machine_.Record(*worker_, message.lease, reader.TakeBytes(message.bytes));
    }
    case ToNode::kUnblock:
      return machine_.Unblock(*worker_);
    case ToNode::kLeave:
      return machine_.WorkerLeaves(*worker_);
    case ToNode::kCancel:
      return HandleCancel(reader);
    case ToNode::kKillActor:
      return HandleKill(reader);
    case ToNode::kFindActor:
      return HandleFind(reader);
    case ToNode::kYield:
      return HandleYield(reader);
    case ToNode::kTake: {
      const auto message = reader.Take<TakeMessage>();
      return machine_.Take(index_, message.stream, message.count);
    }
    case ToNode::kPart:
      return HandlePart(reader);
    case ToNode::kSubmit:
      return;
  }
  throw DataLoss("a message of unknown kind {}", static_cast<std::uint32_t>(kind));
}

void WorkerTalk::HandlePart(MessageReader& reader) {
  const auto message = reader.Take<PartMessage>();
  const std::span<const std::byte> part = reader.rest();
  if (parts_.size() + part.size() > kPartsBytesMax) {
    throw DataLoss("a message of more than {} bytes", kPartsBytesMax);
  }
  parts_.insert(parts_.end(), part.begin(), part.end());
  if (message.last == 0) return;
  const std::vector<std::byte> whole = std::exchange(parts_, {});
  ToNode kind = ToNode::kPart;
  if (whole.size() >= sizeof(kind)) std::memcpy(&kind, whole.data(), sizeof(kind));
  if (kind == ToNode::kPart) throw DataLoss("a message in parts has no kind");
  Handle(whole);
}

// ---- Calls and what they give.

void WorkerTalk::HandleSubmit(MessageReader& reader) {
  reader.Take<ReferenceMessage>();
  SpecPointer spec = TaskSpec::Copy(reader.rest());
  if (!FitsMessage(*spec)) throw DataLoss("a call of {} bytes", spec->bytes().size());
  machine_.Submit(index_, std::move(spec));
}

ObjectValue WorkerTalk::TakeResult(MessageReader& reader, std::vector<ObjectId>& contained) {
  ObjectValue value = ReadResult(reader, contained);
  Check(value);
  return value;
}

void WorkerTalk::HandleFinished(MessageReader& reader) {
  const auto message = reader.Take<FinishedMessage>();
  if (message.results > 65535) throw DataLoss("a call with {} results", message.results);
  std::vector<TaskResult> results(message.results);
  for (TaskResult& result : results) result.value = TakeResult(reader, result.contained);
  machine_.Finished(*worker_, message.lease, results, message.nanoseconds, message.ended_at);
}

void WorkerTalk::HandleFailed(MessageReader& reader) {
  const auto message = reader.Take<FinishedMessage>();
  machine_.Failed(*worker_, message.lease, DecodeFailure(Payload::Copy(reader.rest())),
                  message.nanoseconds, message.ended_at);
}

void WorkerTalk::HandlePut(MessageReader& reader) {
  const auto message = reader.Take<ReferenceMessage>();
  std::vector<ObjectId> contained;
  ObjectValue value = TakeResult(reader, contained);
  machine_.Put(index_, message.object, std::move(value), contained);
}

void WorkerTalk::HandleYield(MessageReader& reader) {
  const auto message = reader.Take<YieldMessage>();
  TaskResult item;
  item.value = TakeResult(reader, item.contained);
  machine_.Yield(*worker_, message.lease, message.index, std::move(item));
}

void WorkerTalk::HandleCancel(MessageReader& reader) {
  const auto message = reader.Take<CancelMessage>();
  if (Object* const object = machine_.objects().Find(message.object)) {
    machine_.Cancel(*object, message.force != 0, message.recursive != 0);
  }
}

void WorkerTalk::HandleKill(MessageReader& reader) {
  const auto message = reader.Take<KillMessage>();
  Actor* const actor = machine_.FindActor(message.actor);
  if (actor == nullptr) return machine_.KillAnothers(message.object, message.may_restart != 0);
  machine_.KillActor(*actor, message.may_restart != 0,
                     worker_->actor == actor ? "the actor ended itself, as by exit_actor()"
                                             : "the actor was killed by its user");
}

void WorkerTalk::HandleFind(MessageReader& reader) {
  const auto message = reader.Take<FindMessage>();
  const std::span<const std::byte> bytes = reader.rest();
  const std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // A message is padded at its end.
  machine_.FindActor({index_, message.request}, name.c_str());
}

// ---- Objects that it refers to, and waits for.

void WorkerTalk::HandleReference(ToNode kind, ObjectId id) {
  ObjectTable& objects = machine_.objects();
  if (kind == ToNode::kAdopt) return objects.AddReferrer(index_, objects.FindOrMake(id));
  Object* const object = objects.Find(id);
  if (object == nullptr) return;
  if (kind == ToNode::kForget) {
    objects.DropReferrer(index_, *object);
  } else {
    objects.Unpin(index_, *object);
  }
}

void WorkerTalk::HandleWatch(MessageReader& reader, bool begin) {
  const auto message = reader.Take<WatchMessage>();
  const std::vector<ObjectId> ids = reader.TakeIds(message.objects);
  const Watch watch{index_, message.request};
  const bool with_value = message.request % 2 == 1;
  if (begin && !with_value) return HandleWait(message, ids);
  std::vector<Object*> awaited;
  for (const ObjectId& id : ids) {
    Object& object = machine_.objects().FindOrMake(id);
    if (!begin) {
      machine_.Unwatch(watch, object);
    } else if (machine_.WatchObject(watch, object, with_value)) {
      Ready(message.request, object);
    } else {
      awaited.push_back(&object);
    }
  }
  if (!awaited.empty() && message.call_waits != 0) {
    machine_.Block(*worker_, awaited, message.timed != 0);
  }
}

// Says which are ready, and of the others when they are, if that is not enough.
void WorkerTalk::HandleWait(const WatchMessage& message, std::span<const ObjectId> ids) {
  std::vector<std::byte> ready(ids.size());
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Object* const object = machine_.objects().Find(ids[i]);
    if (object == nullptr || object->state != Object::State::kReady) continue;
    ready[i] = std::byte{1};
    ++found;
  }
  SayWhichAreReady(message.request, ready);
  if (found >= message.wanted) return;
  const Watch watch{index_, message.request};
  std::vector<Object*> awaited;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ready[i] == std::byte{1}) continue;
    Object& object = machine_.objects().FindOrMake(ids[i]);
    if (machine_.WatchObject(watch, object)) {
      Ready(message.request, object);  // It was lost for good.
    } else {
      awaited.push_back(&object);
    }
  }
  if (!awaited.empty() && message.call_waits != 0) {
    machine_.Block(*worker_, awaited, message.timed != 0);
  }
}

void WorkerTalk::SayWhichAreReady(std::uint64_t request, std::span<const std::byte> ready) {
  do {
    const auto piece = ready.first(std::min(ready.size(), kReadyBytesMax));
    ready = ready.subspan(piece.size());
    Send(Message(ReadyMessage{.last = ready.empty() ? 1U : 0U, .request = request}, piece));
  } while (!ready.empty());
}

// A thread of the call has waited for them for a while, and the call does nothing else.
void WorkerTalk::HandleBlock(MessageReader& reader) {
  const auto message = reader.Take<WatchMessage>();
  std::vector<Object*> awaited;
  for (const ObjectId& id : reader.TakeIds(message.objects)) {
    Object* const object = machine_.objects().Find(id);
    if (object != nullptr && object->state == Object::State::kPending) awaited.push_back(object);
  }
  if (!awaited.empty()) machine_.Block(*worker_, awaited, message.timed != 0);
}

}  // namespace menger
