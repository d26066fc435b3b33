#include "menger/replay/client/served_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "menger/base/log.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// A batch of items is sent before its answer is waited for.
constexpr std::size_t kBatchItems = 256;
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
constexpr std::int64_t kRingBytesMin = std::int64_t{1} << 18;
constexpr seconds kFlushTime{1};  // How long the server waits in a table before it says for what.
constexpr seconds kGrace{10};     // How much longer than that a server that lives may take.
constexpr seconds kConnectTime{3};
constexpr std::chrono::milliseconds kRest{100};  // After an error.

std::uint64_t NewStreamId() {
  std::random_device device;
  const std::uint64_t id = std::uint64_t{device()} << 32 | device();
  return id == 0 ? 1 : id;
}

}  // namespace

void ServedRowsOptions::Check() const {
  if (bytes_max < 1) throw InvalidArgument("bytes_max is 0; it must be at least 1");
  if (pending_max < 1) {
    throw InvalidArgument("pending_max is {}; it must be at least 1", pending_max);
  }
}

ServedRows::ServedRows(std::shared_ptr<const ServerFinder> finder, const ServedRowsOptions& options)
    : finder_(std::move(finder)), options_((options.Check(), options)), stream_(NewStreamId()) {
  thread_ = Thread({.name = "replay rows"}, [this] { Run(); });
}

ServedRows::~ServedRows() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  thread_.Join();
}

// ---- Rows and items

ServedRows::Column& ServedRows::At(std::uint32_t column) {
  return const_cast<Column&>(std::as_const(*this).At(column));
}

const ServedRows::Column& ServedRows::At(std::uint32_t column) const {
  if (column < columns_.size()) return columns_[column];
  throw InvalidArgument("column {} of {}", column, columns_.size());
}

std::uint32_t ServedRows::AddColumn(const ColumnOptions& options) {
  options.Check();
  const std::lock_guard lock(mutex_);
  largest_row_ = std::max(largest_row_, options.row_bytes);
  columns_.push_back(
      {.options = options, .rows = KeptSteps(static_cast<std::size_t>(options.row_bytes))});
  return static_cast<std::uint32_t>(columns_.size() - 1);
}

std::int64_t ServedRows::Append(std::uint32_t index, std::span<const std::byte> row) {
  const std::lock_guard lock(mutex_);
  Column& column = At(index);
  if (static_cast<std::int64_t>(row.size()) != column.options.row_bytes) {
    throw InvalidArgument("a row of {} bytes for column {}, whose rows have {}", row.size(), index,
                          column.options.row_bytes);
  }
  if (bytes_ + row.size() > options_.bytes_max) {
    throw Unavailable(
        "a writer would keep {} bytes of rows, and bytes_max is {}: {} items wait to be inserted",
        bytes_ + row.size(), options_.bytes_max, items_.size());
  }
  const std::int64_t number = column.rows.end();
  std::memcpy(column.rows.Add(0), row.data(), row.size());
  bytes_ += row.size();
  if (items_.empty()) DropOld(index);
  return number;
}

void ServedRows::Read(std::uint32_t index, std::int64_t row, std::span<std::byte> to) const {
  const std::lock_guard lock(mutex_);
  const Column& column = At(index);
  const std::int64_t oldest = column.rows.end() - column.options.history;
  if (row < std::max(column.rows.begin(), oldest) || row >= column.rows.end()) {
    throw FailedPrecondition("row {} of column {} is not in its history of {} rows", row, index,
                             column.options.history);
  }
  if (to.size() != column.rows.row(row).size()) {
    throw InvalidArgument("room of {} bytes for a row of {}", to.size(),
                          column.rows.row(row).size());
  }
  std::memcpy(to.data(), column.rows.row(row).data(), to.size());
}

void ServedRows::ThrowFailure() {
  if (failure_) throw *std::exchange(failure_, std::nullopt);
}

