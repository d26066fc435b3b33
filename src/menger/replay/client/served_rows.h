#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/base/thread.h"
#include "menger/replay/client/kept_steps.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/column_writer.h"

namespace menger {

// How much a writer of rows may keep.
struct ServedRowsOptions {
  std::size_t bytes_max = std::size_t{1} << 30;  // Of rows: histories, and those of waiting items.
  int pending_max = 1 << 20;                     // Items that are not known to be inserted.

  void Check() const;  // Throws InvalidArgument that names the field.
};

// Writes rows of columns, and items of them, into open tables of a replay server (ColumnWriter).
//
// Nothing here waits for a table but Await: a thread of the writer's own sends what items need, in
// the order in which they were added, and waits where a table makes it wait. Rows that no item
// names are never sent. A row is kept for its column's history, and until the items that name it
// are acknowledged; what was not is sent again to a server that has come back, and each item is
// inserted once. What is not acknowledged when the writer goes may be lost.
//
// An item that the server refuses, and those behind it that were sent with it, are dropped; the
// next Add or Await throws why. Any thread, each call under the writer's mutex.
class ServedRows {
 public:
  // Throws as ServedRowsOptions::Check. It connects when there is something to send.
  ServedRows(std::shared_ptr<const ServerFinder> finder, const ServedRowsOptions& options);
  ~ServedRows();  // Within a second, or three where the server has gone.
  ServedRows(const ServedRows&) = delete;
  ServedRows& operator=(const ServedRows&) = delete;

  // Returns the column's number, from 0 on. Throws as ColumnOptions::Check.
  std::uint32_t AddColumn(const ColumnOptions& options);
  // Copies a row; returns its number, from 0 on. Throws Unavailable beyond bytes_max.
  std::int64_t Append(std::uint32_t column, std::span<const std::byte> row);
  // Copies a row of the history back. Throws FailedPrecondition for one that is not kept.
  void Read(std::uint32_t column, std::int64_t row, std::span<std::byte> to) const;

  // An item, to be inserted as soon as its table takes it; its priority as ItemDraft's. Throws as
  // ColumnWriter::Add: rows must be in their columns' histories.
  void Add(int table, std::optional<double> priority, std::span<const RowRange> ranges);

  // Returns once no more than `left` items are not known to be inserted. Throws DeadlineExceeded,
  // with what they wait for.
  void Await(int left, const Deadline& deadline);

  int pending() const;

 private:
  struct Column {
    ColumnOptions options;
    KeptSteps rows;
    bool begun = false;     // On this connection.
    std::int64_t sent = 0;  // Rows below were, or will not be.
  };
  struct Item {
    std::uint64_t sequence = 0;
    std::uint32_t table = 0;
    std::optional<double> priority;
    std::vector<RowRange> ranges;
  };

  Column& At(std::uint32_t column);
  const Column& At(std::uint32_t column) const;
  void ThrowFailure();
  void DropOld();
  void DropOld(std::uint32_t column);

  // Of the thread:
  void Run();
  void Exchange(ServerLink& link);
  void BeginAgain(ServerLink& link);
  std::uint64_t Collect(std::size_t entry_bytes_max);
  void CollectItem(const Item& item);
  void CollectRows(const RowRange& range);
  void TakeAnswer(std::span<const std::byte> answer, std::uint64_t sent);
  void Wait(std::chrono::nanoseconds time);

  template <typename Message>
  void Put(const Message& message, std::span<const std::byte> more = {});

  const std::shared_ptr<const ServerFinder> finder_;
  const ServedRowsOptions options_;
  const std::uint64_t stream_;

  mutable std::mutex mutex_;  // Of all up to the thread's own.
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<Column> columns_;  // Their addresses stay.
  std::deque<Item> items_;      // Not acknowledged.
  std::uint64_t items_added_ = 0;
  std::uint64_t items_sent_ = 0;  // Sequence of the last, on this connection.
  std::size_t bytes_ = 0;         // Of kept rows.
  std::size_t acknowledged_ = 0;  // Items, since rows were dropped.
  std::int64_t largest_row_ = 0;
  std::optional<Error> failure_;  // The first that was not told yet.
  std::string waits_for_;         // What the server said last.

  // Of the thread alone.
  std::unique_ptr<ServerLink> link_;
  bool refused_ = false;  // What was sent last.
  std::vector<std::byte> messages_;
  std::vector<std::size_t> ends_;  // Of each message.

  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace menger
