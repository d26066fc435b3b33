#include "menger/replay/client/served_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

// Several steps, so that a writer goes on while the server inserts.
constexpr std::size_t kStepsUnderWay = 8;
constexpr std::size_t kRingBytesMin = std::size_t{1} << 20;
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;  // Where nobody chose a bound.
constexpr std::size_t kAskedMax = 1024;

// Not a draw of the run: two processes of one seed must not share a stream.
std::uint64_t NewStreamId() {
  std::random_device device;
  const std::uint64_t id = std::uint64_t{device()} << 32 | device();
  return id == 0 ? 1 : id;
}

std::size_t RowBytes(const Spec& steps) {
  std::size_t bytes = 0;
  for (const LeafSpec& leaf : steps.leaves()) bytes += leaf.bytes();
  return bytes;
}

}  // namespace

ServedWriter::ServedWriter(std::shared_ptr<const ServerFinder> finder, const Spec& steps,
                           const WriterOptions& options, int streams)
    : finder_(std::move(finder)),
      options_((options.Check(), options)),
      layout_(steps, 1),
      row_bytes_(RowBytes(steps)),
      bytes_max_(options.bytes_max > 0 ? options.bytes_max : kKeptBytes) {
  for (int i = 0; i < streams; ++i) {
    streams_.push_back({.id = NewStreamId(), .steps = KeptSteps(row_bytes_)});
  }
  for (const TableOptions& table : finder_->tables()) {
    takes_.push_back(StepsId(table.items.steps) == layout_.steps_id());
  }
}

// ---- Steps and items

std::int64_t ServedWriter::Append(int stream, std::span<const std::byte* const> leaves,
                                  std::uint64_t version) {
  Stream& here = streams_[stream];
  const int count = layout_.steps().size();
  if (static_cast<int>(leaves.size()) != count) {
    throw InvalidArgument("a step of {} leaves was appended; this stream's steps have {}",
                          leaves.size(), count);
  }
  if (here.steps.bytes() + row_bytes_ > bytes_max_) {
    throw Unavailable(
        "a writer would keep {} bytes of steps, and bytes_max is {}: {} items wait to be inserted "
        "and keep all that came after the first of them; Flush",
        here.steps.bytes() + row_bytes_, bytes_max_, here.items.size());
  }
  const std::int64_t step = here.steps.end();
  std::byte* out = here.steps.Add(version);
  for (int leaf = 0; leaf < count; ++leaf) {
    std::memcpy(out, leaves[leaf], layout_.row_bytes(leaf));
    out += layout_.row_bytes(leaf);
  }
  if (here.begun) Try([&](ServerLink& link) { SendStep(link, stream, here, step); });
  if (here.items.empty()) here.steps.DropBefore(here.steps.end() - options_.history);
  return step;
}

std::int64_t ServedWriter::FirstStepOf(const Stream& stream, int table,
                                       std::span<const StepRange> columns) const {
  const TableOptions& options = finder_->tables().at(static_cast<std::size_t>(table));
  if (!takes_[static_cast<std::size_t>(table)]) {
    throw InvalidArgument("table '{}' has items of other steps than this writer's", options.name);
  }
  if (columns.size() != options.items.columns.size()) {
    throw InvalidArgument("an item of {} columns for table '{}', whose items have {}",
                          columns.size(), options.name, options.items.columns.size());
  }
  const std::int64_t end = stream.steps.end();
  const std::int64_t oldest = std::max<std::int64_t>(0, end - options_.history);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const StepRange& range = columns[i];
    const ItemColumn& column = options.items.columns[i];
    if (range.count < 1 || range.count > column.rows) {
      throw InvalidArgument("an item of table '{}' has {} rows in column '{}'; it must be 1 to {}",
                            options.name, range.count, column.name, column.rows);
    }
    if (range.first < oldest || range.first > end - range.count) {
      throw InvalidArgument(
          "an item of table '{}' shows steps {} .. {} in column '{}', but {} .. {} can be had: the "
          "history is {}, and {} steps were appended",
          options.name, range.first, range.first + range.count - 1, column.name, oldest, end - 1,
          options_.history, end);
    }
    first = std::min(first, range.first);
  }
  return first;
}

void ServedWriter::Add(int stream, int table, std::optional<double> priority,
                       std::span<const StepRange> columns) {
  Stream& here = streams_[stream];
  if (priority && (!std::isfinite(*priority) || *priority < 0)) {
    throw InvalidArgument(
        "an item of table '{}' has priority {}; it must be finite and not negative",
        finder_->tables().at(static_cast<std::size_t>(table)).name, *priority);
  }
  if (here.items.size() >= static_cast<std::size_t>(options_.pending_max)) {
    throw Unavailable("{} items wait to be inserted, which is all that pending_max allows: Flush",
                      here.items.size());
  }
  const std::int64_t first = FirstStepOf(here, table, columns);
  here.items.push_back({.sequence = ++here.items_added,
                        .table = static_cast<std::uint32_t>(table),
                        .priority = priority,
                        .first = first,
                        .end = here.steps.end(),
                        .ranges = {columns.begin(), columns.end()}});
  if (here.begun) Try([&](ServerLink& link) { SendItem(link, stream, here.items.back()); });
}

// ---- What is sent

void ServedWriter::SendStep(ServerLink& link, int index, const Stream& stream, std::int64_t step) {
  const std::span<const std::byte> row = stream.steps.row(step);
  const std::span<std::byte> room =
      link.Begin(AppendRequest{.stream = static_cast<std::uint32_t>(index),
                               .version = stream.steps.version(step)},
                 row.size());
  std::memcpy(room.data(), row.data(), row.size());
}