void ServedRows::Add(int table, std::optional<double> priority, std::span<const RowRange> ranges) {
  const std::lock_guard lock(mutex_);
  ThrowFailure();
  if (table < 0 || table >= std::ssize(finder_->tables())) {
    throw InvalidArgument("table {} of {}", table, finder_->tables().size());
  }
  const TableOptions& options = finder_->tables()[table];
  if (!options.items.open) {
    throw InvalidArgument("table '{}' has items of steps; rows of columns go into open tables",
                          options.name);
  }
  if (priority && (!std::isfinite(*priority) || *priority < 0)) {
    throw InvalidArgument(
        "an item of table '{}' has priority {}; it must be finite and not negative", options.name,
        *priority);
  }
  if (ranges.empty()) throw InvalidArgument("an item of table '{}' has no rows", options.name);
  for (const RowRange& range : ranges) {
    const Column& column = At(range.column);
    const std::int64_t end = column.rows.end();
    const std::int64_t oldest = std::max<std::int64_t>(0, end - column.options.history);
    if (range.count < 1 || range.first < oldest || range.first > end - range.count) {
      throw InvalidArgument(
          "an item of table '{}' shows {} rows from row {} on of column {}, of which {} .. {} can "
          "be had: its history is {}",
          options.name, range.count, range.first, range.column, oldest, end - 1,
          column.options.history);
    }
  }
  if (items_.size() >= static_cast<std::size_t>(options_.pending_max)) {
    throw Unavailable("{} items wait to be inserted, which is all that pending_max allows",
                      items_.size());
  }
  items_.push_back({.sequence = ++items_added_,
                    .table = static_cast<std::uint32_t>(table),
                    .priority = priority,
                    .ranges = {ranges.begin(), ranges.end()}});
  if (items_.size() == 1) work_.notify_all();
}

void ServedRows::DropOld(std::uint32_t index) {
  Column& column = columns_[index];
  const std::size_t before = column.rows.bytes();
  column.rows.DropBefore(column.rows.end() - column.options.history);
  bytes_ -= before - column.rows.bytes();
}

// All that neither a history nor an item needs.
void ServedRows::DropOld() {
  std::vector<std::int64_t> needed;
  needed.reserve(columns_.size());
  for (const Column& column : columns_) {
    needed.push_back(column.rows.end() - column.options.history);
  }
  for (const Item& item : items_) {
    for (const RowRange& range : item.ranges) {
      needed[range.column] = std::min(needed[range.column], range.first);
    }
  }
  acknowledged_ = 0;
  bytes_ = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].rows.DropBefore(needed[i]);
    bytes_ += columns_[i].rows.bytes();
  }
}

void ServedRows::Await(int left, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto reached = [&] { return failure_ || std::ssize(items_) <= left; };
  while (!reached() && !deadline.expired()) done_.wait_for(lock, deadline.slice(), reached);
  ThrowFailure();
  if (std::ssize(items_) <= left) return;
  throw DeadlineExceeded("{} items are not known to be inserted: {}", items_.size(),
                         waits_for_.empty() ? "the server has not answered yet" : waits_for_);
}

int ServedRows::pending() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(items_.size());
}

// ---- The thread

void ServedRows::Wait(nanoseconds time) {
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, time, [this] { return stopping_.load(); });
}

void ServedRows::Run() {
  std::optional<Deadline> patience;  // From the first failure on.
  while (!stopping_) {
    std::size_t ring_bytes = 0;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || !items_.empty(); });
      ring_bytes =
          std::bit_ceil(static_cast<std::size_t>(std::max(kRingBytesMin, 8 * largest_row_)));
      const auto needed = static_cast<std::size_t>(largest_row_) + sizeof(RowRequest);
      if (link_ != nullptr && link_->entry_bytes_max() < needed) link_.reset();
    }
    if (stopping_) break;
    try {
      finder_->With(link_, /*wants_memory=*/false, ring_bytes,
                    Deadline::After(kConnectTime).OrWhen(stopping_),
                    [this](ServerLink& link) { Exchange(link); });
      patience.reset();
      if (refused_) Wait(kRest);
      continue;
    } catch (...) {
      if (stopping_) break;
      const Error error = TranslateCurrentException();
      if (!patience) patience = Deadline::After(finder_->options().patience);
      const std::lock_guard lock(mutex_);
      waits_for_ = error.what();
      const bool may_mend = error.code() == ErrorCode::kUnavailable && !patience->expired();
      if (!may_mend && !failure_) failure_.emplace(error);
    }
    done_.notify_all();
    Wait(kRest);
  }
  link_.reset();
}

