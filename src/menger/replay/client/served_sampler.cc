#include "menger/replay/client/served_sampler.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "menger/base/plain_bytes.h"
#include "menger/replay/client/row_receiver.h"

namespace menger {
namespace {

// Answers of a million items come in parts of a quarter of this.
constexpr std::size_t kSampleRingBytes = std::size_t{1} << 20;

std::optional<std::uint64_t> StepsOf(const ItemSpec& items) {
  return items.open ? std::nullopt : std::optional(StepsId(items.steps));
}

}  // namespace

struct ServedSampler::State {
  State(std::shared_ptr<const ServerFinder> server_finder, int table_index)
      : finder(std::move(server_finder)),
        table(table_index),
        columns(finder->tables()[table_index].items.columns.size()),
        steps_id(StepsOf(finder->tables()[table_index].items)) {
    const ItemSpec& items_drawn = finder->tables()[table_index].items;
    if (!items_drawn.open) rows.emplace(items_drawn);
  }

  void Draw(ServerLink& server, const SampleRequest& request,
            const std::shared_ptr<const void>& lease, std::uint64_t number, Sample& sample);
  bool TakeItems(ServerLink& server, std::span<const std::byte> answer,
                 const std::shared_ptr<const void>& lease, Sample& sample);

  const std::shared_ptr<const ServerFinder> finder;
  const int table;
  const std::size_t columns;
  const std::optional<std::uint64_t> steps_id;  // Of the chunks that items name; none: any.

  std::mutex mutex;  // Of all that follows: samples may be released by another thread.
  std::unique_ptr<ServerLink> link;
  std::uint64_t leases = 0;
  std::optional<RowReceiver> rows;  // Where they come with the answer; not of open tables.

  // Kept for their memory.
  std::vector<SampledItem> items;
  std::vector<Slice> slices;
  std::vector<std::uint16_t> counts;
};

// The right to a sample's rows, given back when it goes: the server hears of it in its own time.
class ServedSampler::Lease {
 public:
  Lease(std::shared_ptr<State> state, std::uint64_t number)
      : state_(std::move(state)), number_(number) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  ~Lease() {
    if (memory_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    if (state_->link == nullptr || state_->link->memory() != memory_) return;  // It went with it.
    try {
      state_->link->Begin(ReleaseRequest{.lease = number_});
      state_->link->Post();
    } catch (const Error&) {
      state_->link.reset();  // The server has gone, or is to think so.
    }
  }

  void Hold(std::shared_ptr<const ServerMemory> memory) { memory_ = std::move(memory); }

 private:
  const std::shared_ptr<State> state_;
  const std::uint64_t number_;
  std::shared_ptr<const ServerMemory> memory_;  // Of the link that it was drawn by.
};

ServedSampler::ServedSampler(std::shared_ptr<const ServerFinder> finder, int table)
    : state_(std::make_shared<State>(std::move(finder), table)) {}

ServedSampler::~ServedSampler() {
  const std::lock_guard lock(state_->mutex);
  state_->link.reset();
}

const ItemSpec& ServedSampler::items() const {
  return state_->finder->tables()[state_->table].items;
}

void ServedSampler::SampleInto(const SampleRequest& request, Sample& sample) {
  State& state = *state_;
  sample.Release();
  const std::unique_lock lock(state.mutex);
  state.finder->With(state.link, /*wants_memory=*/true, kSampleRingBytes, request.deadline,
                     [&](ServerLink& server) {
                       const std::uint64_t number = ++state.leases;
                       const auto lease = std::make_shared<Lease>(state_, number);
                       state.Draw(server, request, lease, number, sample);
                       lease->Hold(server.memory());
                     });
}

void ServedSampler::State::Draw(ServerLink& server, const SampleRequest& request,
                                const std::shared_ptr<const void>& lease, std::uint64_t number,
                                Sample& sample) {
  const std::chrono::nanoseconds wait = request.deadline.remaining();
  server.Begin(SampleCall{.table = static_cast<std::uint32_t>(table),
                          .count = static_cast<std::uint32_t>(std::max(request.count, 0)),
                          .has_bound = static_cast<std::uint16_t>(request.staleness_max ? 1 : 0),
                          .whole = static_cast<std::uint16_t>(request.whole ? 1 : 0),
                          .wait = wait.count(),
                          .version = request.version,
                          .staleness_max = request.staleness_max.value_or(0),
                          .lease = number});
  server.Send();
  try {
    for (bool more = true; more;) {
      const std::span<const std::byte> answer = server.Answer(wait);
      more = TakeItems(server, answer, lease, sample);
      server.Release();
    }
  } catch (...) {
    sample.Release();
    throw;
  }
}

// True where more are to come. Throws what the server could not do.
bool ServedSampler::State::TakeItems(ServerLink& server, std::span<const std::byte> answer,
                                     const std::shared_ptr<const void>& lease, Sample& sample) {
  const auto kind = PlainReader(answer).Take<ReplyKind>();
  if (kind == ReplyKind::kRows && rows) {
    rows->Receive(server, PlainReader(answer).Take<RowsReply>(), sample);
    return false;
  }
  if (kind != ReplyKind::kItems || server.memory() == nullptr) {
    const std::optional<Error> error = ErrorIn(answer);
    server.Release();
    sample.Release();
    if (error) throw *error;
    throw DataLoss("a replay server gave another answer");
  }
  PlainReader reader(answer);
  const auto reply = reader.Take<ItemsReply>();
  reader.TakeInto(reply.items, items);
  reader.TakeInto(reply.slices, slices);
  reader.TakeInto(std::uint64_t{reply.items} * columns, counts);
  if (sample.size() == 0) {
    sample.Begin(server.memory()->chunks(), finder->tables()[table].items, reply.table_items,
                 lease);
  }
  std::span<const Slice> rest = slices;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::span<const std::uint16_t> here = std::span(counts).subspan(i * columns, columns);
    std::size_t count = 0;
    for (const std::uint16_t of_column : here) count += of_column;
    if (count > rest.size()) throw DataLoss("a replay server sent fewer slices than it said");
    for (const Slice& slice : rest.first(count)) {
      if (server.memory()->Has(slice, steps_id)) continue;
      throw DataLoss("a replay server sent rows that it has not");
    }
    sample.Add(items[i], rest.first(count), here);
    rest = rest.subspan(count);
  }
  return reply.is_last == 0;
}

}  // namespace menger
