#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/chunks/item.h"
#include "menger/replay/table.h"

namespace menger {

// A column of a ColumnWriter: rows of equal size, chunked by themselves.
struct ColumnOptions {
  std::int64_t row_bytes = 0;
  int chunk_rows = 1;  // More: fewer chunks; fewer: memory is freed sooner.
  int history = 1;     // Items may reach back so many rows, the last one included.

  void Check() const;  // Throws InvalidArgument that names the field.
  bool operator==(const ColumnOptions&) const = default;
};

// Consecutive rows of one column, by their numbers. Plain bytes.
struct RowRange {
  std::int64_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t column = 0;
};

struct ColumnWriterOptions {
  int columns_max = 65536;
  int pending_max = 65536;    // Items that wait for Flush.
  std::size_t bytes_max = 0;  // Of the chunks that it holds; 0: a sixteenth of the store.
  // How long Append waits where the store is full.
  std::chrono::nanoseconds room_wait_max = std::chrono::seconds(10);
  std::uint64_t stream = 0;  // As WriterOptions.

  void Check() const;  // Throws InvalidArgument that names the field.
};

// Writes rows of bytes, each once, and items of open tables (ItemSpec) that refer to them: ranges
// of any columns, one after the other.
//
// It holds the chunks that the histories of its columns lie in, and all since the first item that
// was not flushed, up to bytes_max. One thread at a time. Append and Add lock no table, and only a
// full store makes Append wait; Flush inserts. An item that was not flushed when the writer goes is
// lost.
class ColumnWriter {
 public:
  // `chunks` outlives the writer. Throws as ColumnWriterOptions::Check.
  ColumnWriter(const ColumnWriterOptions& options, ChunkStore& chunks);
  ~ColumnWriter();
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  // Begins a column, or begins it anew. Throws as ColumnOptions::Check; InvalidArgument for an
  // index beyond columns_max, or to begin one anew while items wait for Flush.
  void SetColumn(std::uint32_t column, const ColumnOptions& options);

  // Copies a row; `number` is the one after the column's last, or a later one: rows between do not
  // exist. Throws InvalidArgument for a column or number that cannot be, or other bytes than
  // row_bytes; Unavailable if the store has no room within room_wait_max, or this writer holds
  // bytes_max already; FailedPrecondition where no item waits that Flush could rid it of.
  void Append(std::uint32_t column, std::int64_t number, std::span<const std::byte> row);

  // An item of an open table, which outlives the writer, to be inserted by Flush; its priority as
  // ItemDraft's. Throws, with nothing added, InvalidArgument for no range, one that is empty or
  // names rows that are not held, another table, or a bad priority; Unavailable if pending_max
  // items wait already.
  void Add(Table& table, std::optional<double> priority, std::span<const RowRange> ranges,
           std::uint64_t sequence = 0);

  // Inserts what was added, in the order of Add. Throws as Table::Insert; what was not taken is
  // kept for another Flush.
  void Flush(const Deadline& deadline);

  // As Flush, but waits for the first item alone: those behind it are inserted as far as that needs
  // no more wait.
  void FlushSome(const Deadline& deadline);

  int pending() const { return static_cast<int>(drafts_.size() - taken_); }
  std::size_t bytes() const { return bytes_; }  // Of the chunks that it holds.

 private:
  struct Held {
    ChunkId chunk = 0;
    std::int64_t first = 0;  // Number of its row 0.
    int rows = 0;
  };
  struct Column {
    ColumnOptions options;
    std::shared_ptr<const ChunkLayout> layout;  // Null: there is no such column.
    std::int64_t next = 0;                      // Number of the next row, at least.
    std::deque<Held> held;
  };

  Column& At(std::uint32_t column);
  void Take(Column& column, const RowRange& range, std::vector<Slice>& slices) const;
  void CheckRoom(std::size_t more) const;
  std::size_t RunEnd() const;
  void Taken(std::size_t count);
  void ReleaseOld(Column& column);
  void Drop(Column& column);

  const ColumnWriterOptions options_;
  ChunkStore& chunks_;
  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::vector<Column> columns_;
  std::vector<Table*> tables_;     // Of each draft.
  std::vector<ItemDraft> drafts_;  // In the order of Add; the first `taken_` are in their tables.
  std::size_t taken_ = 0;
  std::vector<ItemKey> keys_;  // Of one Insert.
};

}  // namespace menger