// One batch, and its answer.
void ServedRows::Exchange(ServerLink& link) {
  if (link.IsFirstUse() || refused_) BeginAgain(link);
  const std::uint64_t sent = Collect(link.entry_bytes_max());
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    const std::span<const std::byte> message = std::span(messages_).subspan(begin, end - begin);
    const auto kind = PlainReader(message).Take<RequestKind>();
    const std::span<std::byte> room = link.Begin(kind, message.size() - sizeof kind);
    std::memcpy(room.data(), message.data() + sizeof kind, room.size());
    begin = end;
  }
  link.Begin(WaitRequest{.kind = RequestKind::kFlushRows, .wait = nanoseconds(kFlushTime).count()});
  link.Send();
  const std::span<const std::byte> answer =
      link.Receive(Deadline::After(kFlushTime + kGrace).OrWhen(stopping_));
  if (answer.data() == nullptr && stopping_) throw Cancelled("the writer goes");
  if (answer.data() == nullptr) throw ServerGone("the replay server does not answer");
  TakeAnswer(answer, sent);
  link.Release();
}

void ServedRows::BeginAgain(ServerLink& link) {
  link.Begin(BeginRowsRequest{.stream = stream_});
  refused_ = false;
  const std::lock_guard lock(mutex_);
  items_sent_ = items_.empty() ? items_added_ : items_.front().sequence - 1;
  for (Column& column : columns_) {
    column.begun = false;
    column.sent = column.rows.begin();
  }
}

template <typename Message>
void ServedRows::Put(const Message& message, std::span<const std::byte> more) {
  AppendPlain(message, messages_);
  AppendArray(more, messages_);
  ends_.push_back(messages_.size());
}

// What the next items need, without those that were sent; the sequence of the last of them.
std::uint64_t ServedRows::Collect(std::size_t entry_bytes_max) {
  messages_.clear();
  ends_.clear();
  const std::lock_guard lock(mutex_);
  std::size_t next = items_.empty() ? 0 : items_sent_ + 1 - items_.front().sequence;
  for (std::size_t count = 0; next < items_.size() && count < kBatchItems; ++next, ++count) {
    if (messages_.size() >= kBatchBytes) break;
    const Item& item = items_[next];
    if (sizeof(AddRowsRequest) + item.ranges.size() * sizeof(RowRange) > entry_bytes_max) {
      throw InvalidArgument("an item of {} ranges is too large to be sent", item.ranges.size());
    }
    CollectItem(item);
    items_sent_ = item.sequence;
  }
  return items_sent_;
}

void ServedRows::CollectItem(const Item& item) {
  for (const RowRange& range : item.ranges) CollectRows(range);
  Put(AddRowsRequest{.table = item.table,
                     .has_priority = item.priority ? 1U : 0U,
                     .ranges = static_cast<std::uint32_t>(item.ranges.size()),
                     .priority = item.priority.value_or(0),
                     .sequence = item.sequence},
      std::as_bytes(std::span(item.ranges)));
}

void ServedRows::CollectRows(const RowRange& range) {
  Column& column = columns_[range.column];
  if (!column.begun) Put(ColumnRequest{.column = range.column, .options = column.options});
  column.begun = true;
  const std::int64_t end = range.first + range.count;
  for (std::int64_t row = std::max(column.sent, column.rows.begin()); row < end; ++row) {
    const std::span<const std::byte> bytes = column.rows.row(row);
    Put(RowRequest{.column = range.column, .number = row, .bytes = bytes.size()}, bytes);
    column.sent = row + 1;
  }
}

void ServedRows::TakeAnswer(std::span<const std::byte> answer, std::uint64_t sent) {
  const std::optional<Error> error = ErrorIn(answer);
  std::uint64_t left = PlainReader(answer).Take<DoneReply>().stream;
  const bool late = error && error->code() == ErrorCode::kDeadlineExceeded;
  {
    const std::lock_guard lock(mutex_);
    waits_for_ = error ? error->what() : "";
    if (error && !late) {
      if (!failure_) failure_.emplace(*error);
      // What is wrong whatever others do would be wrong again; the rest is kept.
      const bool may_mend =
          error->code() == ErrorCode::kUnavailable || error->code() == ErrorCode::kCancelled;
      left = may_mend ? sent : 0;
    }
    const std::size_t before = items_.size();
    while (!items_.empty() && items_.front().sequence + left <= sent) items_.pop_front();
    acknowledged_ += before - items_.size();
    if (2 * acknowledged_ > items_.size()) DropOld();  // It looks at all of them.
  }
  done_.notify_all();
  refused_ = error && !late;  // The server passes over what comes, until it begins again.
}

}  // namespace menger
