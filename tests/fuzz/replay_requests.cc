// What clients tell a replay server: its descriptions as texts, and requests through the real ring
// to the real connection, on a store with a table. The first byte chooses.
//
// A list of requests is a 16-byte head with the length of each, then the request. How long it may
// wait is taken out: nobody else is there who could let it go on.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/replay/server/connection.h"

namespace menger::fuzz {
namespace {

constexpr std::size_t kRing = std::size_t{1} << 20;
constexpr std::uint32_t kCountMax = 1000;

enum Form : std::uint8_t { kStreams, kTables, kServer, kGreeting, kRequests, kForms };

ItemSpec Items() {
  return {.steps = Spec({LeafSpec::Discrete("value", 1'000'000)}),
          .columns = {{.name = "stack", .leaf = "value", .rows = 4},
                      {.name = "last", .leaf = "value", .rows = 1}}};
}

TableOptions TheTable() {
  return {.name = "table",
          .items = Items(),
          .sampler = {.kind = SelectorKind::kPrioritised},
          .items_max = 100,
          .bytes_max = std::size_t{1} << 20};
}

// Requests that may wait, as plain bytes.
template <typename Request>
void Hurry(std::span<std::byte> bytes) {
  if (bytes.size() < sizeof(Request)) return;
  Request request;
  std::memcpy(&request, bytes.data(), sizeof request);
  request.wait = 0;
  if constexpr (std::is_same_v<Request, SampleCall>) {
    request.count = std::min(request.count, kCountMax);
  }
  std::memcpy(bytes.data(), &request, sizeof request);
}

void HurryText(std::span<std::byte> bytes) {
  constexpr std::string_view kKey = "\"room_wait_max\":";
  auto* const text = reinterpret_cast<char*>(bytes.data());
  std::string_view rest(text, bytes.size());
  for (std::size_t at = rest.find(kKey); at != std::string_view::npos; at = rest.find(kKey, at)) {
    for (at += kKey.size(); at < rest.size() && rest[at] != ',' && rest[at] != '}'; ++at) {
      text[at] = at + 1 < rest.size() && (rest[at + 1] == ',' || rest[at + 1] == '}') ? '0' : ' ';
    }
  }
}

void HurryAll(std::span<std::byte> bytes) {
  std::uint32_t kind = 0;
  if (bytes.size() < sizeof kind) return;
  std::memcpy(&kind, bytes.data(), sizeof kind);
  if (kind == static_cast<std::uint32_t>(RequestKind::kStreams)) HurryText(bytes);
  if (kind == static_cast<std::uint32_t>(RequestKind::kFlush)) Hurry<FlushRequest>(bytes);
  if (kind == static_cast<std::uint32_t>(RequestKind::kSample)) Hurry<SampleCall>(bytes);
  if (kind == static_cast<std::uint32_t>(RequestKind::kCheckpoint)) Hurry<WaitRequest>(bytes);
}

// A connection whose client has said all that it says before the server looks.
class Client {
 public:
  Client()
      : store_({.tables = {TheTable()}, .bytes_max = std::size_t{64} << 20, .shared = true}),
        connection_(store_, calls_, Channel(), FileDescriptor()) {}

  void Say(std::span<const std::byte> request) {
    if (request.size() > channel_->entry_bytes_max()) return;
    const std::span<std::byte> room = channel_->Reserve(request.size(), Deadline::After({}));
    if (room.data() == nullptr) return;
    if (!request.empty()) std::memcpy(room.data(), request.data(), request.size());
    HurryAll(room);
  }

  void BeServed() {
    channel_->Send();
    connection_.Finish();
    connection_.Serve();
    unsigned sum = 0;
    for (;;) {
      const std::span<const std::byte> answer = channel_->Receive(Deadline::After({}));
      if (answer.data() == nullptr) break;
      for (const std::byte byte : answer) sum += static_cast<unsigned>(byte);
      channel_->Release();
    }
    asm volatile("" : : "r"(sum));
  }

 private:
  // The server's end; the client's is channel_.
  std::unique_ptr<RingChannel> Channel() {
    auto served = std::make_unique<RingChannel>(kRing);
    channel_.emplace(FileDescriptor(dup(served->descriptor())));
    return served;
  }

