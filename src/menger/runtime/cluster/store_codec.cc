#include "menger/runtime/cluster/store_codec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

using Outcome = StoreResult::Outcome;

// Added to any time of this machine, it is still one.
constexpr std::uint64_t kLongestTime = std::uint64_t{1} << 62;

constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);
constexpr std::size_t kTextBytes = sizeof(std::uint32_t);  // Of an empty one.
constexpr std::size_t kHeadBytes = kNumberBytes + 1;       // Number and kind.
// Of each with empty texts and nothing that may be missing.
constexpr std::size_t kOperationBytesLeast = 2 + 2 * kTextBytes + 1 + 2 * kNumberBytes;
constexpr std::size_t kRecordBytesLeast = 2 * kTextBytes + 2 * kNumberBytes + 1;
constexpr std::size_t kResultBytesLeast = 1 + kRecordBytesLeast;

void WriteTime(WireWriter& writer, std::chrono::nanoseconds time) {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
  writer.Add(std::min(count, kLongestTime));
}

std::chrono::nanoseconds ReadTime(WireReader& reader, const char* name) {
  const auto count = reader.Take<std::uint64_t>(name);
  if (count > kLongestTime) {
    throw InvalidArgument("a message of a control store has {} ns as '{}'; it must be at most {}",
                          count, name, kLongestTime);
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
}

void WriteTable(WireWriter& writer, StoreTable table) {
  writer.Add(static_cast<std::uint8_t>(table));
}

StoreTable ReadTable(WireReader& reader) {
  constexpr auto kGap = static_cast<StoreTable>(5);
  const StoreTable table = reader.TakeEnumerator(StoreTable::kEvents, "table");
  if (table == kGap) throw InvalidArgument("a message of a control store has 5 as 'table'");
  return table;
}

void WriteError(WireWriter& writer, const Error& error) {
  writer.Add(static_cast<std::uint8_t>(error.code()));
  writer.AddText(error.what());
}

Error ReadError(WireReader& reader) {
  const ErrorCode code = reader.TakeEnumerator(ErrorCode::kInternal, "error.code");
  std::string text = reader.TakeText("error.text");
  // What stands behind it would not be shown, nor written again.
  if (text.find('\0') != std::string::npos) {
    throw InvalidArgument("a message of a control store has a zero byte in 'error.text'");
  }
  return {code, std::move(text)};
}

std::size_t ErrorBytes(const Error& error) {
  return 1 + kTextBytes + std::string_view(error.what()).size();
}

void WriteOperation(WireWriter& writer, const StoreOperation& operation) {
  // Names all fields, so that one more does not compile until it travels, too.
  const auto& [kind, table, key, value, expected, lease, duration] = operation;
  writer.Add(static_cast<std::uint8_t>(kind));
  WriteTable(writer, table);
  writer.AddText(key);
  writer.AddText(value);
  writer.AddFlag(expected.has_value());
  if (expected) writer.Add(*expected);
  writer.Add(lease);
  WriteTime(writer, duration);
}

StoreOperation ReadOperation(WireReader& reader) {
  StoreOperation operation;
  operation.kind = reader.TakeEnumerator(StoreOperation::Kind::kRenew, "operation.kind");
  operation.table = ReadTable(reader);
  operation.key = reader.TakeText("operation.key");
  operation.value = reader.TakeText("operation.value");
  if (reader.TakeFlag("operation.expects")) {
    operation.expected = reader.Take<StoreVersion>("operation.expected");
  }
  operation.lease = reader.Take<LeaseEpoch>("operation.lease");
  operation.duration = ReadTime(reader, "operation.duration");
  return operation;
}

void WriteRecord(WireWriter& writer, const StoreRecord& record) {
  const auto& [key, value, version, lease, expired] = record;
  writer.AddText(key);
  writer.AddText(value);
  writer.Add(version);
  writer.Add(lease);
  writer.AddFlag(expired);
}

StoreRecord ReadRecord(WireReader& reader) {
  StoreRecord record;
  record.key = reader.TakeText("record.key");
  record.value = reader.TakeText("record.value");
  record.version = reader.Take<StoreVersion>("record.version");
  record.lease = reader.Take<LeaseEpoch>("record.lease");
  record.expired = reader.TakeFlag("record.expired");
  return record;
}

// Those that have failed have an error, and only those.
void WriteResult(WireWriter& writer, const StoreResult& result) {
  const auto& [outcome, record, error] = result;
  if (error.has_value() != (outcome == Outcome::kFailed)) {
    throw Internal("a result of a control store {} an error", error ? "has" : "lacks");
  }
  writer.Add(static_cast<std::uint8_t>(outcome));
  WriteRecord(writer, record);
  if (error) WriteError(writer, *error);
}

StoreResult ReadResult(WireReader& reader) {
  StoreResult result;
  result.outcome = reader.TakeEnumerator(Outcome::kFailed, "result.outcome");
  result.record = ReadRecord(reader);
  if (result.outcome == Outcome::kFailed) result.error.emplace(ReadError(reader));
  return result;
}

void WritePage(WireWriter& writer, const StorePage& page) {
  const auto& [records, next, newest, error] = page;
  writer.Add(static_cast<std::uint32_t>(records.size()));
  for (const StoreRecord& record : records) WriteRecord(writer, record);
  writer.AddText(next);
  writer.Add(newest);
  writer.AddFlag(error.has_value());
  if (error) WriteError(writer, *error);
}

StorePage ReadPage(WireReader& reader) {
  StorePage page;
  for (std::size_t count = reader.TakeCount(kRecordBytesLeast, "page.records"); count > 0;
       --count) {
    page.records.push_back(ReadRecord(reader));
  }
  page.next = reader.TakeText("page.next");
  page.newest = reader.Take<StoreVersion>("page.newest");
  if (reader.TakeFlag("page.failed")) page.error.emplace(ReadError(reader));
  return page;
}

// As TakeCount, and no more than a batch may have.
std::size_t TakeBatchCount(WireReader& reader, std::size_t element_bytes, const char* name) {
  const std::size_t count = reader.TakeCount(element_bytes, name);
  if (count > kStoreBatchMax) {
    throw InvalidArgument("a message of a control store has {} elements in '{}'; {} are the most",
                          count, name, kStoreBatchMax);
  }
  return count;
}

void ReadBatch(WireReader& reader, StoreRequest& request) {
  request.remaining = ReadTime(reader, "remaining");
  for (std::size_t count = TakeBatchCount(reader, kOperationBytesLeast, "batch"); count > 0;
       --count) {
    request.batch.push_back(ReadOperation(reader));
  }
}

void ReadScan(WireReader& reader, StoreRequest& request) {
  request.remaining = ReadTime(reader, "remaining");
  request.table = ReadTable(reader);
  request.prefix = reader.TakeText("prefix");
  request.after = reader.TakeText("after");
  const auto limit = reader.Take<std::uint32_t>("limit");
  if (limit < 1 || limit > std::uint32_t{std::numeric_limits<int>::max()}) {
    throw InvalidArgument("a request to a control store has {} as 'limit'; it must be from 1 to {}",
                          limit, std::numeric_limits<int>::max());
  }
  request.limit = static_cast<int>(limit);
}

}  // namespace

