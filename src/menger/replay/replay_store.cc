#include "menger/replay/replay_store.h"

#include "menger/base/error.h"

namespace menger {
namespace {

// What the store may hold. Writers and readers hold chunks that no table needs any more.
std::size_t BytesOf(const ReplayStoreOptions& options) {
  if (options.tables.empty()) throw InvalidArgument("a replay store has no table");
  std::size_t bytes = 0;
  for (const TableOptions& table : options.tables) {
    table.Check();
    bytes += table.bytes_max;
  }
  return options.bytes_max > 0 ? options.bytes_max : bytes + bytes / 8 + options.writer_bytes;
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
