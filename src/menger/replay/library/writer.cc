#include <span>

#include "menger/replay/library/interface.h"

static_assert(sizeof(menger_replay_range) == sizeof(menger::RowRange));
static_assert(offsetof(menger_replay_range, first) == offsetof(menger::RowRange, first));
static_assert(offsetof(menger_replay_range, count) == offsetof(menger::RowRange, count));
static_assert(offsetof(menger_replay_range, column) == offsetof(menger::RowRange, column));

menger_replay_writer* menger_replay_writer_new(menger_replay_client* client,
                                               std::uint64_t bytes_max, std::int32_t pending_max) {
  return menger::Made([=] {
    menger::CheckNotNull(client, "client");
    menger::ServedRowsOptions options;
    if (bytes_max != 0) options.bytes_max = bytes_max;
    if (pending_max != 0) options.pending_max = pending_max;
    return new menger_replay_writer{client->replay, client->replay->NewRows(options)};
  });
}

void menger_replay_writer_delete(menger_replay_writer* writer) { delete writer; }

std::int32_t menger_replay_writer_column(menger_replay_writer* writer, std::int64_t row_bytes,
                                         std::int32_t chunk_rows, std::int32_t history,
                                         std::uint32_t* column) {
  return menger::With(writer, [=](menger_replay_writer& self) {
    menger::CheckNotNull(column, "column");
    *column = self.rows->AddColumn(
        {.row_bytes = row_bytes, .chunk_rows = chunk_rows, .history = history});
  });
}

std::int32_t menger_replay_writer_append(menger_replay_writer* writer, std::uint32_t count,
                                         const std::uint32_t* columns, const void* const* data,
                                         const std::uint64_t* bytes, std::int64_t* rows) {
  return menger::With(writer, [=](menger_replay_writer& self) {
    for (std::uint32_t i = 0; i < count; ++i) {
      rows[i] = self.rows->Append(columns[i],
                                  std::span(static_cast<const std::byte*>(data[i]), bytes[i]));
    }
  });
}

std::int32_t menger_replay_writer_read(menger_replay_writer* writer, std::uint32_t column,
                                       std::int64_t row, void* to, std::uint64_t bytes) {
  return menger::With(writer, [=](menger_replay_writer& self) {
    self.rows->Read(column, row, std::span(static_cast<std::byte*>(to), bytes));
  });
}

std::int32_t menger_replay_writer_add(menger_replay_writer* writer, std::int32_t table,
                                      double priority, const menger_replay_range* ranges,
                                      std::uint32_t count) {
  return menger::With(writer, [=](menger_replay_writer& self) {
    self.rows->Add(table, priority,
                   std::span(reinterpret_cast<const menger::RowRange*>(ranges), count));
  });
}

std::int32_t menger_replay_writer_await(menger_replay_writer* writer, std::int32_t left,
                                        std::int64_t wait) {
  return menger::With(
      writer, [=](menger_replay_writer& self) { self.rows->Await(left, menger::Within(wait)); });
}

std::int32_t menger_replay_writer_pending(menger_replay_writer* writer) {
  return writer == nullptr ? -1 : writer->rows->pending();
}
