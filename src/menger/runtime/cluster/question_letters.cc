#include "menger/runtime/cluster/question_letters.h"

#include <algorithm>

#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

std::string TextOfBytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string DecodeQuestionText(std::span<const std::byte> frame) {
  if (frame.size() > kQuestionTextMax) {
    throw InvalidArgument("a question has {} bytes; {} are the most", frame.size(),
                          kQuestionTextMax);
  }
  return TextOfBytes(frame);
}

std::vector<std::byte> Encode(const AnswerLetter& letter) {
  WireWriter writer;
  writer.Add(static_cast<std::uint8_t>(letter.kind));
  if (letter.kind == AnswerLetter::Kind::kRefusal) {
    writer.Add(static_cast<std::uint8_t>(letter.code));
  }
  writer.AddBytes(std::as_bytes(std::span(letter.text)));
  return writer.Take();
}

AnswerLetter DecodeAnswerLetter(std::span<const std::byte> frame) {
  WireReader reader("an answer of a node", frame);
  AnswerLetter letter;
  letter.kind = reader.TakeEnumerator(AnswerLetter::Kind::kRefusal, "kind");
  if (letter.kind == AnswerLetter::Kind::kRefusal) {
    letter.code = reader.TakeEnumerator(ErrorCode::kInternal, "code");
  }
  if (letter.kind != AnswerLetter::Kind::kEnd) letter.text = TextOfBytes(reader.TakeRest());
  reader.Finish();
  return letter;
}

}  // namespace menger