std::vector<std::byte> EncodeStoreRequest(const StoreRequest& request) {
  const auto& [number, kind, remaining, batch, table, prefix, after, limit] = request;
  WireWriter writer;
  writer.Add(number);
  writer.Add(static_cast<std::uint8_t>(kind));
  switch (kind) {
    case StoreRequest::Kind::kSubmit:
      WriteTime(writer, remaining);
      writer.Add(static_cast<std::uint32_t>(batch.size()));
      for (const StoreOperation& operation : batch) WriteOperation(writer, operation);
      break;
    case StoreRequest::Kind::kScan:
      WriteTime(writer, remaining);
      WriteTable(writer, table);
      writer.AddText(prefix);
      writer.AddText(after);
      writer.Add(static_cast<std::uint32_t>(std::max(limit, 1)));
      break;
    case StoreRequest::Kind::kWatch:
      WriteTable(writer, table);
      writer.AddText(prefix);
      break;
    case StoreRequest::Kind::kUnwatch:
      break;
  }
  return writer.Take();
}

StoreRequest DecodeStoreRequest(std::span<const std::byte> bytes) {
  WireReader reader("a request to a control store", bytes);
  StoreRequest request;
  request.number = reader.Take<std::uint64_t>("number");
  request.kind = reader.TakeEnumerator(StoreRequest::Kind::kUnwatch, "kind");
  switch (request.kind) {
    case StoreRequest::Kind::kSubmit:
      ReadBatch(reader, request);
      break;
    case StoreRequest::Kind::kScan:
      ReadScan(reader, request);
      break;
    case StoreRequest::Kind::kWatch:
      request.table = ReadTable(reader);
      request.prefix = reader.TakeText("prefix");
      break;
    case StoreRequest::Kind::kUnwatch:
      break;
  }
  reader.Finish();
  return request;
}

