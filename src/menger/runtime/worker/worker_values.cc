#include <algorithm>
#include <iterator>
#include <thread>
#include <unordered_set>
#include <utility>

#include "menger/runtime/worker/worker_client.h"

// The part of the worker's end that deals with values: where its own are put, and how its calls
// await those of others.
namespace menger {
std::span<std::byte> WorkerClient::Allocate(std::size_t bytes, ObjectValue& value) {
  CheckOpen();
  if (bytes <= kInlineBytesMax) {
    value = ObjectValue::Inline(Payload::Allocate(bytes));
    return value.payload.fill();
  }
  const std::optional<SharedExtent> extent = TakeAhead(bytes);
  value = ObjectValue::Shared(extent ? *extent : RequestRoom(bytes));
  return segments_->Write(value.extent);
}

std::optional<SharedExtent> WorkerClient::TakeAhead(std::size_t bytes) {
  if (bytes > RoomAhead::kValueBytesMax) return std::nullopt;
  std::optional<SharedExtent> rest;
  std::optional<SharedExtent> extent;
  bool ask = false;
  {
    const std::lock_guard lock(reading_);
    ReadMessages();
    extent = room_.Take(bytes, rest);
    ask = room_.AskForMore();
  }
  if (rest) Discard(ObjectValue::Shared(*rest));
  if (ask) {
    Send(
        sizeof(AllocateMessage),
        [](MessageWriter& writer) {
          writer.Add(AllocateMessage{.request = kAheadRequest, .bytes = RoomAhead::kPieceBytes});
        },
        Urgency::kSoon);
  }
  return extent;
}

SharedExtent WorkerClient::RequestRoom(std::size_t bytes) {
  Request request{.missing = 1};
  const std::uint64_t number = NewRequest(request, false);
  Send(
      sizeof(AllocateMessage),
      [&](MessageWriter& writer) {
        writer.Add(AllocateMessage{.request = number, .bytes = bytes});
      },
      Urgency::kNow);
  Await(request, Deadline::After(kAnswer));
  {
    const std::lock_guard lock(reading_);
    requests_.erase(number);
  }
  if (request.missing > 0) throw DeadlineExceeded("the node gives no room for {} bytes", bytes);
  if (request.grant.granted == 0) throw TaskError(DecodeFailure(request.refusal));
  return request.grant.extent;
}

// What was allocated and is not to be a value after all.
void WorkerClient::Discard(const ObjectValue& value) noexcept {
  if (value.kind != ObjectValue::Kind::kShared || !open()) return;
  Send(
      sizeof(ReturnMessage),
      [&](MessageWriter& writer) { writer.Add(ReturnMessage{.extent = value.extent}); },
      Urgency::kLater);
}

void WorkerClient::Publish(const ObjectHandle& object, ObjectValue value,
                           std::span<const ObjectHandle> contained) {
  std::vector<ObjectId> ids;
  for (const ObjectHandle& handle : contained) ids.push_back(handle.id());
  Send(
      MessagePart(sizeof(ReferenceMessage)) + ResultBytes(value, ids.size()),
      [&](MessageWriter& writer) {
        writer.Add(ReferenceMessage{.kind = ToNode::kPut, .object = object.id()});
        WriteResult(writer, value, ids);
      },
      Urgency::kLater);
}

// ---- Waiting.

std::uint64_t WorkerClient::NewRequest(Request& request, bool with_values) {
  const std::lock_guard lock(reading_);
  const std::uint64_t number = 2 * ++next_request_ + (with_values ? 1 : 0);
  requests_.emplace(number, &request);
  return number;
}

namespace {

std::uint32_t IsTimed(const Deadline& deadline) {
  return deadline.remaining() < kNoTimeout / 2 ? 1 : 0;
}

}  // namespace

void WorkerClient::PassOn() {
  if (CallThreads* const threads = threads_.load(std::memory_order_acquire)) threads->PassOn();
}

bool WorkerClient::IsCancelled() const {
  auto& channel = const_cast<WorkerChannel&>(channel_);
  const std::uint64_t lease = ThisLease();
  return lease != 0 && channel.interrupted(lease).load(std::memory_order_acquire) == lease;
}

// A call that is cancelled waits no longer, unless it endures that.
bool WorkerClient::IsInterrupted() const {
  const CallContext* const call = ThisCall();
  return (call == nullptr || !call->endures) && IsCancelled();
}

void WorkerClient::CheckNotCancelled() const {
  if (IsInterrupted()) throw Cancelled("the call was cancelled while it waited for objects");
}

WorkerClient::Request* WorkerClient::FindRequest(std::uint64_t number) const {
  const auto found = requests_.find(number);
  return found != requests_.end() ? found->second : nullptr;
}

void WorkerClient::HandleValue(MessageReader& reader) {
  const auto message = reader.Take<ValueMessage>();
  const bool shared = message.value.kind == ObjectValue::Kind::kShared;
  Request* const request = FindRequest(message.request);
  if (request == nullptr) {
    // It has given up waiting.
    if (shared) SendReference(ToNode::kUnpin, message.object);
    return;
  }
  if (message.request % 2 == 0) {
    request->order.push_back(message.object);
    if (request->missing > 0) --request->missing;
    return;
  }
  PinnedBytes value;
  if (shared) {
    const SharedExtent extent{message.value.segment, message.value.offset, message.value.bytes};
    value = PinnedBytes(segments_->Read(extent), *this, Adopt(message.object));
  } else {
    value = PinnedBytes(Payload::Copy(reader.TakeBytes(message.value.bytes)));
  }
  const bool first = request->values.insert_or_assign(message.object, std::move(value)).second;
  if (first && request->missing > 0) --request->missing;
  if (message.value.kind == ObjectValue::Kind::kError && !request->failed.valid()) {
    request->failed = message.object;
    request->missing = 0;
  }
}

// Whoever waits reads for all.
void WorkerClient::Await(Request& request, const Deadline& deadline, FunctionRef<void()> look) {
  LookAround idle;
  for (;;) {
    const std::uint32_t seen = channel_.worker_bell().value();
    {
      const std::lock_guard lock(reading_);
      ReadMessages();
      if (request.missing == 0 || deadline.expired() || IsInterrupted()) return;
    }
    TellNodeAll();
    channel_.worker_bell().TryWaitFor(seen + 1, std::min(deadline.remaining(), idle.Next()));
    look();
  }
}

void WorkerClient::SendWatch(const WatchMessage& watch, std::span<const ObjectId> ids) {
  Send(
      MessagePart(sizeof(WatchMessage)) + MessagePart(ids.size_bytes()),
      [&](MessageWriter& writer) {
        writer.Add(watch);
        writer.AddBytes(std::as_bytes(ids));
      },
      Urgency::kNow);
}

// `await` returns when it has what it wants, or no time left: whether the objects may still be
// watched then. It is given what is to be done every now and then meanwhile.
void WorkerClient::Ask(WatchMessage watch, std::span<const ObjectId> ids,
                       FunctionRef<bool(FunctionRef<void()>)> await) {
  watch.objects = static_cast<std::uint32_t>(ids.size());
  const auto unblock = [this] { SendUnblock(); };
  bool watched = false;
  if (std::this_thread::get_id() == main_ && ThisCall() != nullptr) {
    watch.call_waits = 1;
    lending_.Begin([&] { SendWatch(watch, ids); });
    PassOn();
    watched = await([] {});
    lending_.End(unblock);
  } else {
    SendWatch(watch, ids);
    PassOn();
    Lending::ThreadWait wait(lending_);
    // Where others of the actor go on, the node need not know that one waits.
    const bool is_others = ThisCall() != nullptr;
    watched = await([&] {
      if (is_others) return;
      wait.Look([&] {
        WatchMessage block = watch;
        block.kind = ToNode::kBlock;
        SendWatch(block, ids);
      });
    });
    wait.End(unblock);
  }
  {
    const std::lock_guard lock(reading_);
    requests_.erase(watch.request);
  }
  if (!watched) return;
  watch.kind = ToNode::kUnwatch;
  SendWatch(watch, ids);
}

void WorkerClient::SendUnblock() {
  Send(
      sizeof(ReferenceMessage),
      [](MessageWriter& writer) { writer.Add(ReferenceMessage{.kind = ToNode::kUnblock}); },
      Urgency::kSoon);
}

Fetched WorkerClient::Get(std::span<const ObjectHandle> objects, const Deadline& deadline) {
  CheckOpen();
  std::vector<ObjectId> ids;
  std::unordered_set<ObjectId, IdHash> known;
  for (const ObjectHandle& handle : objects) {
    if (known.insert(handle.id()).second) ids.push_back(handle.id());
  }
  Request request{.missing = ids.size()};
  const WatchMessage watch{.request = NewRequest(request, /*with_values=*/true),
                           .timed = IsTimed(deadline)};
  bool done = false;
  Ask(watch, ids, [&](FunctionRef<void()> look) {
    Await(request, deadline, look);
    const std::lock_guard lock(reading_);
    done = request.missing == 0;
    return request.values.size() < ids.size();
  });
  if (!done) {
    CheckNotCancelled();
    throw DeadlineExceeded("{} of {} objects were not ready in time", request.missing,
                           objects.size());
  }
  return ValuesOf(request, objects);
}

Fetched WorkerClient::ValuesOf(Request& request, std::span<const ObjectHandle> objects) {
  Fetched fetched;
  fetched.values.reserve(objects.size());
  if (request.failed.valid()) {
    const auto failed =
        std::find_if(objects.begin(), objects.end(),
                     [&](const ObjectHandle& object) { return object.id() == request.failed; });
    fetched.failed = static_cast<std::size_t>(std::distance(objects.begin(), failed));
    fetched.values.push_back(std::move(request.values.at(request.failed)));
    return fetched;
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    PinnedBytes& value = request.values.at(objects[i].id());
    // The same object twice: its bytes are copied for all but the last.
    const auto after = objects.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool again = request.values.size() < objects.size() &&
                       std::any_of(after, objects.end(), [&](const ObjectHandle& other) {
                         return other.id() == objects[i].id();
                       });
    fetched.values.push_back(again ? PinnedBytes(Payload::Copy(value.bytes())) : std::move(value));
  }
  return fetched;
}

// The node says at once which are ready; only if these are too few it tells of others.
void WorkerClient::AwaitReady(Request& request, std::span<const ObjectId> ids,
                              const Deadline& deadline) {
  const std::size_t wanted = request.wanted;
  const WatchMessage watch{.request = NewRequest(request, /*with_values=*/false),
                           .timed = IsTimed(deadline),
                           .wanted = wanted};
  Ask(watch, ids, [&](FunctionRef<void()> look) {
    Await(request, Deadline::After(kAnswer));
    std::size_t found = 0;
    {
      const std::lock_guard lock(reading_);
      found = static_cast<std::size_t>(
          std::count(request.ready.begin(), request.ready.end(), std::byte{1}));
      const std::size_t came = found + request.order.size();
      if (request.answered) request.missing = came < wanted ? wanted - came : 0;
    }
    if (found >= wanted) return false;
    if (request.answered) Await(request, deadline, look);
    return true;
  });
  if (request.missing > 0) CheckNotCancelled();
  if (request.answered) return;
  throw DeadlineExceeded("the node does not say which of {} objects are ready", ids.size());
}

std::vector<std::size_t> WorkerClient::Wait(std::span<const ObjectHandle> objects,
                                            std::size_t count, const Deadline& deadline) {
  CheckOpen();
  // Of those before the last that is needed the node is asked about what is not known to be ready.
  std::vector<std::size_t> ready;
  std::vector<std::size_t> asked;
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < objects.size() && ready.size() < count; ++i) {
    if (objects[i].reference()->ready.load(std::memory_order_relaxed)) {
      ready.push_back(i);
    } else {
      asked.push_back(i);
      ids.push_back(objects[i].id());
    }
  }
  if (asked.empty()) return ready;
  Request request{.missing = 1, .wanted = count - ready.size()};
  AwaitReady(request, ids, deadline);
  std::unordered_map<ObjectId, std::size_t, IdHash> ranks;  // Of those that became ready since.
  for (const ObjectId& id : request.order) ranks.emplace(id, ranks.size() + 1);
  const auto rank = [&](std::size_t place) {
    const auto found = ranks.find(objects[place].id());
    return found != ranks.end() ? found->second : 0;
  };
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (request.ready[i] == std::byte{0} && (ranks.empty() || rank(asked[i]) == 0)) continue;
    objects[asked[i]].reference()->ready.store(true, std::memory_order_relaxed);
    ready.push_back(asked[i]);
  }
  std::sort(ready.begin(), ready.end());
  if (ranks.empty()) return ready;
  std::stable_sort(ready.begin(), ready.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return ready;
}

}  // namespace menger
