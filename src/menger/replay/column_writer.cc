#include "menger/replay/column_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "menger/base/error.h"
#include "menger/replay/draft_checker.h"

namespace menger {

void ColumnOptions::Check() const {
  if (row_bytes < 1 || row_bytes > kByteRowMax) {
    throw InvalidArgument("row_bytes of a column is {}; it must be 1 to {}", row_bytes,
                          kByteRowMax);
  }
  if (chunk_rows < 1 || chunk_rows > kChunkRowsMax) {
    throw InvalidArgument("chunk_rows of a column is {}; it must be 1 to {}", chunk_rows,
                          kChunkRowsMax);
  }
  if (history < 1) {
    throw InvalidArgument("history of a column is {}; it must be at least 1", history);
  }
}

void ColumnWriterOptions::Check() const {
  if (columns_max < 1) {
    throw InvalidArgument("columns_max is {}; it must be at least 1", columns_max);
  }
  if (pending_max < 1) {
    throw InvalidArgument("pending_max is {}; it must be at least 1", pending_max);
  }
  if (room_wait_max.count() < 0) {
    throw InvalidArgument("room_wait_max is {} ns; it must be at least 0", room_wait_max.count());
  }
}

ColumnWriter::ColumnWriter(const ColumnWriterOptions& options, ChunkStore& chunks)
    : options_((options.Check(), options)),
      chunks_(chunks),
      bytes_max_(options.bytes_max > 0 ? options.bytes_max : chunks.bytes_max() / 16) {}

ColumnWriter::~ColumnWriter() {
  for (Column& column : columns_) Drop(column);
}

// ---- Columns

void ColumnWriter::SetColumn(std::uint32_t column, const ColumnOptions& options) {
  options.Check();
  if (column >= static_cast<std::uint32_t>(options_.columns_max)) {
    throw InvalidArgument("column {} of a writer that has up to {}", column, options_.columns_max);
  }
  if (pending() > 0 && column < columns_.size() && !columns_[column].held.empty()) {
    throw InvalidArgument("column {} is begun anew while {} items wait to be inserted: Flush",
                          column, pending());
  }
  if (column >= columns_.size()) columns_.resize(column + std::size_t{1});
  auto layout =
      std::make_shared<const ChunkLayout>(ByteRows(options.row_bytes), options.chunk_rows);
  Drop(columns_[column]);
  columns_[column] = {.options = options, .layout = std::move(layout)};
}

ColumnWriter::Column& ColumnWriter::At(std::uint32_t column) {
  if (column < columns_.size() && columns_[column].layout != nullptr) return columns_[column];
  throw InvalidArgument("there is no column {}", column);
}

void ColumnWriter::Append(std::uint32_t index, std::int64_t number,
                          std::span<const std::byte> row) {
  Column& column = At(index);
  if (static_cast<std::int64_t>(row.size()) != column.options.row_bytes) {
    throw InvalidArgument("a row of {} bytes for column {}, whose rows have {}", row.size(), index,
                          column.options.row_bytes);
  }
  if (number < column.next || number == std::numeric_limits<std::int64_t>::max()) {
    throw InvalidArgument("row {} of column {}, whose next is {}", number, index, column.next);
  }
  const bool fits = !column.held.empty() && number == column.next &&
                    column.held.back().rows < column.options.chunk_rows;
  if (!fits) {
    CheckRoom(column.layout->bytes());
    const ChunkId chunk =
        chunks_.AllocateWithin(*column.layout, Deadline::After(options_.room_wait_max));
    bytes_ += chunks_.bytes(chunk);
    column.held.push_back({.chunk = chunk, .first = number});
  }
  Held& last = column.held.back();
  std::memcpy(chunks_.Data(last.chunk, static_cast<std::size_t>(last.rows) * row.size()),
              row.data(), row.size());
  chunks_.Publish(last.chunk, ++last.rows);
  column.next = number + 1;
  ReleaseOld(column);
}

void ColumnWriter::CheckRoom(std::size_t more) const {
  if (bytes_ + more <= bytes_max_) return;
  if (pending() == 0) {
    throw FailedPrecondition(
        "a writer would hold {} bytes of chunks for the histories of its columns alone, and "
        "bytes_max is {}: shorter histories, smaller chunks or a larger store would do",
        bytes_ + more, bytes_max_);
  }
  throw Unavailable(
      "a writer would hold {} bytes of chunks, and bytes_max is {}: {} items wait to be inserted "
      "and keep all that came after the first of them; Flush",
      bytes_ + more, bytes_max_, pending());
}

void ColumnWriter::ReleaseOld(Column& column) {
  if (pending() > 0) return;
  const std::int64_t oldest = column.next - column.options.history;
  while (!column.held.empty() && column.held.front().first + column.held.front().rows <= oldest) {
    bytes_ -= chunks_.bytes(column.held.front().chunk);
    chunks_.Release(column.held.front().chunk);
    column.held.pop_front();
  }
}

void ColumnWriter::Drop(Column& column) {
  for (const Held& held : column.held) {
    bytes_ -= chunks_.bytes(held.chunk);
    chunks_.Release(held.chunk);
  }
  column.held.clear();
}

// ---- Items

void ColumnWriter::Take(Column& column, const RowRange& range, std::vector<Slice>& slices) const {
  std::int64_t next = range.first;
  const bool possible = range.count > 0 && range.first >= 0 && range.first < column.next;
  const std::int64_t end = possible ? range.first + range.count : range.first;
  auto held = std::ranges::upper_bound(column.held, range.first, {}, &Held::first);
  if (possible && held != column.held.begin()) {
    for (--held; held != column.held.end() && next < end; ++held) {
      if (next < held->first || next >= held->first + held->rows) break;
      const auto offset = static_cast<std::uint16_t>(next - held->first);
      const std::int64_t length = std::min<std::int64_t>(end - next, held->rows - offset);
      slices.push_back(
          {.chunk = held->chunk, .offset = offset, .length = static_cast<std::uint16_t>(length)});
      next += length;
    }
  }
  if (possible && next == end) return;
  throw InvalidArgument(
      "an item shows {} rows from row {} on of column {}, of which {} .. {} can be had: its "
      "history "
      "is {}",
      range.count, range.first, range.column, column.held.empty() ? 0 : column.held.front().first,
      column.next - 1, column.options.history);
}

void ColumnWriter::Add(Table& table, std::optional<double> priority,
                       std::span<const RowRange> ranges, std::uint64_t sequence) {
  const std::string& name = table.options().name;
  if (!table.options().items.open) {
    throw InvalidArgument("table '{}' has items of steps; rows of columns go into open tables",
                          name);
  }
  if (priority) CheckPriority(*priority);
  if (pending() >= options_.pending_max) {
    throw Unavailable("{} items wait to be inserted, which is all that pending_max allows: Flush",
                      pending());
  }
  ItemDraft draft{.priority = priority, .sequence = sequence};
  for (const RowRange& range : ranges) Take(At(range.column), range, draft.slices);
  if (draft.slices.empty() || draft.slices.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw InvalidArgument("an item of table '{}' has {} slices; it must have 1 to {}", name,
                          draft.slices.size(), std::numeric_limits<std::uint16_t>::max());
  }
  draft.slice_counts.push_back(static_cast<std::uint16_t>(draft.slices.size()));
  tables_.push_back(&table);
  drafts_.push_back(std::move(draft));
}

// One table's items from the first that waits on end here.
std::size_t ColumnWriter::RunEnd() const {
  std::size_t end = taken_;
  while (end < drafts_.size() && tables_[end] == tables_[taken_]) ++end;
  return end;
}

void ColumnWriter::Taken(std::size_t count) {
  taken_ += count;
  if (taken_ < drafts_.size()) return;
  drafts_.clear();
  tables_.clear();
  taken_ = 0;
  for (Column& column : columns_) ReleaseOld(column);
}

void ColumnWriter::Flush(const Deadline& deadline) {
  while (pending() > 0) {
    const auto run = std::span(drafts_).subspan(taken_, RunEnd() - taken_);
    keys_.clear();
    try {
      tables_[taken_]->Insert(run, deadline, &keys_, options_.stream);
    } catch (...) {
      Taken(keys_.size());
      throw;
    }
    Taken(run.size());
  }
}

void ColumnWriter::FlushSome(const Deadline& deadline) {
  if (pending() == 0) return;
  tables_[taken_]->Insert(std::span(drafts_).subspan(taken_, 1), deadline, nullptr,
                          options_.stream);
  Taken(1);
  while (pending() > 0) {
    const auto run = std::span(drafts_).subspan(taken_, RunEnd() - taken_);
    const auto count =
        static_cast<std::size_t>(tables_[taken_]->TryInsert(run, nullptr, options_.stream));
    const bool all = count == run.size();
    Taken(count);
    if (!all) return;
  }
}

}  // namespace menger