std::vector<std::byte> EncodeStoreAnswer(const StoreAnswer& answer) {
  const auto& [number, kind, results, page, error] = answer;
  WireWriter writer;
  writer.Add(number);
  writer.Add(static_cast<std::uint8_t>(kind));
  switch (kind) {
    case StoreAnswer::Kind::kResults:
      writer.Add(static_cast<std::uint32_t>(results.size()));
      for (const StoreResult& result : results) WriteResult(writer, result);
      break;
    case StoreAnswer::Kind::kPage:
      WritePage(writer, page);
      break;
    case StoreAnswer::Kind::kHint:
      break;
    case StoreAnswer::Kind::kNoWatch:
      WriteError(writer, error.value());
      break;
  }
  return writer.Take();
}

StoreAnswer DecodeStoreAnswer(std::span<const std::byte> bytes) {
  WireReader reader("an answer of a control store", bytes);
  StoreAnswer answer;
  answer.number = reader.Take<std::uint64_t>("number");
  answer.kind = reader.TakeEnumerator(StoreAnswer::Kind::kNoWatch, "kind");
  switch (answer.kind) {
    case StoreAnswer::Kind::kResults:
      for (std::size_t count = TakeBatchCount(reader, kResultBytesLeast, "results"); count > 0;
           --count) {
        answer.results.push_back(ReadResult(reader));
      }
      break;
    case StoreAnswer::Kind::kPage:
      answer.page = ReadPage(reader);
      break;
    case StoreAnswer::Kind::kHint:
      break;
    case StoreAnswer::Kind::kNoWatch:
      answer.error.emplace(ReadError(reader));
      break;
  }
  reader.Finish();
  return answer;
}

std::size_t EncodedBytes(const StoreRequest& request) {
  constexpr std::size_t kTableBytes = 1;
  switch (request.kind) {
    case StoreRequest::Kind::kSubmit: {
      std::size_t bytes = kHeadBytes + kNumberBytes + kTextBytes;
      for (const StoreOperation& operation : request.batch) {
        bytes += kOperationBytesLeast + operation.key.size() + operation.value.size() +
                 (operation.expected ? kNumberBytes : 0);
      }
      return bytes;
    }
    case StoreRequest::Kind::kScan:
      return kHeadBytes + kNumberBytes + kTableBytes + 3 * kTextBytes + request.prefix.size() +
             request.after.size();
    case StoreRequest::Kind::kWatch:
      return kHeadBytes + kTableBytes + kTextBytes + request.prefix.size();
    case StoreRequest::Kind::kUnwatch:
      break;
  }
  return kHeadBytes;
}

std::size_t EncodedBytes(const StoreResult& result) {
  return 1 + EncodedBytes(result.record) + (result.error ? ErrorBytes(*result.error) : 0);
}

std::size_t EncodedBytes(const StoreRecord& record) {
  return kRecordBytesLeast + record.key.size() + record.value.size();
}

}  // namespace menger
