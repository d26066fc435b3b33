#include <utility>

#include "menger/runtime/worker_client.h"

// The part of the worker's end that deals with the values it makes: where they are put.
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

}  // namespace menger
