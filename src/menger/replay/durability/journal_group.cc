#include "menger/replay/durability/journal_group.h"

#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

constexpr std::uint32_t kFormatVersion =
    3;  // 1: neither lives nor what limiters forgo. 2: no streams.

// Before the arrays of a table. Plain bytes.
struct TableHead {
  TableCounts counts;
  std::uint64_t slots = 0;
  std::uint64_t slice_counts = 0;
  std::uint64_t slices = 0;
  std::uint64_t streams = 0;
  std::uint64_t streams_left = 0;
};

}  // namespace

void JournalGroup::Clear() {
  chunks.clear();
  for (TableDelta& table : tables) {
    table.slots.clear();
    table.items.clear();
    table.slice_counts.clear();
    table.slices.clear();
    table.streams.clear();
  }
}

void JournalGroup::Encode(std::vector<std::byte>& payload) const {
  AppendPlain(std::uint64_t{chunks.size()}, payload);
  AppendArray(chunks, payload);
  for (const TableDelta& table : tables) {
    AppendPlain(TableHead{.counts = table.counts,
                          .slots = table.slots.size(),
                          .slice_counts = table.slice_counts.size(),
                          .slices = table.slices.size(),
                          .streams = table.streams.size(),
                          .streams_left = table.streams_left},
                payload);
    AppendArray(table.items, payload);
    AppendArray(table.slots, payload);
    AppendArray(table.slices, payload);
    AppendArray(table.slice_counts, payload);
    AppendArray(table.streams, payload);
  }
}

void JournalGroup::Decode(std::span<const std::byte> payload) {
  PlainReader reader(payload);
  reader.TakeInto(reader.Take<std::uint64_t>(), chunks);
  for (TableDelta& table : tables) {
    const auto head = reader.Take<TableHead>();
    table.counts = head.counts;
    reader.TakeInto(head.slots, table.items);
    reader.TakeInto(head.slots, table.slots);
    reader.TakeInto(head.slices, table.slices);
    reader.TakeInto(head.slice_counts, table.slice_counts);
    reader.TakeInto(head.streams, table.streams);
    table.streams_left = head.streams_left;
  }
  if (!reader.empty()) throw DataLoss("a frame of a journal is longer than what it tells");
}

std::vector<std::byte> EncodeHead(const std::vector<std::string>& tables) {
  std::vector<std::byte> payload;
  AppendPlain(kFormatVersion, payload);
  AppendPlain(static_cast<std::uint32_t>(tables.size()), payload);
  for (const std::string& table : tables) {
    AppendPlain(std::uint64_t{table.size()}, payload);
    AppendArray(std::span<const char>(table), payload);
  }
  return payload;
}

std::vector<std::string> DecodeHead(std::span<const std::byte> payload) {
  PlainReader reader(payload);
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

}  // namespace menger
