#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"

namespace menger {

// What is said on the lane kQuestions, a frame each. Who has connected asks once, by a text as
// LocalNode::Answer takes it; the answer is pieces of a text and their end, or a refusal. Both are
// read as if anybody had written them: InvalidArgument for what is none.

inline constexpr std::size_t kQuestionTextMax = 256;
inline constexpr std::size_t kAnswerPieceMax = std::size_t{256} << 10;

struct AnswerLetter {
  enum class Kind : std::uint8_t { kPiece, kEnd, kRefusal };
  Kind kind = Kind::kEnd;
  ErrorCode code = ErrorCode::kInternal;  // kRefusal: by it and the text.
  std::string text;                       // kPiece, kRefusal.
};

std::string DecodeQuestionText(std::span<const std::byte> frame);
std::vector<std::byte> Encode(const AnswerLetter& letter);
AnswerLetter DecodeAnswerLetter(std::span<const std::byte> frame);

}  // namespace menger
