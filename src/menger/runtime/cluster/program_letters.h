#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/cluster/content_hash.h"

namespace menger {

// What is said on the lane kFiles, a frame each: the node asks, the driver answers each question in
// turn. Both are read as if anybody had written them: InvalidArgument for what is none.

// The longest part of a file that one answer has. All are this long but the last.
inline constexpr std::uint64_t kProgramPartBytes = std::uint64_t{1} << 20;

// So many questions may wait for their answers.
inline constexpr std::size_t kProgramQuestionsMax = 4;

// What a node asks a driver.
struct ProgramQuestion {
  enum class Kind : std::uint8_t {
    kManifest,
    kPart,  // Of the file of that content, the part that begins at `offset`.
  };
  Kind kind = Kind::kManifest;
  ContentHash file;
  std::uint64_t offset = 0;
};

// What the driver gives it.
struct ProgramAnswer {
  enum class Kind : std::uint8_t {
    kManifest,
    kPart,
    kRefusal,  // By `code` and `text`.
  };
  Kind kind = Kind::kManifest;
  ContentHash file;          // kPart: as it was asked for.
  std::uint64_t offset = 0;  // Likewise.
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
  std::vector<std::byte> bytes;  // The encoded manifest, or the part.
};

std::vector<std::byte> EncodeQuestion(const ProgramQuestion& question);
ProgramQuestion DecodeQuestion(std::span<const std::byte> frame);

// All but `bytes`, which follow in the same frame.
std::vector<std::byte> EncodeAnswerHead(const ProgramAnswer& answer);
ProgramAnswer DecodeAnswer(std::span<const std::byte> frame);

}  // namespace menger
