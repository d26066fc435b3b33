#include "menger/replay/server/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "menger/base/log.h"
#include "menger/base/sharing/unix_socket.h"

namespace menger {
namespace {

constexpr std::size_t kLeasesMax = 64;  // Samples that a client has not released,
constexpr std::int64_t kLeasedItemsMax = 2 * kSampleItemsMax;     // and items of all of them.
constexpr std::size_t kStreamBytesMax = std::size_t{256} << 20;   // What its streams may remember.
constexpr std::size_t kPendingBytesMax = std::size_t{256} << 20;  // Of items that wait for Flush.
constexpr std::size_t kDraftBytes = 96;  // What an ItemDraft has allocated, beside its slices.
constexpr std::chrono::seconds kRoomWaitMax{60};
// A client that has not read its answers for so long is held to have gone.
constexpr std::chrono::seconds kReadTimeMax{30};
constexpr std::chrono::hours kForever{24 * 365};
constexpr const char* kReadsNothing = "it does not read its answers";

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Connection::Connection(ReplayStore& store, const ServerCalls& calls,
                       std::unique_ptr<RingChannel> channel, FileDescriptor socket)
    : store_(store),
      calls_(calls),
      socket_(std::move(socket)),
      channel_(std::move(channel)),
      row_requests_(store) {}

Connection::Connection(ReplayStore& store, const ServerCalls& calls,
                       std::unique_ptr<StreamChannel> channel)
    : store_(store),
      calls_(calls),
      rows_(std::make_unique<RowSender>(*channel)),
      channel_(std::move(channel)),
      row_requests_(store) {}

void Connection::Finish() {
  finishing_.store(true, std::memory_order_release);
  channel_->Interrupt();
}

void Connection::Abandon() {
  finishing_.store(true, std::memory_order_release);
  gone_.store(true, std::memory_order_release);
  channel_->Interrupt();
}

void Connection::Serve() {
  try {
    const Deadline deadline = Deadline::After(kForever).OrWhen(finishing_);
    while (!gone_.load(std::memory_order_acquire)) {
      const std::span<const std::byte> request = channel_->Receive(deadline);
      if (request.data() == nullptr) break;
      Handle(request);
      channel_->Release();
    }
  } catch (const ChannelClosed&) {  // As who has no more to say does.
  } catch (...) {
    const Error error = TranslateCurrentException();
    if (!gone_.load(std::memory_order_acquire)) {
      LogWarning("a client of the replay server ({}) is dropped: {}",
                 socket_.valid() ? NameOfPeer(socket_) : "over TCP", error.what());
    }
  }
  streams_.clear();
  row_requests_.End();
  free_samples_.clear();
  channel_->End();
  if (socket_.valid()) SayTheEnd(socket_);
  done_.store(true, std::memory_order_release);
}

// ---- Requests

void Connection::Handle(std::span<const std::byte> request) {
  PlainReader reader(request);
  PlainReader kind_reader(request);
  switch (kind_reader.Take<RequestKind>()) {
    case RequestKind::kTables: {
      std::vector<const TableOptions*> tables;
      for (int i = 0; i < store_.tables(); ++i) tables.push_back(&store_.table(i).options());
      return AnswerText(EncodeTables(tables));
    }
    case RequestKind::kServer:
      return AnswerText(EncodeServer(calls_.info()));
    case RequestKind::kStreams:
      return BeginStreams(TextOf(request.subspan(sizeof(RequestKind))));
    case RequestKind::kAppend:
      return Append(reader);
    case RequestKind::kAdd:
      return Add(reader);
    case RequestKind::kFlush:
      return Flush(reader);
    case RequestKind::kSample:
      return SampleItems(reader);
    case RequestKind::kRelease:
      return Release(reader);
    case RequestKind::kUpdate:
      return Update(reader);
    case RequestKind::kDelete:
      return Delete(reader);
    case RequestKind::kInfo:
      return Info(reader);
    case RequestKind::kCheckpoint:
      return Checkpoint(reader);
    case RequestKind::kReset:
      return Reset(reader);
    case RequestKind::kBeginRows:
      return row_requests_.Begin(reader);
    case RequestKind::kColumn:
      return row_requests_.Column(reader);
    case RequestKind::kRow:
      return row_requests_.Row(reader);
    case RequestKind::kAddRows:
      return row_requests_.Add(reader);
    case RequestKind::kFlushRows:
      return FlushRows(reader);
  }
  throw DataLoss("it sent a request of a kind that there is not");
}

// ---- Writers

// A client's wishes, as far as they cost the others nothing: what a stream remembers beside its
// chunks is not counted by the store.
WriterOptions Connection::Bounded(const WriterOptions& options, std::size_t streams) const {
  options.Check();
  WriterOptions bounded = options;
  bounded.room_wait_max = std::min<std::chrono::nanoseconds>(options.room_wait_max, kRoomWaitMax);
  bounded.bytes_max = std::min(options.bytes_max, store_.chunks().bytes_max() / 4);
  const std::size_t each =
      sizeof(Stream) + 512 + sizeof(std::uint64_t) * static_cast<std::size_t>(options.history);
  if (each * streams > kStreamBytesMax) {
    throw InvalidArgument(
        "{} streams with a history of {} steps remember {} bytes, and a client has {}; use several "
        "writers, or a shorter history",
        streams, options.history, each * streams, kStreamBytesMax);
  }
  return bounded;
}

void Connection::BeginStreams(std::string_view text) {
  AnswerErrors([&] {
    const StreamsRequest request = DecodeStreams(text);
    std::size_t streams = streams_.size();
    for (const StreamsRequest::Stream& stream : request.streams) {
      streams = std::max<std::size_t>(streams, stream.index + std::size_t{1});
    }
    WriterOptions options = Bounded(request.options, streams);
    const auto layout = std::make_shared<const ChunkLayout>(request.steps, 1);
    for (const StreamsRequest::Stream& stream : request.streams) {
      options.stream = stream.id;
      if (stream.index >= streams_.size()) streams_.resize(stream.index + 1);
      ForgetPending(streams_[stream.index]);
      streams_[stream.index] = {.id = stream.id,
                                .first_step = stream.first_step,
                                .layout = layout,
                                .writer = store_.NewWriter(request.steps, options),
                                .options = options};
    }
    AnswerDone(nullptr);
  });
}

void Connection::Append(PlainReader& reader) {
  const auto request = reader.Take<AppendRequest>();
  Stream& stream = StreamAt(request.stream);
  if (stream.failure) return;
  leaves_.clear();
  for (int leaf = 0; leaf < stream.layout->steps().size(); ++leaf) {
    leaves_.push_back(reader.Take(stream.layout->row_bytes(leaf)).data());
  }
  try {
    stream.writer->Append(leaves_, request.version,
                          Deadline::After(stream.options.room_wait_max).OrWhen(gone_));
  } catch (const Error& error) {
    stream.failure.emplace(error);
  }
}

void Connection::Add(PlainReader& reader) {
  const auto request = reader.Take<AddRequest>();
  Stream& stream = StreamAt(request.stream);
  Table& table = TableAt(request.table);
  if (stream.failure) return;
  reader.TakeInto(table.options().items.columns.size(), ranges_);
  try {
    for (StepRange& range : ranges_) {
      if (range.first < stream.first_step) {
        throw InvalidArgument("an item shows step {} of a stream that began at {}", range.first,
                              stream.first_step);
      }
      range.first -= stream.first_step;
    }
    const std::optional<double> priority =
        request.has_priority != 0 ? std::optional(request.priority) : std::nullopt;
    CountPending(stream, ranges_);
    stream.writer->Add(table, priority, ranges_, request.sequence);
  } catch (const Error& error) {
    stream.failure.emplace(error);
  }
}

// Drafts are beside what the store counts: a client that never flushes has a bound, too.
void Connection::CountPending(Stream& stream, std::span<const StepRange> ranges) {
  std::size_t bytes = sizeof(ItemDraft) + kDraftBytes;
  for (const StepRange& range : ranges) {
    const auto rows = static_cast<std::size_t>(std::max(range.count, 0));
    bytes += (rows / static_cast<std::size_t>(stream.options.chunk_steps) + 2) * sizeof(Slice);
  }
  if (pending_bytes_ + bytes > kPendingBytesMax) {
    throw Unavailable(
        "items of {} bytes wait to be inserted, which is all that a client has: Flush",
        pending_bytes_);
  }
  stream.pending_bytes += bytes;
  pending_bytes_ += bytes;
}

void Connection::ForgetPending(Stream& stream) {
  pending_bytes_ -= std::exchange(stream.pending_bytes, 0);
}

void Connection::Flush(PlainReader& reader) {
  const auto request = reader.Take<FlushRequest>();
  // Before the answer, whose reader then finds the ring empty, and writes at its start again.
  channel_->Release();
  Stream& stream = StreamAt(request.stream);
  if (stream.failure) return AnswerDone(&*stream.failure, request.stream);
  try {
    stream.writer->Flush(Within(request.wait));
    ForgetPending(stream);
    AnswerDone(nullptr, request.stream);
  } catch (const Error& error) {
    // What was late is still there for another Flush.
    if (error.code() != ErrorCode::kDeadlineExceeded) stream.failure.emplace(error);
    AnswerDone(&error, request.stream);
  }
}

// ---- Samplers

void Connection::SampleItems(PlainReader& reader) {
  const auto request = reader.Take<SampleCall>();
  Table& table = TableAt(request.table);
  std::unique_ptr<Sample> sample;
  AnswerErrors([&] {
    sample = Draw(table, request);
    if (rows_ != nullptr) return;
    SendItems(*sample);
    leased_items_ += sample->size();
    leases_[request.lease] = std::move(sample);
  });
  if (sample == nullptr) return;
  // Not to be answered with an error where a part was sent.
  if (rows_ != nullptr) rows_->Send(*sample, kReadTimeMax, gone_);
  sample->Release();
  free_samples_.push_back(std::move(sample));
}

std::unique_ptr<Sample> Connection::Draw(Table& table, const SampleCall& request) {
  if (rows_ != nullptr && table.options().items.open) {
    throw FailedPrecondition(
        "table '{}' is open, and rows of open tables are not sent over TCP; use the server's Unix "
        "socket",
        table.options().name);
  }
  if (leases_.size() >= kLeasesMax || leased_items_ + request.count > kLeasedItemsMax) {
    throw FailedPrecondition(
        "{} samples of {} items were drawn and not released; release some first", leases_.size(),
        leased_items_);
  }
  if (leases_.contains(request.lease)) {
    throw InvalidArgument("the lease {} is in use", request.lease);
  }
  if (free_samples_.empty()) free_samples_.push_back(std::make_unique<Sample>());
  std::unique_ptr<Sample> sample = std::move(free_samples_.back());
  free_samples_.pop_back();
  SampleRequest draw{
      .count = static_cast<int>(std::min<std::uint32_t>(request.count, kSampleItemsMax + 1U)),
      .whole = request.whole != 0,
      .deadline = Within(request.wait),
      .version = request.version};
  if (request.has_bound != 0) draw.staleness_max = request.staleness_max;
  table.SampleInto(draw, *sample);
  return sample;
}

// In as many parts as entries of the ring need.
void Connection::SendItems(const Sample& sample) {
  const int columns = static_cast<int>(sample.spec()->columns.size());
  const std::size_t room = channel_->entry_bytes_max() - sizeof(ItemsReply);
  for (int begin = 0; begin < sample.size();) {
    int end = begin;
    std::size_t bytes = 0;
    std::size_t slices = 0;
    counts_.clear();
    for (; end < sample.size(); ++end) {
      const std::size_t more = sample.slices(end).size();
      const std::size_t item = sizeof(SampledItem) + more * sizeof(Slice) +
                               static_cast<std::size_t>(columns) * sizeof(std::uint16_t);
      if (bytes + item > room) break;
      bytes += item;
      slices += more;
      for (int column = 0; column < columns; ++column) {
        counts_.push_back(static_cast<std::uint16_t>(sample.slices(end, column).size()));
      }
    }
    if (end == begin) {
      throw FailedPrecondition(
          "an item of {} slices is too large to be sent; chunks of more steps have fewer slices",
          sample.slices(begin).size());
    }
    std::byte* out = Room(sizeof(ItemsReply) + bytes).data();
    const auto put = [&out](const void* from, std::size_t size) {
      std::memcpy(out, from, size);
      out += size;
    };
    const ItemsReply reply{.is_last = end == sample.size() ? 1U : 0U,
                           .items = static_cast<std::uint32_t>(end - begin),
                           .slices = static_cast<std::uint32_t>(slices),
                           .table_items = sample.table_items()};
    put(&reply, sizeof reply);
    put(&sample.items()[begin], sizeof(SampledItem) * static_cast<std::size_t>(end - begin));
    for (int i = begin; i < end; ++i) {
      put(sample.slices(i).data(), sample.slices(i).size_bytes());
    }
    put(counts_.data(), counts_.size() * sizeof(counts_[0]));
    begin = end;
  }
  Send();
}

void Connection::Release(PlainReader& reader) {
  const auto found = leases_.find(reader.Take<ReleaseRequest>().lease);
  if (found == leases_.end()) return;  // Its draw has failed.
  leased_items_ -= found->second->size();
  found->second->Release();
  free_samples_.push_back(std::move(found->second));
  leases_.erase(found);
}

// ---- Everything else

void Connection::Update(PlainReader& reader) {
  const auto request = reader.Take<TableRequest>();
  Table& table = TableAt(request.table);
  reader.TakeInto(request.count, updates_);
  AnswerErrors([&] { AnswerPlain(FoundReply{.found = table.UpdatePriorities(updates_)}); });
}

void Connection::Delete(PlainReader& reader) {
  const auto request = reader.Take<TableRequest>();
  Table& table = TableAt(request.table);
  reader.TakeInto(request.count, keys_);
  AnswerErrors([&] { AnswerPlain(FoundReply{.found = table.Delete(keys_)}); });
}

void Connection::Info(PlainReader& reader) {
  Table& table = TableAt(reader.Take<TableRequest>().table);
  AnswerPlain(InfoReply{.info = table.info()});
}

void Connection::Checkpoint(PlainReader& reader) {
  const auto request = reader.Take<WaitRequest>();
  AnswerErrors([&] {
    calls_.checkpoint(Within(request.wait));
    AnswerDone(nullptr);
  });
}

void Connection::Reset(PlainReader& reader) {
  Table& table = TableAt(reader.Take<TableRequest>().table);
  AnswerErrors([&] {
    table.Reset();
    AnswerDone(nullptr);
  });
}

void Connection::FlushRows(PlainReader& reader) {
  const std::optional<Error> error = row_requests_.Flush(Within(reader.Take<WaitRequest>().wait));
  AnswerDone(error ? &*error : nullptr, static_cast<std::uint32_t>(row_requests_.pending()));
}

Connection::Stream& Connection::StreamAt(std::uint32_t index) {
  if (index >= streams_.size() || streams_[index].writer == nullptr) {
    throw DataLoss("stream {} was never begun", index);
  }
  return streams_[index];
}

Table& Connection::TableAt(std::uint32_t index) {
  if (index >= static_cast<std::uint32_t>(store_.tables())) {
    throw DataLoss("table {} of {}", index, store_.tables());
  }
  return store_.table(static_cast<int>(index));
}

Deadline Connection::Within(std::int64_t nanoseconds) const {
  return Deadline::After(std::chrono::nanoseconds(nanoseconds)).OrWhen(gone_);
}

// ---- Answers

template <typename Work>
void Connection::AnswerErrors(Work work) {
  std::optional<Error> failure;
  try {
    work();
  } catch (const Error& error) {
    failure.emplace(error);
  }
  if (failure) AnswerDone(&*failure);
}

void Connection::AnswerDone(const Error* error, std::uint32_t stream) {
  const std::string_view text = error != nullptr ? error->what() : "";
  const std::size_t bytes = std::min(text.size(), channel_->entry_bytes_max() - sizeof(DoneReply));
  const DoneReply reply{.failed = error != nullptr ? 1U : 0U,
                        .code = error != nullptr ? static_cast<std::uint32_t>(error->code()) : 0,
                        .stream = stream};
  const std::span<std::byte> room = Room(sizeof reply + bytes);
  std::memcpy(room.data(), &reply, sizeof reply);
  if (bytes > 0) std::memcpy(room.data() + sizeof reply, text.data(), bytes);
  Send();
}

void Connection::AnswerText(std::string_view text) {
  if (text.size() > channel_->entry_bytes_max() - sizeof(TextReply)) {
    const Error error =
        Unavailable("an answer of {} bytes is too long for this connection", text.size());
    return AnswerDone(&error);
  }
  const TextReply reply;
  const std::span<std::byte> room = Room(sizeof reply + text.size());
  std::memcpy(room.data(), &reply, sizeof reply);
  std::memcpy(room.data() + sizeof reply, text.data(), text.size());
  Send();
}

template <typename Reply>
void Connection::AnswerPlain(const Reply& reply) {
  std::memcpy(Room(sizeof reply).data(), &reply, sizeof reply);
  Send();
}

// Not once it is gone: a wait that ended for that would be told as one that was too long.
std::span<std::byte> Connection::Room(std::size_t bytes) {
  if (gone_.load(std::memory_order_acquire)) throw Cancelled("it has gone");
  const std::span<std::byte> room =
      channel_->Reserve(bytes, Deadline::After(kReadTimeMax).OrWhen(gone_));
  if (room.data() == nullptr) throw Unavailable(kReadsNothing);
  return room;
}

void Connection::Send() {
  if (channel_->Send()) return;
  if (!channel_->Drain(Deadline::After(kReadTimeMax).OrWhen(gone_))) {
    throw Unavailable(kReadsNothing);
  }
}

}  // namespace menger
