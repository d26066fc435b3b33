#include <cstdlib>
#include <new>

#include "menger/replay/library/interface.h"

namespace menger {
namespace {

struct LastError {
  std::int32_t code = MENGER_REPLAY_OK;
  std::string text;
};

LastError& Last() {
  thread_local LastError last;
  return last;
}

}  // namespace

std::int32_t NoteError() noexcept {
  try {
    const Error error = TranslateCurrentException();
    Last() = {.code = 1 + static_cast<std::int32_t>(error.code()), .text = error.what()};
  } catch (...) {
    Last().code = 1 + static_cast<std::int32_t>(ErrorCode::kInternal);
  }
  return Last().code;
}

std::int32_t NoteMisuse() noexcept {
  try {
    Last() = {.code = MENGER_REPLAY_MISUSE, .text = "the handle is null: it was closed"};
  } catch (...) {
    Last().code = MENGER_REPLAY_MISUSE;
  }
  return MENGER_REPLAY_MISUSE;
}

char* NewText(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

std::string InfoText(std::span<const TableOptions* const> tables, const ServerInfo& info) {
  return R"({"tables":)" + EncodeTables(tables) + R"(,"server":)" + EncodeServer(info) + "}";
}

}  // namespace menger

const char* menger_replay_error(void) { return menger::Last().text.c_str(); }

std::int32_t menger_replay_error_code(void) { return menger::Last().code; }

void menger_replay_free(char* text) { std::free(text); }