  ReplayStore store_;
  const ServerCalls calls_{.info = [] { return ServerInfo{.durability = "none"}; },
                           .checkpoint = [](const Deadline&) {}};
  std::optional<RingChannel> channel_;
  Connection connection_;
};

class Requests {
 public:
  template <typename Request>
  Requests& Add(const Request& request, std::span<const std::byte> more = {}) {
    std::vector<std::byte> bytes;
    AppendPlain(request, bytes);
    AppendArray(more, bytes);
    bytes_.resize(bytes_.size() + 16);
    bytes_[bytes_.size() - 16] = static_cast<std::byte>(bytes.size() % 256);
    bytes_[bytes_.size() - 15] = static_cast<std::byte>(bytes.size() / 256);
    AppendArray(bytes, bytes_);
    return *this;
  }
  template <typename Entry, std::size_t kCount>
  Requests& AddWith(TableRequest request, const std::array<Entry, kCount>& entries) {
    request.count = kCount;
    return Add(request, std::as_bytes(std::span(entries)));
  }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_{static_cast<std::byte>(kRequests)};
};

std::string TextOfStreams() {
  WriterOptions options{.chunk_steps = 4, .history = 8};
  options.room_wait_max = {};
  return EncodeStreams({.streams = {{.index = 0, .id = 7}, {.index = 2, .id = 9, .first_step = 3}},
                        .steps = Items().steps,
                        .options = options});
}

Bytes WithForm(Form form, std::string_view text) {
  Bytes bytes{static_cast<std::byte>(form)};
  AppendArray(std::as_bytes(std::span(text.data(), text.size())), bytes);
  return bytes;
}

Bytes WritingAndDrawing() {
  Requests requests;
  const std::string streams = TextOfStreams();
  requests.Add(RequestKind::kStreams, std::as_bytes(std::span(streams.data(), streams.size())));
  for (std::int64_t step = 0; step < 6; ++step) {
    requests.Add(AppendRequest{.version = 1}, std::as_bytes(std::span(&step, 1)));
    const std::array<StepRange, 2> ranges = {
        {{.first = std::max<std::int64_t>(0, step - 3),
          .count = static_cast<int>(std::min<std::int64_t>(step + 1, 4))},
         {.first = step, .count = 1}}};
    requests.Add(
        AddRequest{
            .has_priority = 1, .priority = 2, .sequence = static_cast<std::uint64_t>(step + 1)},
        std::as_bytes(std::span(ranges)));
  }
  requests.Add(FlushRequest{});
  requests.Add(
      SampleCall{.count = 5, .has_bound = 1, .version = 3, .staleness_max = 9, .lease = 1});
  requests.Add(SampleCall{.count = 2, .lease = 2}).Add(ReleaseRequest{.lease = 1});
  requests.AddWith({.kind = RequestKind::kUpdate},
                   std::array{PriorityUpdate{.key = {.number = 1}, .priority = 3}});
  requests.AddWith({.kind = RequestKind::kDelete}, std::array{ItemKey{.number = 2, .slot = 1}});
  return requests.bytes();
}

Bytes Asking() {
  Requests requests;
  requests.Add(RequestKind::kTables).Add(RequestKind::kServer).Add(TableRequest{});
  return requests.Add(WaitRequest{}).bytes();
}

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const auto form = static_cast<std::uint8_t>(input[0]) % kForms;
  input = input.subspan(1);
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  if (form == kStreams) static_cast<void>(DecodeStreams(text));
  if (form == kTables) static_cast<void>(DecodeTables(text));
  if (form == kServer) static_cast<void>(DecodeServer(text));
  if (form == kGreeting) static_cast<void>(PlainReader(input).Take<Greeting>());
  if (form != kRequests) return;
  Client client;
  while (input.size() >= 16) {
    const std::size_t bytes =
        static_cast<std::size_t>(input[0]) + 256 * static_cast<std::size_t>(input[1]);
    input = input.subspan(16);
    client.Say(input.first(std::min(bytes, input.size())));
    input = input.subspan(std::min(bytes, input.size()));
  }
  client.BeServed();
}

std::vector<Bytes> Seeds() {
  const TableOptions table = TheTable();
  const TableOptions* const tables[] = {&table};
  const Greeting greeting;
  ServerInfo info{.durability = "journal"};
  info.tables.push_back({.name = "table", .sampler = "uniform", .remover = "fifo"});
  Bytes greets{static_cast<std::byte>(kGreeting)};
  AppendPlain(greeting, greets);
  return {WithForm(kStreams, TextOfStreams()),
          WithForm(kTables, EncodeTables(tables)),
          WithForm(kServer, EncodeServer(info)),
          greets,
          WritingAndDrawing(),
          Asking()};
}

}  // namespace menger::fuzz
