#include "menger/runtime/net/peer_codec.h"

#include "menger/base/error.h"

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
  failure.kind = reader.TakeEnumerator(FailureKind::kOutOfMemory, "cause.kind");
  failure.code = reader.TakeEnumerator(ErrorCode::kInternal, "cause.code");
  failure.final = reader.TakeFlag("cause.final");
  failure.type = reader.TakeText("cause.type");
  failure.text = reader.TakeText("cause.text");
  failure.task = reader.TakeText("cause.task");
  failure.worker = reader.TakeText("cause.worker");
  failure.value = reader.TakeText("cause.value");
  return failure;
}

}  // namespace

void WriteLetter(WireWriter& writer, const PeerMessage& message) {
  // Names all fields, so that one more does not compile until it travels, too.
  const auto& [kind, clean, count, loan, kept, source, source_epoch, source_name, bytes, scheduling,
               text, cause, begun] = message;
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
}

void ReadLetter(WireReader& reader, PeerMessage& message) {
  message.kind = reader.TakeEnumerator(PeerMessage::Kind::kRelease, "kind");
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
