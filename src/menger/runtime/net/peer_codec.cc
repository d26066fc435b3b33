#include "menger/runtime/net/peer_codec.h"

#include "menger/base/error.h"
#include "menger/runtime/calls/task_spec.h"

namespace menger {
namespace {

void WriteFailure(WireWriter& writer, const TaskFailure& failure) {
  const auto& [kind, code, type, text, task, worker, value, final] = failure;
  writer.Add(static_cast<std::uint8_t>(kind));
  writer.Add(static_cast<std::uint8_t>(code));
  writer.AddFlag(final);
  for (const std::string* each : {&type, &text, &task, &worker, &value}) writer.AddText(*each);
}

TaskFailure ReadFailure(WireReader& reader) {
  TaskFailure failure;
  failure.kind = reader.TakeEnumerator(FailureKind::kOwnerDied, "cause.kind");
  failure.code = reader.TakeEnumerator(ErrorCode::kInternal, "cause.code");
  failure.final = reader.TakeFlag("cause.final");
  failure.type = reader.TakeText("cause.type");
  failure.text = reader.TakeText("cause.text");
  failure.task = reader.TakeText("cause.task");
  failure.worker = reader.TakeText("cause.worker");
  failure.value = reader.TakeText("cause.value");
  return failure;
}

void WritePayload(WireWriter& writer, const Payload& payload) {
  writer.Add(static_cast<std::uint32_t>(payload.size()));
  writer.AddBytes(payload.bytes());
}

Payload ReadPayload(WireReader& reader, const char* name) {
  const std::size_t bytes = reader.TakeCount(1, name);
  return bytes > 0 ? Payload::Copy(reader.TakeBytes(bytes, name)) : Payload();
}

void ValidateCall(const Payload& call) {
  try {
    TaskSpec::Validate(call.bytes());
  } catch (const Error& error) {
    throw InvalidArgument("a message of a peer has a call that is none: {}", error.what());
  }
}

// Of a value that a node tells of: it is small and travels, or is only said to be there.
void WriteValue(WireWriter& writer, const ObjectValue& value) {
  writer.Add(static_cast<std::uint8_t>(value.kind));
  writer.Add(value.extent.bytes);
  WritePayload(writer, value.payload);
}

ObjectValue ReadValue(WireReader& reader) {
  ObjectValue value;
  value.kind = reader.TakeEnumerator(ObjectValue::Kind::kError, "value.kind");
  if (value.kind == ObjectValue::Kind::kShared || value.kind == ObjectValue::Kind::kSpilled) {
    throw InvalidArgument("a message of a peer has a value of kind {}, which lies in memory here",
                          static_cast<int>(value.kind));
  }
  value.extent.bytes = reader.Take<std::uint64_t>("value.bytes");
  value.payload = ReadPayload(reader, "value.payload");
  return value;
}

void WriteReferences(WireWriter& writer, const std::vector<ForeignName>& references) {
  writer.Add(static_cast<std::uint32_t>(references.size()));
  for (const auto& [object, node, epoch] : references) {
    writer.Add(object);
    writer.Add(node);
    writer.Add(epoch);
  }
}

std::vector<ForeignName> ReadReferences(WireReader& reader) {
  constexpr std::size_t kBytes = 2 * sizeof(Id) + sizeof(std::uint64_t);
  std::vector<ForeignName> references(reader.TakeCount(kBytes, "references"));
  for (ForeignName& name : references) {
    static_cast<Id&>(name.object) = reader.TakeId("references.object");
    static_cast<Id&>(name.node) = reader.TakeId("references.node");
    name.epoch = reader.Take<std::uint64_t>("references.epoch");
  }
  return references;
}

}  // namespace

void WriteLetter(WireWriter& writer, const PeerMessage& message) {
  // Names all fields, so that one more does not compile until it travels, too.
  const auto& [kind, clean, count, loan, kept, source, source_epoch, source_name, bytes, scheduling,
               text, cause, begun, object, value, references, call] = message;
  writer.Add(static_cast<std::uint8_t>(kind));
  writer.AddFlag(clean);
  writer.Add(count);
  writer.Add(loan);
  writer.Add(kept);
  writer.Add(source);
  writer.Add(source_epoch);
  writer.Add(source_name);
  writer.Add(bytes);
  writer.AddText(scheduling);
  writer.AddText(text);
  WriteFailure(writer, cause);
  writer.Add(static_cast<std::uint32_t>(begun.size()));
  for (const LeaseNumber lease : begun) writer.Add(lease);
  writer.Add(object);
  WriteValue(writer, value);
  WriteReferences(writer, references);
  WritePayload(writer, call);
}

void ReadLetter(WireReader& reader, PeerMessage& message) {
  message.kind = reader.TakeEnumerator(PeerMessage::Kind::kSharers, "kind");
  message.clean = reader.TakeFlag("clean");
  message.count = reader.Take<std::uint32_t>("count");
  message.loan = reader.Take<std::uint64_t>("loan");
  message.kept = reader.Take<std::uint64_t>("kept");
  static_cast<Id&>(message.source) = reader.TakeId("source");
  message.source_epoch = reader.Take<std::uint64_t>("source_epoch");
  message.source_name = reader.Take<std::uint64_t>("source_name");
  message.bytes = reader.Take<std::uint64_t>("bytes");
  message.scheduling = reader.TakeText("scheduling");
  message.text = reader.TakeText("text");
  message.cause = ReadFailure(reader);
  message.begun.resize(reader.TakeCount(sizeof(LeaseNumber), "begun"));
  for (LeaseNumber& lease : message.begun) lease = reader.Take<std::uint64_t>("begun");
  static_cast<Id&>(message.object) = reader.TakeId("object");
  message.value = ReadValue(reader);
  message.references = ReadReferences(reader);
  message.call = ReadPayload(reader, "call");
  if (message.kind == PeerMessage::Kind::kCall) ValidateCall(message.call);
}

std::vector<std::byte> EncodePeerMessage(const PeerMessage& message) {
  WireWriter writer;
  WriteLetter(writer, message);
  return writer.Take();
}

PeerMessage DecodePeerMessage(std::span<const std::byte> bytes) {
  WireReader reader("a message of a peer", bytes);
  PeerMessage message;
  ReadLetter(reader, message);
  reader.Finish();
  return message;
}

}  // namespace menger
