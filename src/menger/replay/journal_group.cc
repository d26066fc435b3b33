#include "menger/replay/journal_group.h"

#include <type_traits>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::uint32_t kFormatVersion = 1;

template <typename T>
void Put(std::span<const T> values, std::vector<std::byte>& payload) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(values);
  payload.insert(payload.end(), bytes.begin(), bytes.end());
}

template <typename T>
void Put(const std::vector<T>& values, std::vector<std::byte>& payload) {
  Put(std::span<const T>(values), payload);
}

template <typename T>
void PutOne(const T& value, std::vector<std::byte>& payload) {
  Put(std::span<const T>(&value, 1), payload);
}

// Before the arrays of a table. Plain bytes.
struct TableHead {
  TableCounts counts;
  std::uint64_t slots = 0;
  std::uint64_t slice_counts = 0;
  std::uint64_t slices = 0;
};

}  // namespace

void JournalGroup::Clear() {
  chunks.clear();
  for (TableDelta& table : tables) {
    table.slots.clear();
    table.items.clear();
    table.slice_counts.clear();
    table.slices.clear();
  }
}

void JournalGroup::Encode(std::vector<std::byte>& payload) const {
  PutOne(std::uint64_t{chunks.size()}, payload);
  Put(chunks, payload);
  for (const TableDelta& table : tables) {
    PutOne(TableHead{.counts = table.counts,
                     .slots = table.slots.size(),
                     .slice_counts = table.slice_counts.size(),
                     .slices = table.slices.size()},
           payload);
    Put(table.items, payload);
    Put(table.slots, payload);
    Put(table.slices, payload);
    Put(table.slice_counts, payload);
  }
}

void JournalGroup::Decode(std::span<const std::byte> payload) {
  PayloadReader reader(payload);
  reader.TakeInto(reader.Take<std::uint64_t>(), chunks);
  for (TableDelta& table : tables) {
    const auto head = reader.Take<TableHead>();
    table.counts = head.counts;
    reader.TakeInto(head.slots, table.items);
    reader.TakeInto(head.slots, table.slots);
    reader.TakeInto(head.slices, table.slices);
    reader.TakeInto(head.slice_counts, table.slice_counts);
  }
  if (!reader.empty()) throw DataLoss("a frame of a journal is longer than what it tells");
}

std::vector<std::byte> EncodeHead(const std::vector<std::string>& tables) {
  std::vector<std::byte> payload;
  PutOne(kFormatVersion, payload);
  PutOne(static_cast<std::uint32_t>(tables.size()), payload);
  for (const std::string& table : tables) {
    PutOne(std::uint64_t{table.size()}, payload);
    Put(std::span<const char>(table), payload);
  }
  return payload;
}

std::vector<std::string> DecodeHead(std::span<const std::byte> payload) {
  PayloadReader reader(payload);
  const auto version = reader.Take<std::uint32_t>();
  if (version != kFormatVersion) {
    throw FailedPrecondition("a journal of format {}; this program reads {}", version,
                             kFormatVersion);
  }
  std::vector<std::string> tables;
  for (auto left = reader.Take<std::uint32_t>(); left > 0; --left) {
    const auto name = reader.Take(reader.Take<std::uint64_t>());
    tables.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
  }
  return tables;
}

std::span<const std::byte> PayloadReader::Take(std::uint64_t bytes) {
  if (bytes > rest_.size()) throw DataLoss("a frame of a journal is shorter than what it tells");
  const auto taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

}  // namespace menger
