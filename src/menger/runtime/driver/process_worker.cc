#include "menger/runtime/driver/process_worker.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

static_assert(WorkerChannel::kLeasePlaces >= kLeasesMax);

constexpr std::chrono::seconds kLastWords{5};   // For what a program does before it exits.
constexpr std::size_t kWaitingMax = 1'000'000;  // Messages for a worker that does not read.

template <typename T>
std::vector<std::byte> Message(const T& head, std::span<const std::byte> tail = {}) {
  std::vector<std::byte> message(MessagePart(sizeof(head)) + MessagePart(tail.size()));
  MessageWriter writer(message);
  writer.Add(head);
  writer.AddBytes(tail);
  return message;
}

}  // namespace

ProcessWorker::ProcessWorker(WorkerOwner& owner, NodeMachine& machine, WorkerIndex index,
                             WorkerChannel channel, FileDescriptor control)
    : owner_(owner),
      machine_(machine),
      index_(index),
      control_(std::move(control)),
      channel_(std::move(channel)),
      out_(channel_.to_worker()),
      in_(channel_.to_node()) {}

// ---- To the worker.

template <typename Step>
bool ProcessWorker::Try(const Step& step) {
  try {
    return step();
  } catch (const Error& error) {
    End(fmt::format("it broke the protocol: {}", error.what()));
    return false;
  }
}

bool ProcessWorker::Offer(const Task& task) {
  if (!waiting_.empty() || ended_) return false;
  std::vector<const ObjectValue*> values(task.references);
  std::size_t bytes = CallBytes(*task.spec, values, task.records);
  for (std::size_t i = 0; i < task.references; ++i) {
    const ObjectValue& value = task.arguments[i]->value;
    const std::size_t tail = MessagePart(TailBytes(HeaderOf(value)));
    // The worker asks for what does not fit.
    if (bytes + tail > WorkerChannel::kMessageBytesMax) continue;
    if (value.kind == ObjectValue::Kind::kShared) owner_.SendSegment(index_, value.extent.segment);
    values[i] = &value;
    bytes += tail;
  }
  return Try([&] {
    const std::span<std::byte> out = out_.Reserve(bytes, RingEntryKind::kClaimable);
    if (out.data() == nullptr) return false;
    if (task.header().kind == CallKind::kConstruct) {
      owner_.NameWorker(index_, machine_.NameOf(task));
    }
    WriteCall(out, {.lease = task.lease, .run = task.run, .brief = task.brief ? 1U : 0U},
              *task.spec, values, task.records);
    positions_[task.lease % kPlaces] = out_.last();
    out_.Publish();
    return true;
  });
}

bool ProcessWorker::Recall(const Task& task) {
  return Try([&] { return out_.TryRecall(positions_[task.lease % kPlaces]); });
}

void ProcessWorker::Announce() { channel_.worker_bell().Advance(); }

void ProcessWorker::Interrupt(const Task& task) {
  channel_.interrupted(task.lease).store(task.lease, std::memory_order_release);
  Announce();  // It may wait.
}

void ProcessWorker::End(std::string_view why) {
  ended_ = true;
  owner_.KillWorker(index_, why, {});
}

// What it still has to do is nobody's: it ends what the program wants ended, within bounds.
void ProcessWorker::Dismiss(std::string_view why) {
  Send(Message(ToWorker::kStop));
  if (!waiting_.empty()) return End(why);  // It does not read.
  Announce();
  ended_ = true;
  owner_.KillWorker(index_, why, kLastWords);
}

void ProcessWorker::Ready(std::uint64_t request, Object& object) {
  ValueMessage message{.request = request, .object = object.id};
  const bool with_value = request % 2 == 1;
  if (!with_value) return Send(Message(message));
  message.value = HeaderOf(object.value);
  if (object.value.kind == ObjectValue::Kind::kShared) {
    machine_.objects().Pin(index_, object);
    owner_.SendSegment(index_, object.value.extent.segment);
  }
  Send(Message(message, object.value.payload.bytes()));
}

