#include "menger/runtime/cluster/program_letters.h"

#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

void AddPlace(WireWriter& writer, const ContentHash& file, std::uint64_t offset) {
  writer.Add(file.high);
  writer.Add(file.low);
  writer.Add(offset);
}

void TakePlace(WireReader& reader, ContentHash& file, std::uint64_t& offset) {
  file.high = reader.Take<std::uint64_t>("file");
  file.low = reader.Take<std::uint64_t>("file");
  offset = reader.Take<std::uint64_t>("offset");
}

}  // namespace

std::vector<std::byte> EncodeQuestion(const ProgramQuestion& question) {
  WireWriter writer;
  writer.Add(static_cast<std::uint8_t>(question.kind));
  if (question.kind == ProgramQuestion::Kind::kPart) {
    AddPlace(writer, question.file, question.offset);
  }
  return writer.Take();
}

ProgramQuestion DecodeQuestion(std::span<const std::byte> frame) {
  WireReader reader("a question about a program", frame);
  ProgramQuestion question;
  question.kind = reader.TakeEnumerator(ProgramQuestion::Kind::kPart, "kind");
  if (question.kind == ProgramQuestion::Kind::kPart) {
    TakePlace(reader, question.file, question.offset);
  }
  reader.Finish();
  return question;
}

std::vector<std::byte> EncodeAnswerHead(const ProgramAnswer& answer) {
  WireWriter writer;
  writer.Add(static_cast<std::uint8_t>(answer.kind));
  switch (answer.kind) {
    case ProgramAnswer::Kind::kManifest:
      break;
    case ProgramAnswer::Kind::kPart:
      AddPlace(writer, answer.file, answer.offset);
      break;
    case ProgramAnswer::Kind::kRefusal:
      writer.Add(static_cast<std::uint8_t>(answer.code));
      writer.AddText(answer.text);
  }
  return writer.Take();
}

ProgramAnswer DecodeAnswer(std::span<const std::byte> frame) {
  WireReader reader("an answer about a program", frame);
  ProgramAnswer answer;
  answer.kind = reader.TakeEnumerator(ProgramAnswer::Kind::kRefusal, "kind");
  switch (answer.kind) {
    case ProgramAnswer::Kind::kManifest:
      break;
    case ProgramAnswer::Kind::kPart:
      TakePlace(reader, answer.file, answer.offset);
      break;
    case ProgramAnswer::Kind::kRefusal:
      answer.code = reader.TakeEnumerator(ErrorCode::kInternal, "code");
      answer.text = reader.TakeText("text");
      reader.Finish();
      return answer;
  }
  const std::span<const std::byte> rest = reader.TakeRest();
  answer.bytes.assign(rest.begin(), rest.end());
  return answer;
}

}  // namespace menger
