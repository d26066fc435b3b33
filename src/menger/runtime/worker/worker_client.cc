#include "menger/runtime/worker/worker_client.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "menger/runtime/calls/worker_identity.h"
#include "menger/runtime/values/pretty_name.h"

namespace menger {
namespace {

constexpr double kBriefNanoseconds = 20'000;
constexpr std::size_t kUntoldMax = 64;
constexpr std::chrono::nanoseconds kFullPause{20'000};

}  // namespace

WorkerClient::WorkerClient(const WorkerStart& start, WorkerChannel channel, NodeBell& node,
                           std::unique_ptr<WorkerSegments> segments)
    : Client(start.job, start.process),
      index_(start.index),
      channel_(std::move(channel)),
      node_(node),
      place_(start.place),
      segments_(std::move(segments)),
      in_(channel_.to_worker()),
      out_(channel_.to_node()) {}

// ---- Serving.

void WorkerClient::Serve() {
  DoCalls();
  call_threads_.reset();
  actors_.Clear();
  ended_.store(true, std::memory_order_relaxed);
}

void WorkerClient::CheckOpen() const {
  CheckProcess();
  if (!open()) throw FailedPrecondition("the runtime has ended, and this worker with it");
}

void WorkerClient::DoCalls() {
  Send(
      sizeof(HelloMessage),
      [](MessageWriter& writer) {
        writer.Add(HelloMessage{.process = static_cast<std::uint32_t>(getpid())});
      },
      Urgency::kNow);
  for (Claimed call; AwaitCall(call); call = {}) {
    if (call.memory != nullptr) Do(call);
    if (call_threads_ != nullptr) return call_threads_->Watch();
    if (leaves_.load(std::memory_order_relaxed)) return Leave();
  }
}

// Asks for its end, which comes, and claims no further calls.
void WorkerClient::Leave() {
  Send(
      sizeof(ReferenceMessage),
      [](MessageWriter& writer) { writer.Add(ReferenceMessage{.kind = ToNode::kLeave}); },
      Urgency::kNow);
  for (;;) {
    const std::uint32_t seen = channel_.worker_bell().value();
    {
      const std::lock_guard lock(reading_);
      ReadMessages();
      if (stop_) return;
    }
    TellNodeAll();
    channel_.worker_bell().TryWaitFor(seen + 1, idle_.Next());
  }
}

// The next call, if there is one within a while. False: there will be none.
bool WorkerClient::AwaitCall(Claimed& call) {
  const std::uint32_t seen = channel_.worker_bell().value();
  {
    const std::lock_guard lock(reading_);
    ReadMessages();
    call = ClaimNext();
    if (call.memory == nullptr && stop_) return false;
  }
  if (call.memory != nullptr) {
    idle_.Reset();
    return true;
  }
  TellNodeAll();
  if (!channel_.worker_bell().TryWaitFor(seen + 1, idle_.Next())) Rest();
  return true;
}

// Nothing has happened for a while.
void WorkerClient::Rest() {
  const std::lock_guard lock(writing_);
  out_.GiveMemoryBack();
}

// Handles the answers that have come; calls stay the node's until they are claimed.
void WorkerClient::ReadMessages() {
  bool any = false;
  while (const RingEntry entry = in_.Next()) {
    any = true;
    if (entry.kind == RingEntryKind::kClaimable) {
      offered_.push_back(entry);
    } else {
      HandleAnswer(entry.bytes);
    }
  }
  if (any && offered_.empty()) in_.Release();
  ReleaseDone();
}

// What lies before the first call that can still be claimed; answers need the room.
void WorkerClient::ReleaseDone() {
  RingEntry last;
  while (!offered_.empty() && in_.WasRecalled(offered_.front())) {
    last = offered_.front();
    offered_.pop_front();
  }
  if (last) ReleaseThrough(last);
}

void WorkerClient::ReleaseThrough(const RingEntry& entry) {
  if (offered_.empty()) {
    in_.Release();
  } else {
    in_.ReleaseThrough(entry);
  }
}

WorkerClient::Claimed WorkerClient::ClaimNext() {
  Claimed call;
  while (!offered_.empty() && call.memory == nullptr) {
    const RingEntry entry = offered_.front();
    offered_.pop_front();
    if (in_.TryClaim(entry)) {
      call = {CallBuffer(new std::byte[entry.bytes.size()]), entry.bytes.size()};
      std::memcpy(call.memory.get(), entry.bytes.data(), entry.bytes.size());
    }
    ReleaseThrough(entry);
  }
  return call;
}

void WorkerClient::HandleAnswer(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  ToWorker kind;
  std::memcpy(&kind, bytes.data(), sizeof(kind));
  if (kind == ToWorker::kStop) {
    stop_ = true;
  } else if (kind == ToWorker::kValue) {
    HandleValue(reader);
  } else if (kind == ToWorker::kReady) {
    const auto message = reader.Take<ReadyMessage>();
    if (Request* const request = FindRequest(message.request)) {
      const auto flags = reader.rest();
      request->ready.insert(request->ready.end(), flags.begin(), flags.end());
      if (message.last == 0) return;
      request->answered = true;
      request->missing = 0;
    }
  } else if (kind == ToWorker::kNamed) {
    const auto message = reader.Take<NamedMessage>();
    if (Request* const request = FindRequest(message.request)) {
      request->named = message;
      request->refusal = Payload::Copy(reader.rest());
      request->missing = 0;
    } else if (message.found == NamedMessage::Found::kActor) {
      NewHandle(message.object);  // It has given up waiting, and refers to that all the same.
    }
  } else if (kind == ToWorker::kGrant) {
    const auto message = reader.Take<GrantMessage>();
    if (message.request == kAheadRequest) {
      message.granted != 0 ? room_.Give(message.extent) : room_.Refuse();
    } else if (Request* const request = FindRequest(message.request)) {
      request->grant = message;
      if (message.granted == 0) request->refusal = Payload::Copy(reader.rest());
      request->missing = 0;
    } else if (message.granted != 0) {
      Discard(ObjectValue::Shared(message.extent));  // It has given up waiting.
    }
  }
}

void WorkerClient::Do(const Claimed& claimed) {
  MessageReader reader({claimed.memory.get(), claimed.bytes});
  const auto call = reader.Take<CallMessage>();
  if (call.brief == 0) TellNodeAll();
  std::vector<ValueHeader> headers(call.references);
  const auto bytes = reader.TakeBytes(call.references * sizeof(ValueHeader));
  if (!headers.empty()) std::memcpy(headers.data(), bytes.data(), bytes.size());
  const TaskSpec& spec = TaskSpec::View(reader.TakeBytes(call.spec_bytes));
  const Fetched missing = FetchMissing(spec, headers);
  if (missing.failed) {
    const std::int64_t now = MonotonicNanoseconds();
    CallOutcome outcome{.failed = true,
                        .failure = DecodeFailure(Payload::Copy(missing.values.front().bytes()))};
    return Report(call, std::move(outcome), now, now);
  }
  CallInputs inputs(reader.TakeBytes(call.record_bytes), [&](std::span<const std::byte> told) {
    Send(
        MessagePart(sizeof(RecordMessage)) + MessagePart(told.size()),
        [&](MessageWriter& writer) {
          writer.Add(
              RecordMessage{.bytes = static_cast<std::uint32_t>(told.size()), .lease = call.lease});
          writer.AddBytes(told);
        },
        Urgency::kSoon);
  });
  std::vector<EncodedValue> values;
  values.reserve(headers.size());
  std::size_t next_missing = 0;
  for (const ValueHeader& value : headers) {
    if (value.kind == ObjectValue::Kind::kShared) {
      values.push_back(segments_->Read({value.segment, value.offset, value.bytes}));
    } else if (value.kind == ObjectValue::Kind::kNone) {
      values.push_back(missing.values[next_missing++].bytes());
    } else {
      values.push_back(reader.TakeBytes(value.bytes));
    }
  }
  const bool main = std::this_thread::get_id() == main_;
  std::uint64_t lease = call.lease;
  const auto unblock = [this] { SendUnblock(); };
  if (main) lending_.SetCall(lease, unblock);
  const std::int64_t began_at = MonotonicNanoseconds();
  CallOutcome outcome = Execute(spec, call.run, values, *this, &lease, &inputs, actors_, *this);
  if (main) lending_.SetCall(0, unblock);
  if (spec.header().kind == CallKind::kConstruct && !outcome.failed) Begin(spec.header());
  Report(call, std::move(outcome), began_at, MonotonicNanoseconds());
}

// The actor lives here from now on.
void WorkerClient::Begin(const SpecHeader& construction) {
  ShowActor(PrettyName(actors_.Get(construction.actor).type->compiler_name));
  if (construction.concurrency > 1) {
    call_threads_ = std::make_unique<CallThreads>(
        construction.concurrency, [this](std::function<void()>& call) {
          auto claimed = std::make_shared<Claimed>();
          if (!AwaitCall(*claimed)) return false;
          if (claimed->memory == nullptr) return true;
          call = [this, claimed] {
            Do(*claimed);
            // Who has it does so before he waits. (call_threads_ is null while it waits for them.)
            if (!threads_.load(std::memory_order_acquire)->HasTurn()) TellNodeAll();
          };
          return true;
        });
    threads_.store(call_threads_.get(), std::memory_order_release);
  }
}

// Of the call that this thread does; another thread may have been started by that of the main one.
std::uint64_t WorkerClient::ThisLease() const {
  const CallContext* const call = ThisCall();
  if (call != nullptr) return *static_cast<const std::uint64_t*>(call->execution);
  return lending_.call();
}

// The arguments that did not fit the message, or are on the disk of this node. They are somewhere:
// the call would not run otherwise; but there may be no room for all.
Fetched WorkerClient::FetchMissing(const TaskSpec& spec, std::span<const ValueHeader> headers) {
  std::vector<ObjectHandle> missing;
  std::size_t reference = 0;
  for (const SpecArgument& argument : spec.arguments()) {
    if (!argument.object.valid()) continue;
    if (headers[reference++].kind == ObjectValue::Kind::kNone) {
      missing.push_back(Adopt(argument.object));
    }
  }
  if (missing.empty()) return {};
  return Get(missing, Deadline::After(kAnswer));
}

void WorkerClient::Report(const CallMessage& call, CallOutcome outcome, std::int64_t began_at,
                          std::int64_t ended_at) {
  const auto nanoseconds = static_cast<double>(ended_at - began_at);
  const Urgency urgency = nanoseconds > kBriefNanoseconds ? Urgency::kNow : Urgency::kSoon;
  std::size_t bytes = MessagePart(sizeof(FinishedMessage));
  for (const TaskResult& result : outcome.results) {
    bytes += ResultBytes(result.value, result.contained.size());
  }
  if (!outcome.failed && bytes > kPartsBytesMax) {
    outcome.failed = true;
    outcome.failure = {.code = ErrorCode::kInvalidArgument,
                       .text = fmt::format("its results have {} bytes of references and small "
                                           "values; at most {} go together",
                                           bytes, kPartsBytesMax)};
  }
  if (outcome.failed) {
    for (const TaskResult& result : outcome.results) Discard(result.value);
    outcome.failure.worker = fmt::format("worker {}, process {}", index_, getpid());
    const Payload failure = Encode(outcome.failure);
    Send(
        MessagePart(sizeof(FinishedMessage)) + MessagePart(failure.size()),
        [&](MessageWriter& writer) {
          writer.Add(FinishedMessage{.kind = ToNode::kFailed,
                                     .lease = call.lease,
                                     .nanoseconds = nanoseconds,
                                     .ended_at = ended_at});
          writer.AddBytes(failure.bytes());
        },
        urgency);
    return;
  }
  Send(
      bytes,
      [&](MessageWriter& writer) {
        writer.Add(FinishedMessage{.results = static_cast<std::uint32_t>(outcome.results.size()),
                                   .lease = call.lease,
                                   .nanoseconds = nanoseconds,
                                   .ended_at = ended_at});
        for (const TaskResult& result : outcome.results) {
          WriteResult(writer, result.value, result.contained);
        }
      },
      urgency);
}

// ---- Writing.

void WorkerClient::Send(std::size_t bytes, FunctionRef<void(MessageWriter&)> fill,
                        Urgency urgency) {
  CheckOpen();
  const std::lock_guard lock(writing_);
  bytes = MessagePart(bytes);
  if (bytes > WorkerChannel::kMessageBytesMax) {
    SendParts(bytes, fill);
  } else {
    MessageWriter writer(Reserve(bytes));
    fill(writer);
    out_.Publish();
  }
  if (urgency == Urgency::kNow || ++untold_ >= kUntoldMax) return TellNode();
  if (urgency == Urgency::kSoon) RaiseFlag();
}

void WorkerClient::RaiseFlag() {
  out_.Publish(std::memory_order_seq_cst);  // Once more: see WorkerFlags.
  node_.flags.Raise(place_);
}

void WorkerClient::TellNode() {
  untold_ = 0;
  RaiseFlag();
  node_.doorbell.Ring();
}

void WorkerClient::TellNodeAll() {
  const std::lock_guard lock(writing_);
  if (untold_ > 0) TellNode();
}

std::span<std::byte> WorkerClient::Reserve(std::size_t bytes) {
  std::span<std::byte> out = out_.Reserve(bytes);
  while (out.data() == nullptr) {
    // The node is behind: it must be awake, and needs the processor perhaps.
    TellNode();
    timespec pause{.tv_nsec = kFullPause.count()};
    nanosleep(&pause, nullptr);
    out = out_.Reserve(bytes);
  }
  return out;
}

void WorkerClient::SendParts(std::size_t bytes, FunctionRef<void(MessageWriter&)> fill) {
  if (bytes > kPartsBytesMax) {
    throw InvalidArgument(
        "what is to be told has {} bytes of references and small values; at most "
        "{} go together",
        bytes, kPartsBytesMax);
  }
  Payload whole = Payload::Allocate(bytes);
  MessageWriter all(whole.fill());
  fill(all);
  constexpr std::size_t kPartBytes =
      WorkerChannel::kMessageBytesMax - MessagePart(sizeof(PartMessage));
  for (std::span<const std::byte> rest = whole.bytes(); !rest.empty();) {
    const std::span<const std::byte> part = rest.first(std::min(rest.size(), kPartBytes));
    rest = rest.subspan(part.size());
    MessageWriter writer(Reserve(MessagePart(sizeof(PartMessage)) + part.size()));
    writer.Add(PartMessage{.last = rest.empty() ? 1U : 0U});
    writer.AddBytes(part);
    out_.Publish();
  }
}

void WorkerClient::SendReference(ToNode kind, ObjectId id) {
  Send(
      sizeof(ReferenceMessage),
      [&](MessageWriter& writer) { writer.Add(ReferenceMessage{.kind = kind, .object = id}); },
      Urgency::kLater);
}

ObjectHandle WorkerClient::NewHandle(ObjectId id) {
  return ObjectHandle(new Reference{.id = id, .owner = this});
}

ObjectHandle WorkerClient::Adopt(ObjectId id) {
  SendReference(ToNode::kAdopt, id);
  return NewHandle(id);
}

void WorkerClient::Forget(Reference* reference) noexcept {
  const ObjectId id = reference->id;
  delete reference;
  if (open()) SendReference(ToNode::kForget, id);
}

void WorkerClient::Unpin(const ObjectHandle& object) noexcept {
  if (open()) SendReference(ToNode::kUnpin, object.id());
}

void WorkerClient::Submit(SpecPointer spec, std::span<ObjectHandle> results) {
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    results[i] = NewHandle(ResultOf(spec->task(), i));
  }
  Send(
      MessagePart(sizeof(ReferenceMessage)) + spec->bytes().size(),
      [&](MessageWriter& writer) {
        writer.Add(ReferenceMessage{.kind = ToNode::kSubmit});
        writer.AddBytes(spec->bytes());
      },
      Urgency::kNow);
}

// ---- The rest.

void WorkerClient::Yield(std::uint64_t index, ObjectValue value,
                         std::span<const ObjectHandle> contained) {
  std::vector<ObjectId> ids;
  for (const ObjectHandle& handle : contained) ids.push_back(handle.id());
  const std::uint64_t lease = ThisLease();
  if (lease == 0) throw FailedPrecondition("an item is yielded outside of a call");
  Send(
      MessagePart(sizeof(YieldMessage)) + ResultBytes(value, ids.size()),
      [&](MessageWriter& writer) {
        writer.Add(YieldMessage{.lease = lease, .index = index});
        WriteResult(writer, value, ids);
      },
      Urgency::kNow);
}

void WorkerClient::Take(TaskId stream, std::uint64_t count) noexcept {
  if (!open()) return;
  Send(
      sizeof(TakeMessage),
      [&](MessageWriter& writer) { writer.Add(TakeMessage{.stream = stream, .count = count}); },
      Urgency::kNow);
}

void WorkerClient::Cancel(const ObjectHandle& object, bool force, bool recursive) {
  Send(
      sizeof(CancelMessage),
      [&](MessageWriter& writer) {
        writer.Add(CancelMessage{.force = force, .recursive = recursive, .object = object.id()});
      },
      Urgency::kNow);
}

void WorkerClient::Begun() {
  if (CallThreads* const threads = threads_.load(std::memory_order_acquire)) threads->Begun();
}

}  // namespace menger