void ProcessWorker::Refuse(std::uint64_t request, const Object& object, const Payload& error) {
  const ValueMessage message{
      .request = request, .object = object.id, .value = HeaderOf(ObjectValue::Failed(error))};
  Send(Message(message, error.bytes()));
}

void ProcessWorker::Grant(std::uint64_t request, const SharedExtent* extent,
                          const TaskFailure* refusal) {
  GrantMessage answer{.request = request};
  if (extent == nullptr) return Send(Message(answer, Encode(*refusal).bytes()));
  answer.granted = 1;
  answer.extent = *extent;
  Send(Message(answer));
}

void ProcessWorker::Send(std::vector<std::byte> message) {
  if (ended_) return;
  waiting_.push_back(std::move(message));
  SendWaiting();
  Attend();
  if (waiting_.size() > kWaitingMax) {
    End(fmt::format("it does not read its messages: {} wait", waiting_.size()));
  }
}

void ProcessWorker::SendWaiting() {
  const auto send_first = [this] {
    const std::vector<std::byte>& message = waiting_.front();
    const std::span<std::byte> out = out_.Reserve(message.size());
    if (out.data() == nullptr) return false;
    std::memcpy(out.data(), message.data(), message.size());
    out_.Publish();
    waiting_.pop_front();
    return announce_ = true;
  };
  while (!waiting_.empty() && Try(send_first)) {
  }
}

// Calls that it has not begun fill the ring, and those that it does may wait for these messages.
void ProcessWorker::MakeRoom(NodeMachine& machine) {
  SendWaiting();
  if (worker_ == nullptr) return;
  if (waiting_.empty()) return machine.HasRoomAgain(*worker_);
  machine.TakeBackCalls(*worker_);
  announce_ = true;
}

// ---- From the worker.

bool ProcessWorker::Drain(NodeMachine& machine) {
  if (ended_) return false;
  if (!waiting_.empty()) MakeRoom(machine);
  bool any = false;
  while (const RingEntry entry = in_.Next()) {
    any = true;
    Handle(machine, entry.bytes);
    if (ended_) return true;
  }
  if (any) in_.Release();
  if (std::exchange(announce_, false)) Announce();
  return any;
}

void ProcessWorker::Attend() {
  if (!std::exchange(attended_, true)) owner_.Attend(index_);
}

bool ProcessWorker::Settle(bool more) {
  if (std::exchange(announce_, false)) Announce();
  attended_ = (more || !waiting_.empty()) && !ended_;
  return attended_;
}

void ProcessWorker::Rest() {
  if (ended_) return;
  Try([&] {
    out_.GiveMemoryBack();
    return true;
  });
}

void ProcessWorker::Handle(NodeMachine& machine, std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  ToNode kind;
  if (bytes.size() < sizeof(kind)) throw DataLoss("a message of {} bytes", bytes.size());
  std::memcpy(&kind, bytes.data(), sizeof(kind));
  if (kind == ToNode::kSubmit) {
    reader.Take<ReferenceMessage>();
    SpecPointer spec = TaskSpec::Copy(reader.rest());
    if (!FitsMessage(*spec)) throw DataLoss("a call of {} bytes", spec->bytes().size());
    return machine.Submit(index_, std::move(spec));
  }
  if (worker_ == nullptr && kind != ToNode::kHello) {
    throw DataLoss("a message of kind {} before the first", static_cast<int>(kind));
  }
  switch (kind) {
    case ToNode::kHello:
      if (worker_ == nullptr) owner_.Connected(index_);
      return;
    case ToNode::kFinished:
      return HandleFinished(machine, reader);
    case ToNode::kFailed: {
      const auto message = reader.Take<FinishedMessage>();
      machine.Failed(*worker_, message.lease, DecodeFailure(Payload::Copy(reader.rest())),
                     message.nanoseconds, message.ended_at);
      return;
    }
    case ToNode::kPut: {
      const auto message = reader.Take<ReferenceMessage>();
      std::vector<ObjectId> contained;
      ObjectValue value = TakeResult(reader, contained);
      return machine.Put(index_, message.object, std::move(value), contained);
    }
    case ToNode::kAdopt:
    case ToNode::kForget:
    case ToNode::kUnpin:
      return HandleReference(machine, kind, reader.Take<ReferenceMessage>().object);
    case ToNode::kWatch:
    case ToNode::kUnwatch:
    case ToNode::kBlock:
      return HandleWaiting(machine, kind, reader);
    case ToNode::kRecord: {
      const auto message = reader.Take<RecordMessage>();
      return machine.Record(*worker_, message.lease, reader.TakeBytes(message.bytes));
    }
    case ToNode::kUnblock:
      return machine.Unblock(*worker_);
    case ToNode::kLeave:
      return machine.WorkerLeaves(*worker_);
    case ToNode::kAllocate:
      return HandleAllocate(reader);
    case ToNode::kReturn:
      return HandleReturn(reader);
    case ToNode::kCancel:
    case ToNode::kKillActor:
      return HandleEnding(machine, kind, reader);
    case ToNode::kFindActor:
      return HandleFind(machine, reader);
    case ToNode::kYield:
      return HandleYield(machine, reader);
    case ToNode::kTake: {
      const auto message = reader.Take<TakeMessage>();
      return machine.Take(index_, message.stream, message.count);
    }
    case ToNode::kPart:
      return HandlePart(machine, reader);
    case ToNode::kSubmit:
      return;
  }
  throw DataLoss("a message of unknown kind {}", static_cast<std::uint32_t>(kind));
}

