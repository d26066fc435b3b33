#include "menger/replay/durability/journal_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

// From here on each slot has a run of slices of its own, which it keeps while it is free.
void ForgetFreeRuns(PoolContent& pool) {
  for (Item& item : pool.items) {
    if (item.number == 0) item.slices_count = 0;
  }
}

// The lowest is used next.
void CollectFreeSlots(PoolContent& pool) {
  pool.free_slots.clear();
  for (std::size_t slot = pool.items.size(); slot-- > 0;) {
    if (pool.items[slot].number == 0) pool.free_slots.push_back(static_cast<std::uint32_t>(slot));
  }
}

}  // namespace

JournalRecovery::JournalRecovery(std::span<const JournalFile> segments)
    : segments_(segments.begin(), segments.end()) {}

void JournalRecovery::ApplyTo(ReplayContent& content, ChunkIndex& index) {
  if (segments_.empty()) return;
  for (const ChunkEntry& entry : index.chunks) {
    names_[entry.identity] = entry.chunk;
    next_name_ = std::max(next_name_, entry.chunk + 1);
  }
  for (ReplayContent::SavedTable& table : content.tables) {
    ForgetFreeRuns(table.content.pool);
    streams_.emplace_back().Restore(table.content.streams);
  }
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    try {
      ReadSegment(i, content, index);
    } catch (const Error& error) {
      const std::string& path = segments_[i].path;
      if (std::string_view(error.what()).find(path) != std::string_view::npos) throw;
      throw WithContext(error, fmt::format("'{}'", path));
    }
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    CollectFreeSlots(content.tables[i].content.pool);
    streams_[i].CopyTo(content.tables[i].content.streams);
  }
  DropUnused(content, index);
}

void JournalRecovery::ReadSegment(std::uint32_t segment, ReplayContent& content,
                                  ChunkIndex& index) {
  FrameFileReader reader(segments_[segment].path, segments_[segment].number);
  group_.tables.clear();
  tables_.clear();
  while (const auto frame = reader.Next()) {
    switch (frame->kind) {
      case kHeadFrame:
        for (const std::string& name : DecodeHead(frame->payload)) {
          const auto table =
              std::ranges::find(content.tables, name, &ReplayContent::SavedTable::name);
          if (table == content.tables.end()) {
            throw DataLoss("it tells of a table '{}', which the checkpoint does not have", name);
          }
          tables_.push_back(static_cast<std::size_t>(table - content.tables.begin()));
        }
        group_.tables.resize(tables_.size());
        break;
      case kRowsFrame:
        AddPieces(segment, *frame);
        break;
      case kGroupFrame:
        group_.Decode(frame->payload);
        Apply(content, index);
        break;
      case kMarkFrame:
      case kEndFrame:
        break;
    }
  }
  if (!reader.ended() && segment + 1 < segments_.size()) {
    throw DataLoss("'{}' ends at byte {} without its last frame, though '{}' follows it",
                   reader.path(), reader.end(), segments_[segment + 1].path);
  }
}

void JournalRecovery::AddPieces(std::uint32_t segment, const FrameFileReader::Frame& frame) {
  PlainReader reader(frame.payload);
  std::uint64_t offset = frame.offset;
  while (!reader.empty()) {
    const auto rows = reader.Take<JournalRows>();
    reader.Take(rows.bytes);
    pieces_[rows.identity].push_back({.offset = offset + sizeof rows,
                                      .bytes = rows.bytes,
                                      .segment = segment,
                                      .first = rows.first,
                                      .rows = rows.rows});
    offset += sizeof rows + rows.bytes;
  }
}

void JournalRecovery::Apply(ReplayContent& content, ChunkIndex& index) {
  group_names_.clear();
  for (const JournalChunk& chunk : group_.chunks) {
    const auto [name, is_new] = names_.emplace(chunk.identity, next_name_);
    group_names_.push_back(name->second);
    if (!is_new) continue;
    index.chunks.push_back({.identity = chunk.identity,
                            .steps_id = chunk.steps_id,
                            .compressed_bytes = chunk.compressed_bytes,
                            .chunk = next_name_++,
                            .capacity = chunk.capacity});
  }
  for (std::size_t i = 0; i < group_.tables.size(); ++i) {
    const TableDelta& delta = group_.tables[i];
    streams_[tables_[i]].Apply(delta.streams, delta.streams_left);
    ApplyTable(delta, content.tables[tables_[i]].content);
  }
}

