// What a replay server tells its client, from the welcome on, over rings or TCP: a server that
// answers with whatever the input has, to a client that asks for tables, draws and gathers, writes,
// updates and looks.
//
// The input is a list of answers: a 16-byte head with the length of each, then the answer; over TCP
// behind one that says that rows follow, those. What the first ones are to, and what of it the
// server really has, is in the first byte.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "fuzz.h"
#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"
#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/served_replay.h"
#include "menger/replay/replay_store.h"

namespace menger::fuzz {
namespace {

using std::chrono::milliseconds;

// Of the first byte.
constexpr unsigned kWelcomes = 1;  // Answers to greetings are as they should be,
constexpr unsigned kTables = 2;    // and those to who asks for tables.
constexpr unsigned kTcp = 4;       // All of it comes over TCP.

TableOptions TheTable() {
  return {.name = "table",
          .items = {.steps = Spec({LeafSpec::Discrete("value", 1'000'000)}),
                    .columns = {{.name = "stack", .leaf = "value", .rows = 4},
                                {.name = "last", .leaf = "value", .rows = 1}}},
          .items_max = 100,
          .bytes_max = std::size_t{1} << 20};
}

// Takes the next answer off an input; behind its end, one that is none: who gets no answer waits.
Bytes Next(std::span<const std::byte>& input) {
  if (input.size() < 16) return Bytes(4);
  const std::size_t bytes = std::min<std::size_t>(
      static_cast<std::size_t>(input[0]) + 256 * static_cast<std::size_t>(input[1]),
      input.size() - 16);
  const auto answer = input.subspan(16, bytes);
  input = input.subspan(16 + bytes);
  return {answer.begin(), answer.end()};
}

// Where all inputs are read.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "menger_fuzz_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  static const std::string& path() {
    static const Folder folder;
    return folder.path_;
  }

 private:
  std::string path_;
};

class Server {
 public:
  Server(std::span<const std::byte> input, unsigned form)
      : input_(input),
        form_(form),
        store_({.tables = {TheTable()}, .shared = true}),
        arena_(store_.chunks().OpenArena()),
        records_(store_.chunks().OpenRecords()),
        listener_(Folder::path() + "/socket"),
        tcp_listener_("127.0.0.1:0"),
        thread_([this] { Serve(); }) {}
  ~Server() {
    stopping_ = true;
    thread_.join();
  }

  const std::string& address() const {
    return by_tcp() ? tcp_listener_.address() : listener_.path();
  }

 private:
  void Serve() {
    while (!stopping_) {
      try {
        if (by_tcp()) {
          if (auto socket = tcp_listener_.Accept()) ServeByTcp(std::move(*socket));
        } else if (const auto socket = listener_.Accept()) {
          ServeByRings(*socket);
        }
      } catch (const Error&) {  // He has gone.
      }
      std::this_thread::yield();
    }
  }

  bool by_tcp() const { return (form_ & kTcp) != 0; }
  Deadline Soon() const { return Deadline::After(std::chrono::seconds(5)).OrWhen(stopping_); }
  Bytes WelcomeBytes() {
    if ((form_ & kWelcomes) == 0) return Next(input_);
    Bytes welcome;
    AppendPlain(Welcome{}, welcome);
    return welcome;
  }

  void ServeByRings(const FileDescriptor& socket) {
    const DescriptorMessage message = ReceiveDescriptors(socket, sizeof(Greeting), Soon());
    const auto greeting = PlainReader(message.bytes).Take<Greeting>();
    RingChannel channel(std::size_t{1} << 16);
    const std::array descriptors = {channel.descriptor(), arena_.get(), records_.get()};
    const Bytes welcome = WelcomeBytes();
    if (welcome.empty()) return;
    TrySendDescriptors(socket, welcome,
                       std::span(descriptors).first(greeting.wants_memory != 0 ? 3 : 1));
    while (!HasHungUp(socket) && !stopping_ && AnswerNext(channel)) {
    }
  }

  void ServeByTcp(FileDescriptor socket) {
    StreamChannel channel(std::move(socket), std::size_t{1} << 16);
    if (channel.Receive(Soon()).data() == nullptr) return;  // The greeting.
    channel.Release();
    if (!Say(channel, WelcomeBytes())) return;
    while (!stopping_ && AnswerNext(channel)) {
      if (!rows_follow_) continue;
      const Bytes rows = Next(input_);
      const std::span<const std::byte> pieces[] = {rows};
      channel.SendBytes(pieces, Soon());
      return;  // Who was promised more rows than these waits for them until he is left.
    }
  }

  // False where it can say no more.
  bool AnswerNext(MessageChannel& channel) {
    rows_follow_ = false;
    const std::span<const std::byte> request = channel.Receive(Deadline::After(milliseconds(1)));
    if (request.data() == nullptr) return true;
    const auto kind = PlainReader(request).Take<RequestKind>();
    channel.Release();
    const bool is_silent =
        kind == RequestKind::kAppend || kind == RequestKind::kAdd || kind == RequestKind::kRelease;
    return is_silent || Answer(channel, kind);
  }

