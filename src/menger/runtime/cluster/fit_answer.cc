#include "menger/runtime/cluster/fit_answer.h"

#include <string>
#include <string_view>
#include <utility>

namespace menger {
namespace {

// Of an answer, but for its results or records and the last key of a page.
constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kErrorTextMax = 200;
constexpr std::size_t kShortResult = 256;  // One with such a text has no more.
static_assert(kShortResult < kStoreResultRoom);

Error Cut(const Error& error) {
  return {error.code(), std::string(std::string_view(error.what()).substr(0, kErrorTextMax))};
}

void Shorten(StoreResult& result, std::size_t bytes_max) {
  if (result.error) {
    result.error.emplace(Cut(*result.error));
  } else {
    result.error.emplace(InvalidArgument(
        "a value of {} bytes does not fit into an answer with the others of its batch; an answer "
        "has at most {} bytes",
        result.record.value.size(), bytes_max));
  }
  result.outcome = StoreResult::Outcome::kFailed;
  result.record = {};
}

void FitResults(std::vector<StoreResult>& results, std::size_t bytes_max) {
  std::size_t used = kHeadBytes + results.size() * kShortResult;
  for (StoreResult& result : results) {
    // It has the room of a short one already.
    const std::size_t bytes = EncodedBytes(result);
    if (bytes <= kShortResult) continue;
    if (used + bytes - kShortResult > bytes_max) {
      Shorten(result, bytes_max);
    } else {
      used += bytes - kShortResult;
    }
  }
}

void FitPage(StorePage& page, std::size_t bytes_max) {
  if (page.error) page.error.emplace(Cut(*page.error));
  std::size_t used = kHeadBytes + kErrorTextMax + kStoreKeyBytesMax;
  std::size_t fitting = 0;
  for (const StoreRecord& record : page.records) {
    used += EncodedBytes(record);
    if (used > bytes_max) break;
    ++fitting;
  }
  if (fitting == page.records.size()) return;
  if (fitting == 0) {
    const StoreRecord& first = page.records.front();
    page = {.error = InvalidArgument("a record with a value of {} bytes does not fit into a page; "
                                     "an answer has at most {} bytes",
                                     first.value.size(), bytes_max)};
    return;
  }
  page.records.resize(fitting);
  page.next = page.records.back().key;
}

}  // namespace

void FitAnswer(StoreAnswer& answer, std::size_t bytes_max) {
  FitResults(answer.results, bytes_max);
  FitPage(answer.page, bytes_max);
}

}  // namespace menger
