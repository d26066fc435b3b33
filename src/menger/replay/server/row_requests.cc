#include "menger/replay/server/row_requests.h"

namespace menger {
namespace {

// Shorter than clients wait for an answer.
constexpr std::chrono::seconds kRoomWaitMax{5};

}  // namespace

template <typename Work>
void RowRequests::Try(Work work) {
  if (writer_ == nullptr) throw DataLoss("it said something of columns before it began to");
  if (failure_) return;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDataLoss) throw;
    failure_.emplace(error);
  }
}

void RowRequests::Begin(PlainReader& reader) {
  const auto request = reader.Take<BeginRowsRequest>();
  writer_.reset();  // Before its successor takes as much.
  failure_.reset();
  writer_ = std::make_unique<ColumnWriter>(
      ColumnWriterOptions{.bytes_max = store_.chunks().bytes_max() / 4,
                          .room_wait_max = kRoomWaitMax,
                          .stream = request.stream},
      store_.chunks());
}

void RowRequests::Column(PlainReader& reader) {
  const auto request = reader.Take<ColumnRequest>();
  Try([&] { writer_->SetColumn(request.column, request.options); });
}

void RowRequests::Row(PlainReader& reader) {
  const auto request = reader.Take<RowRequest>();
  const std::span<const std::byte> row = reader.Take(request.bytes);
  Try([&] { writer_->Append(request.column, request.number, row); });
}

void RowRequests::Add(PlainReader& reader) {
  const auto request = reader.Take<AddRowsRequest>();
  reader.TakeInto(request.ranges, ranges_);
  if (request.table >= static_cast<std::uint32_t>(store_.tables())) {
    throw DataLoss("it named table {} of {}", request.table, store_.tables());
  }
  const std::optional<double> priority =
      request.has_priority != 0 ? std::optional(request.priority) : std::nullopt;
  Try([&] {
    writer_->Add(store_.table(static_cast<int>(request.table)), priority, ranges_,
                 request.sequence);
  });
}

std::optional<Error> RowRequests::Flush(const Deadline& deadline) {
  if (writer_ == nullptr) throw DataLoss("it flushed columns before it began to write");
  try {
    writer_->FlushSome(deadline);  // Where something has failed, what came before it.
  } catch (const Error& error) {
    // What was late is still there for another Flush.
    if (error.code() == ErrorCode::kDeadlineExceeded) return error;
    if (!failure_) failure_.emplace(error);
    return failure_;
  }
  return pending() == 0 ? failure_ : std::nullopt;
}

}  // namespace menger
