#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/control/control_store.h"

namespace menger {

// What the clients of a control store that is another process's and its server tell each other, as
// bytes: each message is one frame of a stream of lane kStore.
//
// What is read may have been written by anybody: each length, flag and enumerator is checked, and
// InvalidArgument says which is wrong. What decodes is the same bytes again when it is encoded.

// From a client. Which of the fields count says the kind.
struct StoreRequest {
  enum class Kind : std::uint8_t { kSubmit, kScan, kWatch, kUnwatch };
  std::uint64_t number = 0;  // Another for each, but kUnwatch has that of its kWatch.
  Kind kind = Kind::kSubmit;
  std::chrono::nanoseconds remaining{0};  // kSubmit, kScan: until the deadline.
  std::vector<StoreOperation> batch;      // kSubmit, and the others are the other kinds'.
  StoreTable table = StoreTable::kNodes;
  std::string prefix;
  std::string after;  // kScan, as
  int limit = 1;      // this; from 1 on.
};

// To a client.
struct StoreAnswer {
  enum class Kind : std::uint8_t { kResults, kPage, kHint, kNoWatch };
  std::uint64_t number = 0;  // Of the request. A watch has any number of hints, the first at once.
  Kind kind = Kind::kResults;
  std::vector<StoreResult> results;
  StorePage page;
  std::optional<Error> error;  // kNoWatch: why; there will be no hints.
};

// A batch has no more operations, so that a frame of the usual length has room for what became of
// each (kStoreResultRoom).
inline constexpr std::size_t kStoreBatchMax = 16'384;

// Negative times are written as 0, and more than 146 years as that.
std::vector<std::byte> EncodeStoreRequest(const StoreRequest& request);
std::vector<std::byte> EncodeStoreAnswer(const StoreAnswer& answer);
StoreRequest DecodeStoreRequest(std::span<const std::byte> bytes);
StoreAnswer DecodeStoreAnswer(std::span<const std::byte> bytes);

// How many bytes each will have, without making them.
std::size_t EncodedBytes(const StoreRequest& request);
std::size_t EncodedBytes(const StoreResult& result);
std::size_t EncodedBytes(const StoreRecord& record);

}  // namespace menger
