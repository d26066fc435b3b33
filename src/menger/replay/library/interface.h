#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/client/served_rows.h"
#include "menger/replay/library/menger_replay.h"

// What the handles of the C interface stand for, and what its sources share.

struct menger_replay_client {
  std::shared_ptr<menger::ServedReplay> replay;
};

struct menger_replay_writer {
  std::shared_ptr<menger::ServedReplay> replay;  // Goes after what it has made.
  std::unique_ptr<menger::ServedRows> rows;
};

namespace menger {

// Notes the exception that is being handled for menger_replay_error; its number.
std::int32_t NoteError() noexcept;
std::int32_t NoteMisuse() noexcept;

// Calls `work` with what the handle stands for.
template <typename Handle, typename Work>
std::int32_t With(Handle* handle, Work work) noexcept {
  if (handle == nullptr) return NoteMisuse();
  try {
    work(*handle);
    return MENGER_REPLAY_OK;
  } catch (...) {
    return NoteError();
  }
}

// What `make` makes, or null.
template <typename Make>
auto Made(Make make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (...) {
    NoteError();
    return nullptr;
  }
}

inline void CheckNotNull(const void* pointer, const char* what) {
  if (pointer == nullptr) throw InvalidArgument("{} is null", what);
}

inline Deadline Within(std::int64_t nanoseconds) {
  return Deadline::After(std::chrono::nanoseconds(std::max<std::int64_t>(nanoseconds, 0)));
}

char* NewText(std::string_view text);  // For menger_replay_free.

// {"tables": ..., "server": ...}
std::string InfoText(std::span<const TableOptions* const> tables, const ServerInfo& info);

}  // namespace menger