void ServedWriter::SendItem(ServerLink& link, int index, const Item& item) {
  const auto ranges = std::as_bytes(std::span(item.ranges));
  const std::span<std::byte> room =
      link.Begin(AddRequest{.stream = static_cast<std::uint32_t>(index),
                            .table = item.table,
                            .has_priority = item.priority ? 1U : 0U,
                            .priority = item.priority.value_or(0),
                            .sequence = item.sequence},
                 ranges.size());
  std::memcpy(room.data(), ranges.data(), ranges.size());
}

// From its first kept step on.
void ServedWriter::Begin(ServerLink& link, int index) {
  Stream& stream = streams_[index];
  if (stream.begun) return;
  TakeAnswers(link, 0);  // So that the next one is of this.
  const std::string text = EncodeStreams({.streams = {{.index = static_cast<std::uint32_t>(index),
                                                       .id = stream.id,
                                                       .first_step = stream.steps.begin()}},
                                          .steps = layout_.steps(),
                                          .options = options_});
  const std::span<std::byte> room = link.Begin(RequestKind::kStreams, text.size());
  std::memcpy(room.data(), text.data(), text.size());
  link.Send();
  const std::optional<Error> error = ErrorIn(link.Answer({}));
  link.Release();
  if (error) throw *error;
  std::int64_t sent = stream.steps.begin();
  const auto send_steps_to = [&](std::int64_t end) {
    for (; sent < end; ++sent) SendStep(link, index, stream, sent);
  };
  for (const Item& item : stream.items) {
    send_steps_to(item.end);  // It may reach back no further than from there.
    SendItem(link, index, item);
  }
  send_steps_to(stream.steps.end());
  stream.begun = true;
}

void ServedWriter::SendFlush(ServerLink& link, int index, const Deadline& deadline) {
  Begin(link, index);
  link.Begin(FlushRequest{.stream = static_cast<std::uint32_t>(index),
                          .wait = deadline.remaining().count()});
  asked_.push_back({.stream = index, .flushed = streams_[index].flushed, .deadline = deadline});
}

void ServedWriter::Flush(int index, const Deadline& deadline) {
  Stream& stream = streams_[index];
  if (stream.items.empty()) return;
  stream.flushed = stream.items_added;
  finder_->With(link_, /*wants_memory=*/false,
                std::max(kRingBytesMin, 4 * kStepsUnderWay * row_bytes_), deadline,
                [&](ServerLink& link) {
                  if (link.IsFirstUse()) return FlushAgain(link, deadline);  // This one, too.
                  TakeAnswers(link, kAskedMax);
                  SendFlush(link, index, deadline);
                  link.Send();
                });
}

// ---- What is answered

// Until no more than `left` flushes wait for theirs.
void ServedWriter::TakeAnswers(ServerLink& link, std::size_t left) {
  while (asked_.size() > left) {
    const std::span<const std::byte> answer = link.Answer(asked_.front().deadline.remaining());
    TakeAnswer(answer);
    link.Release();
  }
}

void ServedWriter::TakeAnswer(std::span<const std::byte> answer) {
  const Asked asked = asked_.front();
  asked_.pop_front();
  Stream& stream = streams_[asked.stream];
  const std::optional<Error> error = ErrorIn(answer);
  if (!error) return Forget(stream, asked.flushed);
  if (!failure_) failure_.emplace(*error);
  if (error->code() == ErrorCode::kDeadlineExceeded) return;  // It is all still there.
  stream.begun = false;
  // What is wrong whatever the state of the server would be wrong again.
  if (error->code() == ErrorCode::kInvalidArgument) Forget(stream, asked.flushed);
}

void ServedWriter::Forget(Stream& stream, std::uint64_t flushed) {
  while (!stream.items.empty() && stream.items.front().sequence <= flushed) {
    stream.items.pop_front();
  }
  std::int64_t first = stream.steps.end() - options_.history;
  for (const Item& item : stream.items) first = std::min(first, item.first);
  stream.steps.DropBefore(first);
}

// On a new connection, where nothing has begun: what was flushed and not acknowledged.
void ServedWriter::FlushAgain(ServerLink& link, const Deadline& deadline) {
  Disconnected();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    if (stream.items.empty() || stream.items.front().sequence > stream.flushed) continue;
    SendFlush(link, static_cast<int>(i), deadline);
  }
  link.Send();
}

void ServedWriter::Disconnected() {
  asked_.clear();
  for (Stream& stream : streams_) stream.begun = false;
}

template <typename Work>
bool ServedWriter::Try(Work work) {
  if (link_ == nullptr) return false;
  try {
    work(*link_);
    return true;
  } catch (const ServerGone&) {
    link_.reset();
    Disconnected();
    return false;
  }
}

void ServedWriter::Await(const Deadline& deadline) {
  if (asked_.empty() && link_ != nullptr && !failure_) return;
  finder_->With(link_, /*wants_memory=*/false,
                std::max(kRingBytesMin, 4 * kStepsUnderWay * row_bytes_), deadline,
                [&](ServerLink& link) {
                  if (link.IsFirstUse()) FlushAgain(link, deadline);
                  TakeAnswers(link, 0);
                });
  if (failure_) throw *std::exchange(failure_, std::nullopt);
}

}  // namespace menger
