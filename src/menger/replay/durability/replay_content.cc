#include "menger/replay/durability/replay_content.h"

#include <fmt/format.h>

#include <cstdint>
#include <sstream>

#include "menger/base/error.h"

namespace menger {
namespace {

// 1: no chunk was compressed. 2: neither lives nor what limiters forgo. 3: no streams.
constexpr std::int32_t kFormatVersion = 4;

std::string LeavesOf(const Spec& steps) {
  std::string lines;
  for (const LeafSpec& leaf : steps.leaves()) {
    lines += fmt::format("leaf '{}' {} {}\n", leaf.name, NameOf(leaf.dtype), ToString(leaf.shape));
  }
  return lines;
}

std::string Numbered(const char* what, std::size_t index) {
  return fmt::format("{}/{}", what, index);
}

void SaveTable(const ReplayContent::SavedTable& table, ArchiveWriter archive) {
  archive.Write("name", table.name);
  archive.Write("signature", table.signature);
  const TableContent& content = table.content;
  archive.Write("counts", content.counts);
  archive.Write("limiter", content.limiter);
  archive.Write("items", content.pool.items);
  archive.Write("slice_counts", content.pool.slice_counts);
  archive.Write("slices", content.pool.slices);
  archive.Write("free_slots", content.pool.free_slots);
  archive.Write("sampler_order", content.sampler_order);
  archive.Write("remover_order", content.remover_order);
  archive.Write("streams", content.streams);
}

void LoadTable(ArchiveReader archive, ReplayContent::SavedTable& table) {
  archive.Read("name", table.name);
  archive.Read("signature", table.signature);
  TableContent& content = table.content;
  archive.Read("counts", content.counts);
  archive.Read("limiter", content.limiter);
  archive.Read("items", content.pool.items);
  archive.Read("slice_counts", content.pool.slice_counts);
  archive.Read("slices", content.pool.slices);
  archive.Read("free_slots", content.pool.free_slots);
  archive.Read("sampler_order", content.sampler_order);
  archive.Read("remover_order", content.remover_order);
  archive.Read("streams", content.streams);
}

void SaveWriter(const ReplayContent::SavedWriter& writer, ArchiveWriter archive) {
  archive.Write("signature", writer.signature);
  archive.Write("steps", writer.position.steps);
  archive.Write("first_held", writer.position.first_held);
  archive.Write("held", writer.position.held);
  archive.Write("versions", writer.position.versions);
}

void LoadWriter(ArchiveReader archive, ReplayContent::SavedWriter& writer) {
  archive.Read("signature", writer.signature);
  archive.Read("steps", writer.position.steps);
  archive.Read("first_held", writer.position.first_held);
  archive.Read("held", writer.position.held);
  archive.Read("versions", writer.position.versions);
}

void Rename(const std::vector<ChunkId>& names, ChunkId& chunk) {
  if (chunk >= names.size() || names[chunk] == kNoChunk) {
    throw DataLoss("the metadata of a replay checkpoint name chunk {}, which it does not have",
                   chunk);
  }
  chunk = names[chunk];
}

}  // namespace

std::string SignatureOf(const ItemSpec& items) {
  std::string lines = LeavesOf(items.steps);
  for (const ItemColumn& column : items.columns) {
    lines += fmt::format("column '{}' of {} rows of '{}', zeros {}\n", column.name, column.rows,
                         column.leaf, column.padding == Padding::kFront ? "in front" : "behind");
  }
  return lines;
}

std::string SignatureOf(const ChunkLayout& layout, const WriterPosition& position) {
  return LeavesOf(layout.steps()) +
         fmt::format("chunk_steps {}\nhistory {}\n", layout.capacity(), position.versions.size());
}

std::string DifferenceOf(const std::string& there, const std::string& here) {
  if (there == here) return "";
  std::istringstream theirs(there);
  std::istringstream ours(here);
  std::string their_line;
  std::string our_line;
  do {
    if (!std::getline(theirs, their_line)) their_line = "nothing more";
    if (!std::getline(ours, our_line)) our_line = "nothing more";
  } while (their_line == our_line);
  return fmt::format("{} there, {} here", their_line, our_line);
}

std::string MetadataPath(const std::string& folder) { return folder + "/metadata"; }

void ReplayContent::Save(ArchiveWriter archive) const {
  archive.Write("format_version", kFormatVersion);
  archive.Write("table_count", std::uint64_t{tables.size()});
  archive.Write("writer_count", std::uint64_t{writers.size()});
  for (std::size_t i = 0; i < tables.size(); ++i) {
    SaveTable(tables[i], archive.Scope(Numbered("tables", i)));
  }
  for (std::size_t i = 0; i < writers.size(); ++i) {
    SaveWriter(writers[i], archive.Scope(Numbered("writers", i)));
  }
}

void ReplayContent::Load(ArchiveReader archive) {
  const auto version = archive.Read<std::int32_t>("format_version");
  if (version != kFormatVersion) {
    throw FailedPrecondition("'{}' is a replay checkpoint of format {}; this program reads {}",
                             archive.path(), version, kFormatVersion);
  }
  tables.resize(archive.Read<std::uint64_t>("table_count"));
  writers.resize(archive.Read<std::uint64_t>("writer_count"));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    LoadTable(archive.Scope(Numbered("tables", i)), tables[i]);
  }
  for (std::size_t i = 0; i < writers.size(); ++i) {
    LoadWriter(archive.Scope(Numbered("writers", i)), writers[i]);
  }
}

void ReplayContent::RenameChunks(const std::vector<ChunkId>& names) {
  for (SavedTable& table : tables) {
    PoolContent& pool = table.content.pool;
    for (const Item& item : pool.items) {
      if (item.number == 0) continue;
      for (std::uint32_t i = 0; i < item.slices_count; ++i) {
        Rename(names, pool.slices[item.slices_begin + i].chunk);
      }
    }
  }
  for (SavedWriter& writer : writers) {
    for (ChunkId& chunk : writer.position.held) Rename(names, chunk);
  }
}

}  // namespace menger
