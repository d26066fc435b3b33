// What the clients of a control store and its server say to each other. The first byte of the input
// says who has said the rest.

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/store_codec.h"

namespace menger::fuzz {
namespace {

constexpr std::byte kClient{0};

Bytes Said(std::byte by, const Bytes& message) {
  Bytes bytes(1 + message.size(), by);
  std::ranges::copy(message, bytes.begin() + 1);
  return bytes;
}
Bytes ByClient(const StoreRequest& request) { return Said(kClient, EncodeStoreRequest(request)); }
Bytes ByServer(const StoreAnswer& answer) { return Said(std::byte{1}, EncodeStoreAnswer(answer)); }

// What is read as a message, written again; none if it is refused.
std::optional<Bytes> ReadAndWrite(std::byte by, std::span<const std::byte> message) {
  try {
    if (by == kClient) {
      const StoreRequest request = DecodeStoreRequest(message);
      if (EncodedBytes(request) != message.size()) std::abort();
      return EncodeStoreRequest(request);
    }
    return EncodeStoreAnswer(DecodeStoreAnswer(message));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
    return std::nullopt;
  }
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const std::span<const std::byte> message = input.subspan(1);
  const std::optional<Bytes> again = ReadAndWrite(input[0], message);
  if (again && !std::ranges::equal(*again, message)) std::abort();
}

std::vector<Bytes> Seeds() {
  const StoreTable table = StoreTable::kActors;
  const StoreRecord record{.key = "a/1", .value = "value", .version = 3, .lease = 4};
  return {
      ByClient({.number = 1,
                .remaining = std::chrono::seconds(5),
                .batch = {StoreOperation::PutIf(table, "a/1", 7, "value").BoundTo(4),
                          StoreOperation::Get(table, "a/2"),
                          StoreOperation::Acquire("node", std::chrono::seconds(10))}}),
      ByClient({.number = 2,
                .kind = StoreRequest::Kind::kScan,
                .table = table,
                .prefix = "a/",
                .after = "a/1",
                .limit = 256}),
      ByClient({.number = 3, .kind = StoreRequest::Kind::kWatch, .table = table, .prefix = "a/"}),
      ByClient({.number = 3, .kind = StoreRequest::Kind::kUnwatch}),
      ByServer({.number = 1,
                .results = {{.record = record},
                            {.outcome = StoreResult::Outcome::kConflict},
                            {.outcome = StoreResult::Outcome::kFailed,
                             .error = Unavailable("the store is full")}}}),
      ByServer({.number = 2,
                .kind = StoreAnswer::Kind::kPage,
                .page = {.records = {record, record}, .next = "a/1", .newest = 9}}),
      ByServer({.number = 3, .kind = StoreAnswer::Kind::kHint}),
      ByServer({.number = 3,
                .kind = StoreAnswer::Kind::kNoWatch,
                .error = Unavailable("too many watches")})};
}

}  // namespace menger::fuzz