  bool Answer(MessageChannel& channel, RequestKind kind) {
    Bytes answer;
    if (kind == RequestKind::kTables && (form_ & kTables) != 0) {
      const TableOptions* const tables[] = {&store_.table(0).options()};
      AppendPlain(TextReply{}, answer);
      const std::string text = EncodeTables(tables);
      AppendArray(std::span(text.data(), text.size()), answer);
    } else {
      answer = Next(input_);
    }
    if (answer.size() >= sizeof(ReplyKind)) {
      rows_follow_ = PlainReader(answer).Take<ReplyKind>() == ReplyKind::kRows;
    }
    return Say(channel, answer);
  }

  static bool Say(MessageChannel& channel, const Bytes& message) {
    if (message.empty() || message.size() > channel.entry_bytes_max()) return false;
    const std::span<std::byte> room = channel.Reserve(message.size(), Deadline::After({}));
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), message.data(), message.size());
    channel.Send();
    return true;
  }

  std::span<const std::byte> input_;
  const unsigned form_;
  bool rows_follow_ = false;
  ReplayStore store_;
  const FileDescriptor arena_;
  const FileDescriptor records_;
  ListeningSocket listener_;
  ListeningTcpSocket tcp_listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

void Try(auto work) {
  try {
    work();
  } catch (const Error&) {
  }
}

void Use(ServedReplay& client) {
  if (client.tables() == 0) return;
  const Deadline now = Deadline::After({});
  Try([&] {
    const auto sampler = client.NewSampler(0);
    Sample sample;
    sampler->SampleInto({.count = 3, .deadline = now}, sample);
    BatchGatherer gatherer(client.table(0).items, std::max(sample.size(), 1), 1);
    gatherer.Gather(sample);
  });
  Try([&] {
    const auto writer = client.NewWriter(TheTable().items.steps, {}, 1);
    const std::int64_t value = 1;
    const auto* const leaf = reinterpret_cast<const std::byte*>(&value);
    writer->Append(0, {&leaf, 1}, 0);
    writer->Add(0, 0, {}, {{{.first = 0, .count = 1}, {.first = 0, .count = 1}}});
    writer->Flush(0, now);
    writer->Await(now);
  });
  Try([&] { client.info(0); });  // By a connection that stays, and the server has one at a time.
  Try([&] { client.server(); });
}

class Answers {
 public:
  explicit Answers(unsigned form) : bytes_{static_cast<std::byte>(form)} {}
  template <typename Reply>
  Answers& Add(const Reply& reply, std::span<const std::byte> more = {}) {
    Bytes bytes;
    AppendPlain(reply, bytes);
    return AddBytes(bytes, more);
  }
  Answers& AddBytes(Bytes bytes, std::span<const std::byte> more) {
    AppendArray(more, bytes);
    bytes_.resize(bytes_.size() + 16);
    bytes_[bytes_.size() - 16] = static_cast<std::byte>(bytes.size() % 256);
    bytes_[bytes_.size() - 15] = static_cast<std::byte>(bytes.size() / 256);
    AppendArray(bytes, bytes_);
    return *this;
  }
  Answers& AddText(const std::string& text) {
    return Add(TextReply{}, std::as_bytes(std::span(text.data(), text.size())));
  }
  Answers& AddItem() {
    Bytes more;
    AppendPlain(SampledItem{.key = {.number = 1}, .probability = 1}, more);
    for (int i = 0; i < 2; ++i) AppendPlain(Slice{.chunk = 0, .offset = 0, .length = 0}, more);
    for (int i = 0; i < 2; ++i) AppendPlain(std::uint16_t{1}, more);
    return Add(ItemsReply{.is_last = 1, .items = 1, .slices = 2, .table_items = 1}, more);
  }
  Answers& AddRows() {
    constexpr std::int64_t kValues[] = {1, 2};
    Add(RowsReply{.items = 1, .slices = 2, .runs = 1, .row_bytes = 16, .table_items = 1});
    Bytes more;
    AppendPlain(SampledItem{.key = {.number = 1}, .probability = 1}, more);
    AppendPlain(Slice{.chunk = 0, .offset = 0, .length = 2}, more);
    AppendPlain(Slice{.chunk = 0, .offset = 1, .length = 1}, more);
    for (int i = 0; i < 2; ++i) AppendPlain(std::uint16_t{1}, more);
    AppendPlain(RowRun{.leaf = 0, .rows = 2}, more);
    return AddBytes(more, std::as_bytes(std::span(kValues)));
  }
  Answers& AddRest() {
    Add(DoneReply{}).Add(DoneReply{});
    return Add(InfoReply{}).AddText(EncodeServer({.durability = "none"}));
  }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace

void Read(std::span<const std::byte> input) {
  if (input.empty()) return;
  const auto form = static_cast<unsigned>(input[0]);
  Server server(input.subspan(1), form);
  Try([&] {  // A machine that is slow has errors where there should be none.
    ServedReplay client({.socket = server.address(), .patience = milliseconds(20)});
    Use(client);
  });
}

std::vector<Bytes> Seeds() {
  const TableOptions table = TheTable();
  const TableOptions* const tables[] = {&table};
  return {Answers(kWelcomes | kTables).AddItem().AddRest().bytes(),
          Answers(kWelcomes | kTables | kTcp).AddRows().AddRest().bytes(),
          Answers(kTables | kTcp).Add(Welcome{}).AddRows().bytes(),
          Answers(kWelcomes).AddText(EncodeTables(tables)).bytes(),
          Answers(kTables).Add(Welcome{}).bytes()};
}

}  // namespace menger::fuzz
