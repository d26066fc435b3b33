#include <algorithm>
#include <thread>
#include <unordered_set>
#include <utility>

#include "menger/runtime/worker_client.h"

// The part of the worker's end that deals with values: where its own are put, and how its calls
// await those of others.
namespace menger {
std::span<std::byte> WorkerClient::Allocate(std::size_t bytes, ObjectValue& value) {
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
        /*ring=*/false);
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
      /*ring=*/true);
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
  if (value.kind != ObjectValue::Kind::kShared) return;
  Send(
      sizeof(ReturnMessage),
      [&](MessageWriter& writer) { writer.Add(ReturnMessage{.extent = value.extent}); },
      /*ring=*/false);
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
      /*ring=*/false);
}

// ---- Waiting.

std::uint64_t WorkerClient::NewRequest(Request& request, bool with_values) {
  const std::lock_guard lock(reading_);
  const std::uint64_t number = 2 * ++next_request_ + (with_values ? 1 : 0);
  requests_.emplace(number, &request);
  return number;
}

// Whoever waits reads for all.
void WorkerClient::Await(Request& request, const Deadline& deadline) {
  for (;;) {
    const std::uint32_t seen = channel_.worker_bell().value();
    {
      const std::lock_guard lock(reading_);
      ReadMessages();
      if (request.missing == 0 || deadline.expired()) return;
    }
    RingNode();
    channel_.worker_bell().TryWaitFor(
        seen + 1, std::min<std::chrono::nanoseconds>(deadline.remaining(), kLookAround));
  }
}

bool WorkerClient::Ask(std::uint64_t number, Request& request,
                       std::span<const ObjectHandle> objects, const Deadline& deadline) {
  // Where others of the actor go on, the node need not know that one waits.
  const bool call = std::this_thread::get_id() == main_ && ThisCall() != nullptr;
  std::vector<ObjectId> ids;
  std::unordered_set<ObjectId, IdHash> known;
  for (const ObjectHandle& handle : objects) {
    if (known.insert(handle.id()).second) ids.push_back(handle.id());
  }
  {
    const std::lock_guard lock(reading_);
    request.missing = std::min(request.missing, ids.size());
  }
  const auto send = [&](ToNode kind) {
    Send(
        MessagePart(sizeof(WatchMessage)) + MessagePart(ids.size() * sizeof(ObjectId)),
        [&](MessageWriter& writer) {
          writer.Add(WatchMessage{.kind = kind,
                                  .objects = static_cast<std::uint32_t>(ids.size()),
                                  .request = number,
                                  .call_waits = call ? 1U : 0U});
          writer.AddBytes(std::as_bytes(std::span(ids)));
        },
        /*ring=*/true);
  };
  send(ToNode::kWatch);
  PassOn();
  Await(request, deadline);
  bool done;
  {
    const std::lock_guard lock(reading_);
    requests_.erase(number);
    done = request.missing == 0;
  }
  if (request.values.size() < ids.size()) send(ToNode::kUnwatch);
  if (call) {
    Send(
        sizeof(ReferenceMessage),
        [](MessageWriter& writer) { writer.Add(ReferenceMessage{.kind = ToNode::kUnblock}); },
        /*ring=*/false);
  }
  return done;
}

std::vector<Fetched> WorkerClient::Get(std::span<const ObjectHandle> objects,
                                       const Deadline& deadline) {
  Request request{.missing = objects.size()};
  if (!Ask(NewRequest(request, true), request, objects, deadline)) {
    throw DeadlineExceeded("{} of {} objects were not ready in time", request.missing,
                           objects.size());
  }
  std::vector<Fetched> values;
  values.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Fetched& value = request.values.at(objects[i].id());
    // The same object twice: its bytes are copied for all but the last.
    const auto after = objects.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool again = request.values.size() < objects.size() &&
                       std::any_of(after, objects.end(), [&](const ObjectHandle& other) {
                         return other.id() == objects[i].id();
                       });
    if (again) {
      values.push_back({value.failed, PinnedBytes(Payload::Copy(value.value.bytes()))});
    } else {
      values.push_back(std::move(value));
    }
  }
  return values;
}

std::vector<std::size_t> WorkerClient::Wait(std::span<const ObjectHandle> objects,
                                            std::size_t count, const Deadline& deadline) {
  Request request{.missing = count};
  Ask(NewRequest(request, false), request, objects, deadline);
  std::unordered_multimap<ObjectId, std::size_t, IdHash> places;
  for (std::size_t i = 0; i < objects.size(); ++i) places.emplace(objects[i].id(), i);
  std::vector<std::size_t> ready;
  for (const ObjectId& id : request.order) {
    const auto [begin, end] = places.equal_range(id);
    for (auto place = begin; place != end; ++place) ready.push_back(place->second);
  }
  return ready;
}

}  // namespace menger