void ProcessWorker::HandleReturn(MessageReader& reader) {
  const auto message = reader.Take<ReturnMessage>();
  if (owner_.ReturnExtent(index_, message.extent)) return;
  throw DataLoss("{} bytes at {} of segment {} are not the worker's to return",
                 message.extent.bytes, message.extent.offset, message.extent.segment);
}

void ProcessWorker::HandleEnding(NodeMachine& machine, ToNode kind, MessageReader& reader) {
  if (kind == ToNode::kCancel) {
    const auto message = reader.Take<CancelMessage>();
    if (Object* const object = machine.objects().Find(message.object)) {
      machine.Cancel(*object, message.force != 0, message.recursive != 0);
    }
  } else {
    const auto message = reader.Take<KillMessage>();
    if (Actor* const actor = machine.FindActor(message.actor)) {
      const bool itself = worker_ != nullptr && worker_->actor == actor;
      machine.KillActor(*actor, message.may_restart != 0,
                        itself ? "the actor ended itself, as by exit_actor()"
                               : "the actor was killed by its user");
    }
  }
}

void ProcessWorker::HandleYield(NodeMachine& machine, MessageReader& reader) {
  const auto message = reader.Take<YieldMessage>();
  TaskResult item;
  item.value = TakeResult(reader, item.contained);
  machine.Yield(*worker_, message.lease, message.index, std::move(item));
}

void ProcessWorker::HandlePart(NodeMachine& machine, MessageReader& reader) {
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
  Handle(machine, whole);
}

ObjectValue ProcessWorker::TakeResult(MessageReader& reader, std::vector<ObjectId>& contained) {
  ObjectValue value = ReadResult(reader, contained);
  if (value.kind == ObjectValue::Kind::kShared) CheckPublished(value.extent);
  return value;
}

void ProcessWorker::CheckPublished(const SharedExtent& extent) {
  if (owner_.PublishExtent(index_, extent)) return;
  throw DataLoss("a value at {} of segment {}, {} bytes: not where the worker may write",
                 extent.offset, extent.segment, extent.bytes);
}

void ProcessWorker::HandleFinished(NodeMachine& machine, MessageReader& reader) {
  const auto message = reader.Take<FinishedMessage>();
  if (message.results > 65535) throw DataLoss("a call with {} results", message.results);
  std::vector<TaskResult> results(message.results);
  for (TaskResult& result : results) result.value = TakeResult(reader, result.contained);
  machine.Finished(*worker_, message.lease, results, message.nanoseconds, message.ended_at);
}

void ProcessWorker::HandleReference(NodeMachine& machine, ToNode kind, ObjectId id) {
  ObjectTable& objects = machine.objects();
  if (kind == ToNode::kAdopt) return objects.AddReferrer(index_, objects.FindOrMake(id));
  Object* const object = objects.Find(id);
  if (object == nullptr) return;
  if (kind == ToNode::kForget) {
    objects.DropReferrer(index_, *object);
  } else {
    objects.Unpin(index_, *object);
  }
}

