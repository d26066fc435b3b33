#include "menger/base/error.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "menger/base/edit_distance.h"

namespace menger {

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kFailedPrecondition:
      return "FailedPrecondition";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kDataLoss:
      return "DataLoss";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

ErrorCode CodeFromErrno(int error_number) {
  switch (error_number) {
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      return ErrorCode::kInvalidArgument;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
    case EXDEV:
      return ErrorCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case EPIPE:
    case ECONNREFUSED:
    case ECONNRESET:
    case EADDRINUSE:
      return ErrorCode::kUnavailable;
    case ETIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case ECANCELED:
      return ErrorCode::kCancelled;
    case EIO:
      return ErrorCode::kDataLoss;
    default:
      return ErrorCode::kInternal;
  }
}

Error FromErrno(std::string_view what, int error_number) {
  return Error(CodeFromErrno(error_number),
               fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

Error WithContext(const Error& error, std::string_view context) {
  return Error(error.code(), fmt::format("{}: {}", context, error.what()));
}

bool HasBlock(std::string_view text) {
  return text.find("\nTraceback ") != std::string_view::npos ||
         text.find("\n    ") != std::string_view::npos;
}

std::string WithSentence(std::string_view text, std::string_view sentence) {
  if (sentence.empty()) return std::string(text);
  if (HasBlock(text)) return fmt::format("{}\n{}", text, sentence);
  const bool is_sentence = text.empty() || std::string_view(".!?").find(text.back()) != text.npos;
  return fmt::format("{}{} {}", text, is_sentence ? "" : ".", sentence);
}

Error TranslateCurrentException() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kUnavailable, "out of memory");
  } catch (const std::system_error& error) {
    const auto& category = error.code().category();
    const bool is_errno = category == std::system_category() || category == std::generic_category();
    return Error(is_errno ? CodeFromErrno(error.code().value()) : ErrorCode::kInternal,
                 error.what());
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception that is not a std::exception");
  }
}

// Fewer characters than this at the beginning of a name are no hint of it.
constexpr size_t kBeginningMin = 4;

std::string NearestName(std::string_view wrong, std::span<const std::string> candidates) {
  // More than a third of the characters wrong is another word, not a slip.
  size_t best_distance = std::max<size_t>(2, wrong.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate == wrong) return "";  // The name is not what is wrong.
    const size_t distance = EditDistance(wrong, candidate);
    if (distance < best_distance && distance < std::max(wrong.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || wrong.size() < kBeginningMin) return best;
  for (const std::string& candidate : candidates) {  // Perhaps just the rest is missing.
    if (!candidate.starts_with(wrong)) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view wrong, std::span<const std::string> candidates) {
  const std::string nearest = NearestName(wrong, candidates);
  return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest);
}

}  // namespace menger
