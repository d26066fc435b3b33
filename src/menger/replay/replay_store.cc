#include "menger/replay/replay_store.h"

#include <cstdint>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"

namespace menger {
namespace {

void CheckMemory(const TableOptions& table, std::uint64_t limit) {
  const double need = table.BytesNeeded();
  if (need <= static_cast<double>(limit)) return;
  throw InvalidArgument(
      "table '{}': bytes_max = {} and items_max = {}, at {} bytes an item, need {} together, but "
      "this process can have {}: lower them",
      table.name, table.bytes_max, table.items_max, table.ItemBytes(), MemoryText(need),
      MemoryText(static_cast<double>(limit)));
}

// What the store may hold. Writers and readers hold chunks that no table needs any more.
std::size_t BytesOf(const ReplayStoreOptions& options) {
  if (options.tables.empty()) throw InvalidArgument("a replay store has no table");
  const std::uint64_t limit = MemoryLimit();
  std::size_t bytes = 0;
  for (const TableOptions& table : options.tables) {
    table.Check();
    CheckMemory(table, limit);
    bytes += table.bytes_max;
  }
  const std::string available = MemoryText(static_cast<double>(limit));
  if (options.bytes_max > limit) {
    throw InvalidArgument("the replay store's bytes_max is {}, but this process can have {}",
                          options.bytes_max, available);
  }
  if (options.bytes_max > 0) return options.bytes_max;
  const std::size_t derived = bytes + bytes / 8 + options.writer_bytes;
  if (derived <= limit) return derived;
  LogWarning(
      "the tables and writers of a replay store may need {} bytes together; it gets the {} that "
      "this process can have, and appending fails when they are used up",
      derived, available);
  return limit;
}

}  // namespace

ReplayStore::ReplayStore(const ReplayStoreOptions& options)
    : chunks_({.bytes_max = BytesOf(options), .shared = options.shared}) {
  for (const TableOptions& table : options.tables) {
    for (const std::unique_ptr<Table>& other : tables_) {
      if (other->options().name == table.name) {
        throw InvalidArgument("a replay store has two tables named '{}'", table.name);
      }
    }
    tables_.push_back(std::make_unique<Table>(table, chunks_));
  }
}

Table& ReplayStore::table(std::string_view name) {
  std::vector<std::string> names;
  for (const std::unique_ptr<Table>& table : tables_) {
    if (table->options().name == name) return *table;
    names.push_back(table->options().name);
  }
  throw NotFound("there is no replay table '{}'{}", name, DidYouMean(name, names));
}

std::unique_ptr<TrajectoryWriter> ReplayStore::NewWriter(const Spec& steps,
                                                         const WriterOptions& options) {
  return std::make_unique<TrajectoryWriter>(steps, options, chunks_);
}

void ReplayStore::BeginLife(std::uint64_t life) {
  for (const std::unique_ptr<Table>& table : tables_) table->BeginLife(life);
}

void ReplayStore::Close() {
  for (const std::unique_ptr<Table>& table : tables_) table->Close();
}

}  // namespace menger