void ProcessWorker::HandleWaiting(NodeMachine& machine, ToNode kind, MessageReader& reader) {
  if (kind == ToNode::kBlock) return HandleBlock(machine, reader);
  HandleWatch(machine, reader, /*begin=*/kind == ToNode::kWatch);
}

void ProcessWorker::HandleWatch(NodeMachine& machine, MessageReader& reader, bool begin) {
  const auto message = reader.Take<WatchMessage>();
  const std::vector<ObjectId> ids = reader.TakeIds(message.objects);
  const Watch watch{index_, message.request};
  const bool with_value = message.request % 2 == 1;
  if (begin && !with_value) return HandleWait(machine, message, ids);
  std::vector<Object*> awaited;
  for (const ObjectId& id : ids) {
    Object& object = machine.objects().FindOrMake(id);
    if (!begin) {
      machine.Unwatch(watch, object);
    } else if (machine.WatchObject(watch, object, with_value)) {
      Ready(message.request, object);
    } else {
      awaited.push_back(&object);
    }
  }
  if (!awaited.empty() && message.call_waits != 0) {
    machine.Block(*worker_, awaited, message.timed != 0);
  }
}

// A thread of the call has waited for them for a while, and the call does nothing else.
void ProcessWorker::HandleBlock(NodeMachine& machine, MessageReader& reader) {
  const auto message = reader.Take<WatchMessage>();
  std::vector<Object*> awaited;
  for (const ObjectId& id : reader.TakeIds(message.objects)) {
    Object* const object = machine.objects().Find(id);
    if (object != nullptr && object->state == Object::State::kPending) awaited.push_back(object);
  }
  if (!awaited.empty()) machine.Block(*worker_, awaited, message.timed != 0);
}

// Says which are ready, and of the others when they are, if that is not enough.
void ProcessWorker::HandleWait(NodeMachine& machine, const WatchMessage& message,
                               std::span<const ObjectId> ids) {
  std::vector<std::byte> ready(ids.size());
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Object* const object = machine.objects().Find(ids[i]);
    if (object == nullptr || object->state != Object::State::kReady) continue;
    ready[i] = std::byte{1};
    ++found;
  }
  std::span<const std::byte> rest(ready);
  do {
    const auto piece = rest.first(std::min(rest.size(), kReadyBytesMax));
    rest = rest.subspan(piece.size());
    Send(Message(ReadyMessage{.last = rest.empty() ? 1U : 0U, .request = message.request}, piece));
  } while (!rest.empty());
  if (found >= message.wanted) return;
  const Watch watch{index_, message.request};
  std::vector<Object*> awaited;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ready[i] == std::byte{1}) continue;
    Object& object = machine.objects().FindOrMake(ids[i]);
    if (machine.WatchObject(watch, object)) {
      Ready(message.request, object);  // It was lost for good.
    } else {
      awaited.push_back(&object);
    }
  }
  if (!awaited.empty() && message.call_waits != 0) {
    machine.Block(*worker_, awaited, message.timed != 0);
  }
}

void ProcessWorker::HandleFind(NodeMachine& machine, MessageReader& reader) {
  const auto message = reader.Take<FindMessage>();
  const std::span<const std::byte> bytes = reader.rest();
  const std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  NamedMessage answer{.request = message.request};
  // A message is padded at its end.
  if (const Actor* const actor = machine.FindActor(std::string_view(name.c_str()))) {
    answer.found = 1;
    answer.actor = actor->id;
    answer.object = actor->object->id;
    answer.actor_class = actor->construction->header().callee;
    answer.construction = actor->construction->header().function;
    machine.objects().AddReferrer(index_, *actor->object);
  }
  Send(Message(answer));
}

void ProcessWorker::HandleAllocate(MessageReader& reader) {
  const auto message = reader.Take<AllocateMessage>();
  owner_.RequestExtent(index_, message.request, message.bytes);
}

}  // namespace menger
