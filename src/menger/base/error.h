#pragma once

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace menger {

// What the caller can do about an error; see the factory of each code below.
enum class ErrorCode {
  kInvalidArgument,
  kNotFound,
  kFailedPrecondition,
  kUnavailable,
  kDeadlineExceeded,
  kCancelled,
  kDataLoss,
  kInternal,
};

const char* ErrorCodeName(ErrorCode code);  // "InvalidArgument", ...

// The one exception type of this code base. Its text names the thing, the value, and what would be
// right; its code says what the caller can do. It is translated once at each edge (thread, process,
// RPC, command line) by `TranslateCurrentException`.
//
// Copies share the text, also across threads. (Those of std::runtime_error do, too, but count their
// readers inside the standard library, where ThreadSanitizer cannot see that they agree.)
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string text)  // NOLINT(performance-unnecessary-value-param): moved.
      : code_(code), text_(std::make_shared<const std::string>(std::move(text))) {}
  Error(const Error&) = default;  // And no moves: what was moved from would have no text.
  Error& operator=(const Error&) = default;
  ~Error() override = default;

  ErrorCode code() const { return code_; }
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  ErrorCode code_;
  std::shared_ptr<const std::string> text_;
};

// The argument is wrong whatever the state of the world: fix the call or the configuration.
template <typename... Arguments>
Error InvalidArgument(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format(format, std::forward<Arguments>(arguments)...));
}

// What was asked for does not exist.
template <typename... Arguments>
Error NotFound(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kNotFound, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The call is right but not now or not here: change the state first (permissions, order of calls,
// another checkpoint).
template <typename... Arguments>
Error FailedPrecondition(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kFailedPrecondition,
               fmt::format(format, std::forward<Arguments>(arguments)...));
}

// A resource is missing for the moment (memory, disk space, a peer): the same call may succeed
// later.
template <typename... Arguments>
Error Unavailable(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kUnavailable, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The time allowed for a wait has passed; nothing is known to be broken.
template <typename... Arguments>
Error DeadlineExceeded(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kDeadlineExceeded,
               fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Somebody asked for the work to stop.
template <typename... Arguments>
Error Cancelled(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kCancelled, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Stored data is truncated, altered or missing in part: only another copy helps.
template <typename... Arguments>
Error DataLoss(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kDataLoss, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// A promise of this code base is broken: report it.
template <typename... Arguments>
Error Internal(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(ErrorCode::kInternal, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The code that says what a caller can do about a failed system call; for example ENOSPC is
// Unavailable, EACCES is FailedPrecondition, ENOENT is NotFound.
ErrorCode CodeFromErrno(int error_number);

// "<what>: <the system's words for error_number>", for example FromErrno("cannot open 'a'", errno).
Error FromErrno(std::string_view what, int error_number);

// The same code, with "<context>: " put before the text.
Error WithContext(const Error& error, std::string_view context);

// Whether a text has lines that only people read: a traceback, what a process printed.
bool HasBlock(std::string_view text);

// `text`, then a further sentence: behind a full stop, or on a line of its own where the text has a
// block, which it would run into.
std::string WithSentence(std::string_view text, std::string_view sentence);

// For the edges: call it in a catch block. Error stays as it is; bad_alloc becomes Unavailable;
// system_error follows its errno; every other exception becomes Internal with its text.
Error TranslateCurrentException();

// The candidate with the smallest edit distance to `wrong`, else the shortest that begins with it,
// or "" if none is near enough to be what was meant.
std::string NearestName(std::string_view wrong, std::span<const std::string> candidates);

// " (did you mean 'x'?)" if a candidate is near, else "": the tail of an error about an unknown
// name.
std::string DidYouMean(std::string_view wrong, std::span<const std::string> candidates);

}  // namespace menger