void JournalRecovery::ApplyTable(const TableDelta& delta, TableContent& content) const {
  content.counts = delta.counts;
  if (delta.slots.empty()) return;
  content.sampler_order.clear();
  content.remover_order.clear();
  PoolContent& pool = content.pool;
  const std::size_t columns = delta.slice_counts.size() / delta.slots.size();
  const std::size_t slots = std::size_t{std::ranges::max(delta.slots)} + 1;
  if (slots > pool.items.size()) {
    pool.items.resize(slots);
    pool.slice_counts.resize(slots * columns);
  }
  if (pool.slice_counts.size() != pool.items.size() * columns) {
    throw DataLoss("it tells of items of {} columns, the checkpoint of others", columns);
  }
  for (std::size_t i = 0; i < delta.slots.size(); ++i) {
    const std::uint32_t slot = delta.slots[i];
    const std::size_t begin = delta.items[i].slices_begin;
    const std::size_t count = delta.items[i].slices_count;
    if (begin + count > delta.slices.size()) {
      throw DataLoss("item {} ends at slice {} of {}", delta.items[i].number, begin + count,
                     delta.slices.size());
    }
    ApplyItem(delta.items[i], std::span(delta.slices).subspan(begin, count), pool.items[slot],
              pool.slices);
    std::copy_n(delta.slice_counts.begin() + static_cast<std::ptrdiff_t>(i * columns), columns,
                pool.slice_counts.begin() + static_cast<std::ptrdiff_t>(slot * columns));
  }
}

void JournalRecovery::ApplyItem(const Item& changed, std::span<const Slice> slices, Item& item,
                                std::vector<Slice>& runs) const {
  if (changed.number == 0) {
    item.number = 0;
    return;
  }
  const bool fits = changed.slices_count <= item.slices_count;
  const std::size_t begin = fits ? item.slices_begin : runs.size();
  if (!fits) runs.resize(runs.size() + slices.size());
  item = changed;
  item.slices_begin = static_cast<std::uint32_t>(begin);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].chunk >= group_names_.size()) {
      throw DataLoss("item {} lies in chunk {} of {}", item.number, slices[i].chunk,
                     group_names_.size());
    }
    runs[begin + i] = slices[i];
    runs[begin + i].chunk = group_names_[slices[i].chunk];
  }
}

// How many rows of each chunk, by its name, items show.
std::vector<std::uint32_t> JournalRecovery::NamedRows(const ReplayContent& content) const {
  std::vector<std::uint32_t> rows;
  for (const ReplayContent::SavedTable& table : content.tables) {
    const PoolContent& pool = table.content.pool;
    for (const Item& item : pool.items) {
      if (item.number == 0) continue;
      for (std::uint32_t i = 0; i < item.slices_count; ++i) {
        const Slice& slice = pool.slices[item.slices_begin + i];
        if (slice.chunk >= rows.size()) rows.resize(std::size_t{slice.chunk} + 1);
        rows[slice.chunk] = std::max(rows[slice.chunk], std::uint32_t{slice.offset} + slice.length);
      }
    }
  }
  return rows;
}

// Chunks that were journaled and whose items have gone since need no room and no reading.
void JournalRecovery::DropUnused(const ReplayContent& content, ChunkIndex& index) const {
  const std::vector<std::uint32_t> named = NamedRows(content);
  std::erase_if(index.chunks, [&](const ChunkEntry& entry) {
    return entry.rows == 0 && (entry.chunk >= named.size() || named[entry.chunk] == 0);
  });
  for (const ChunkEntry& entry : index.chunks) {
    if (entry.chunk >= named.size() || named[entry.chunk] <= RowsOf(entry)) continue;
    throw DataLoss("'{}': items show {} rows of a chunk of which only {} are there",
                   segments_.back().path, named[entry.chunk], RowsOf(entry));
  }
}

std::uint32_t JournalRecovery::RowsOf(const ChunkEntry& entry) const {
  std::uint32_t rows = entry.rows;
  const auto found = pieces_.find(entry.identity);
  if (found == pieces_.end()) return rows;
  for (const Piece& piece : found->second) {
    if (piece.first <= rows) rows = std::max(rows, piece.first + piece.rows);
  }
  return rows;
}

void JournalRecovery::Read(const ChunkEntry& entry, const ChunkLayout& layout, ChunkStore& chunks,
                           ChunkId chunk) {
  const auto found = pieces_.find(entry.identity);
  if (found == pieces_.end()) return;
  for (const Piece& piece : found->second) {
    const std::string& path = segments_[piece.segment].path;
    const ChunkRows part{
        .first = piece.first, .rows = piece.rows, .compressed_bytes = entry.compressed_bytes};
    if (std::uint64_t{piece.first} + piece.rows > entry.capacity ||
        piece.bytes != BytesOf(layout, part)) {
      throw DataLoss("'{}': rows {} to {} of a chunk of {} cannot have {} bytes", path, piece.first,
                     piece.first + piece.rows, entry.capacity, piece.bytes);
    }
    if (open_ != piece.segment) {
      file_ = OpenForReading(path);
      open_ = piece.segment;
    }
    rows_.resize(piece.bytes);
    ReadAllAt(file_, piece.offset, rows_, path);
    RestoreRows(chunks, layout, chunk, part, rows_.data());
  }
  chunks.Publish(chunk, static_cast<int>(RowsOf(entry)));
}

}  // namespace menger
