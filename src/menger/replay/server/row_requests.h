#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"
#include "menger/replay/column_writer.h"
#include "menger/replay/protocol/messages.h"
#include "menger/replay/replay_store.h"

namespace menger {

// The part of a connection that writes rows of columns into open tables. It trusts nothing that it
// reads: what is no request is DataLoss. Once one has failed, what comes is passed over until Flush
// has said so and the client has begun anew. One thread.
class RowRequests {
 public:
  explicit RowRequests(ReplayStore& store) : store_(store) {}  // It outlives this.

  void Begin(PlainReader& reader);
  void Column(PlainReader& reader);
  void Row(PlainReader& reader);
  void Add(PlainReader& reader);
  void End() { writer_.reset(); }
  int pending() const { return writer_ == nullptr ? 0 : writer_->pending(); }
  // Inserts some of what waits (ColumnWriter::FlushSome). Returns what could not be done, once all
  // is inserted that came before it.
  std::optional<Error> Flush(const Deadline& deadline);

 private:
  template <typename Work>
  void Try(Work work);

  ReplayStore& store_;
  std::unique_ptr<ColumnWriter> writer_;
  std::optional<Error> failure_;
  std::vector<RowRange> ranges_;
};

}  // namespace menger
