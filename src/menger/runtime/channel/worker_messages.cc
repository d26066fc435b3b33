#include "menger/runtime/channel/worker_messages.h"

#include <algorithm>

#include "menger/runtime/channel/worker_channel.h"

namespace menger {

std::span<const std::byte> MessageReader::TakeBytes(std::uint64_t bytes) {
  if (bytes > bytes_.size()) {
    throw DataLoss("a message has {} bytes left where {} are needed", bytes_.size(), bytes);
  }
  const std::span<const std::byte> taken = bytes_.first(static_cast<std::size_t>(bytes));
  bytes_ = bytes_.subspan(std::min(MessagePart(taken.size()), bytes_.size()));
  return taken;
}

std::vector<ObjectId> MessageReader::TakeIds(std::uint64_t count) {
  if (count > bytes_.size() / sizeof(ObjectId)) {
    throw DataLoss("a message names {} objects in {} bytes", count, bytes_.size());
  }
  std::vector<ObjectId> ids(static_cast<std::size_t>(count));
  const std::span<const std::byte> bytes = TakeBytes(count * sizeof(ObjectId));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

ValueHeader HeaderOf(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) {
    return {value.kind, value.extent.segment, value.extent.offset, value.extent.bytes};
  }
  if (value.kind == ObjectValue::Kind::kRemote) {
    return {.kind = value.kind, .offset = value.kept, .bytes = value.extent.bytes};
  }
  return {.kind = value.kind, .bytes = value.payload.size()};
}

std::size_t ResultBytes(const ObjectValue& value, std::size_t contained) {
  return MessagePart(sizeof(ResultMessage)) + MessagePart(contained * sizeof(ObjectId)) +
         MessagePart(TailBytes(HeaderOf(value)));
}

void WriteResult(MessageWriter& writer, const ObjectValue& value,
                 std::span<const ObjectId> contained) {
  writer.Add(ResultMessage{HeaderOf(value), contained.size()});
  writer.AddBytes(std::as_bytes(contained));
  writer.AddBytes(value.payload.bytes());
}

ObjectValue ReadResult(MessageReader& reader, std::vector<ObjectId>& contained) {
  const auto message = reader.Take<ResultMessage>();
  contained = reader.TakeIds(message.contained);
  const ValueHeader& value = message.value;
  switch (value.kind) {
    case ObjectValue::Kind::kInline:
      return ObjectValue::Inline(Payload::Copy(reader.TakeBytes(value.bytes)));
    case ObjectValue::Kind::kShared:
      return ObjectValue::Shared({value.segment, value.offset, value.bytes});
    case ObjectValue::Kind::kRemote:
      return ObjectValue::Remote(0, value.offset, value.bytes);
    default:
      throw DataLoss("a result of kind {}", static_cast<int>(value.kind));
  }
}

std::size_t CallBytes(const TaskSpec& spec, std::span<const ObjectValue* const> values,
                      std::span<const std::byte> records) {
  std::size_t bytes = MessagePart(sizeof(CallMessage)) +
                      MessagePart(values.size() * sizeof(ValueHeader)) +
                      MessagePart(spec.bytes().size()) + MessagePart(records.size());
  for (const ObjectValue* const value : values) {
    if (value != nullptr) bytes += MessagePart(TailBytes(HeaderOf(*value)));
  }
  return bytes;
}

bool FitsMessage(const TaskSpec& spec) {
  const std::vector<const ObjectValue*> none(spec.arguments().size());
  // What a run was told goes along, too.
  return CallBytes(spec, none, {}) + 2 * kInlineBytesMax <= WorkerChannel::kMessageBytesMax;
}

void WriteCall(std::span<std::byte> out, CallMessage head, const TaskSpec& spec,
               std::span<const ObjectValue* const> values, std::span<const std::byte> records) {
  head.references = static_cast<std::uint32_t>(values.size());
  head.spec_bytes = static_cast<std::uint32_t>(spec.bytes().size());
  head.record_bytes = static_cast<std::uint32_t>(records.size());
  MessageWriter writer(out);
  writer.Add(head);
  std::vector<ValueHeader> headers;
  headers.reserve(values.size());
  for (const ObjectValue* const value : values) {
    headers.push_back(value != nullptr ? HeaderOf(*value) : ValueHeader());
  }
  writer.AddBytes(std::as_bytes(std::span(headers)));
  writer.AddBytes(spec.bytes());
  writer.AddBytes(records);
  for (const ObjectValue* const value : values) {
    if (value != nullptr && TailBytes(HeaderOf(*value)) > 0) {
      writer.AddBytes(value->payload.bytes());
    }
  }
}

}  // namespace menger
