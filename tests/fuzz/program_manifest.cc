// What a node and a driver say about the driver's program: questions, answers, and the manifest in
// one of these. The first byte says which of them the rest is read as.

#include <algorithm>
#include <cstdlib>

#include "fuzz.h"
#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/program_letters.h"
#include "menger/runtime/cluster/program_manifest.h"

namespace menger::fuzz {
namespace {

void Append(Bytes& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

Bytes Kind(int kind, std::span<const std::byte> rest) {
  Bytes bytes = {static_cast<std::byte>(kind)};
  Append(bytes, rest);
  return bytes;
}

// What was read is written as it came.
Bytes ReadAndWrite(int kind, std::span<const std::byte> input) {
  switch (kind) {
    case 0:
      return EncodeManifest(DecodeManifest(input));
    case 1:
      return EncodeQuestion(DecodeQuestion(input));
    default: {
      const ProgramAnswer answer = DecodeAnswer(input);
      Bytes again = EncodeAnswerHead(answer);
      Append(again, answer.bytes);
      return again;
    }
  }
}

ProgramManifest Manifest() {
  ProgramManifest manifest{.version = ThisBuild().version,
                           .variables = {{"COLOUR", "green"}},
                           .folder = "/driver",
                           .folder_is = ProgramManifest::Folder::kShipped};
  manifest.files = {{.path = "/driver/program", .mode = 0755},
                    {.role = ProgramFile::Role::kLibrary, .path = "/l/libx.so", .name = "libx.so"},
                    {.role = ProgramFile::Role::kFolderFile,
                     .path = "/driver/a/b.py",
                     .name = "a/b.py",
                     .mode = 0644,
                     .content = {.bytes = 5, .hash = {.high = 1, .low = 2}}}};
  return manifest;
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const int kind = std::to_integer<int>(input[0]) % 3;
  input = input.subspan(1);
  try {
    if (!std::ranges::equal(ReadAndWrite(kind, input), input)) std::abort();
  } catch (const Error& error) {
    // A manifest of another version is not read any further.
    const bool right = error.code() == ErrorCode::kInvalidArgument ||
                       (kind == 0 && error.code() == ErrorCode::kFailedPrecondition);
    if (!right) std::abort();
  }
}

std::vector<Bytes> Seeds() {
  ProgramManifest script = Manifest();
  script.arguments = {"python3", "-m", "worker"};
  script.files.erase(script.files.begin());
  Bytes part = EncodeAnswerHead({.kind = ProgramAnswer::Kind::kPart, .offset = 7});
  Append(part, EncodeManifest(script));
  return {Kind(0, EncodeManifest(Manifest())),
          Kind(0, EncodeManifest(script)),
          Kind(1, EncodeQuestion({})),
          Kind(1, EncodeQuestion({.kind = ProgramQuestion::Kind::kPart, .offset = 1 << 20})),
          Kind(2, part),
          Kind(2, EncodeAnswerHead({.kind = ProgramAnswer::Kind::kRefusal, .text = "no"}))};
}

}  // namespace menger::fuzz
