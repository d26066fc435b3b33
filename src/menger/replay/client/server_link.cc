#include "menger/replay/client/server_link.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/plain_bytes.h"
#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/ring_channel.h"
#include "menger/base/sharing/tcp_socket.h"
#include "menger/base/sharing/unix_socket.h"

namespace menger {
namespace {

// How long it takes at most to see that a server has ended.
constexpr std::chrono::milliseconds kLook{50};
// How much longer than it said a server that lives may take.
constexpr std::chrono::seconds kGrace{10};
constexpr const char* kNoAnswer = "the replay server does not answer";
// A server that takes nothing for so long does not live,
constexpr std::chrono::seconds kRoomTime{60};
// nor one that begins an answer and does not send so much of it.
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

template <typename Work>
auto OrGone(Work work) {
  try {
    return work();
  } catch (const ChannelClosed&) {
    throw ServerGone("the replay server has ended");
  }
}

// However little time a call has, a server that lives shall be able to welcome.
Deadline GreetingEnd(const Deadline& deadline) {
  constexpr std::chrono::nanoseconds kGreetingTime = std::chrono::seconds(1);
  return Deadline::After(std::max(deadline.remaining(), kGreetingTime));
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A server that is stopped (by a debugger) has clients connect, and welcomes none.
DescriptorMessage ReceiveWelcome(const FileDescriptor& socket, const Deadline& deadline) {
  try {
    return ReceiveDescriptors(socket, kWelcomeBytesMax, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    throw Unavailable(kNoAnswer);
  }
}

}  // namespace

ServerMemory::ServerMemory(const FileDescriptor& arena, const FileDescriptor& records,
                           std::shared_ptr<const FileDescriptor> connection)
    : connection_(std::move(connection)),
      arena_(arena),
      records_(records),
      view_(reinterpret_cast<const ChunkRecord*>(records_.bytes().data()), arena_.bytes().data()) {}

ServerLink::ServerLink(const std::string& socket, bool wants_memory, std::size_t ring_bytes,
                       const Deadline& deadline) {
  const Greeting greeting{.wants_memory = wants_memory ? 1U : 0U, .ring_bytes = ring_bytes};
  if (IsTcpAddress(socket)) {
    auto stream = std::make_unique<StreamChannel>(ConnectTcpSocket(socket, deadline),
                                                  ChannelCapacity(ring_bytes));
    stream_ = stream.get();
    channel_ = std::move(stream);
    GreetByStream(greeting, GreetingEnd(deadline));
  } else {
    socket_ =
        std::make_shared<const FileDescriptor>(ConnectUnixSocket(PathOfAddress(socket), deadline));
    GreetByRings(wants_memory, greeting, GreetingEnd(deadline));
  }
}

ServerLink::~ServerLink() {
  if (socket_ != nullptr) SayTheEnd(*socket_);
}

void ServerLink::GreetByRings(bool wants_memory, const Greeting& greeting,
                              const Deadline& deadline) {
  if (!TrySendDescriptors(*socket_, std::as_bytes(std::span(&greeting, 1)), {})) {
    throw Unavailable("the replay server has no room for a greeting");
  }
  DescriptorMessage message = ReceiveWelcome(*socket_, deadline);
  TakeWelcome(message.bytes);
  if (message.descriptors.size() != (wants_memory ? 3U : 1U)) {
    throw DataLoss("a replay server sent {} descriptors", message.descriptors.size());
  }
  if (wants_memory) {
    memory_ =
        std::make_shared<ServerMemory>(message.descriptors[1], message.descriptors[2], socket_);
  }
  channel_ = std::make_unique<RingChannel>(std::move(message.descriptors[0]));
}

void ServerLink::GreetByStream(const Greeting& greeting, const Deadline& deadline) {
  const std::span<std::byte> room = channel_->Reserve(sizeof greeting, deadline);
  std::memcpy(room.data(), &greeting, sizeof greeting);
  const bool sent = channel_->Drain(deadline);
  const std::span<const std::byte> message =
      sent ? channel_->Receive(deadline) : std::span<const std::byte>();
  if (message.data() == nullptr) throw Unavailable(kNoAnswer);
  TakeWelcome(message);
  channel_->Release();
}

void ServerLink::TakeWelcome(std::span<const std::byte> message) {
  const auto welcome = PlainReader(message).Take<Welcome>();
  if (welcome.magic != Greeting::kMagic) throw DataLoss("what listens there is no replay server");
  if (welcome.refused != 0) {
    const std::string_view why = TextOf(message.subspan(sizeof welcome));
    if (welcome.refused == static_cast<std::uint32_t>(Refusal::kFull)) throw Unavailable("{}", why);
    throw FailedPrecondition("{}", why);
  }
  server_ = welcome.server;
}

// A stream tells by itself.
bool ServerLink::HasGone() const { return socket_ != nullptr && HasHungUp(*socket_); }

std::span<std::byte> ServerLink::Reserve(std::size_t bytes) {
  const std::span<std::byte> room = OrGone([&] { return channel_->Reserve(bytes, past_); });
  return room.data() != nullptr ? room : AwaitRoom(bytes);
}

std::span<std::byte> ServerLink::AwaitRoom(std::size_t bytes) {
  const Deadline end = Deadline::After(kRoomTime);
  for (;;) {
    const Deadline look =
        Deadline::After(std::min<std::chrono::nanoseconds>(end.remaining(), kLook));
    const std::span<std::byte> room = OrGone([&] { return channel_->Reserve(bytes, look); });
    if (room.data() != nullptr) return room;
    if (HasGone()) throw ServerGone("the replay server has ended");
    if (end.expired()) throw ServerGone("the replay server takes no requests");
  }
}

void ServerLink::Send() {
  if (OrGone([&] { return channel_->Send(); })) return;
  if (!OrGone([&] { return channel_->Drain(Deadline::After(kRoomTime)); })) {
    throw ServerGone("the replay server takes no requests");
  }
}

void ServerLink::Post() {
  OrGone([&] { channel_->Post(); });
}

std::span<const std::byte> ServerLink::Receive(const Deadline& deadline) {
  Send();  // It may be what is to be answered.
  for (;;) {
    const Deadline look =
        Deadline::After(std::min<std::chrono::nanoseconds>(deadline.remaining(), kLook));
    const std::span<const std::byte> answer = OrGone([&] { return channel_->Receive(look); });
    if (answer.data() != nullptr) return answer;
    if (HasGone()) {
      // What it said last may still be there.
      const std::span<const std::byte> last = channel_->Receive(Deadline::After({}));
      if (last.data() != nullptr) return last;
      throw ServerGone("the replay server has ended");
    }
    if (deadline.expired()) return {};
  }
}

std::span<const std::byte> ServerLink::Answer(std::chrono::nanoseconds wait) {
  const std::span<const std::byte> answer = Receive(
      Deadline::After(std::min<std::chrono::nanoseconds>(wait, std::chrono::hours(24)) + kGrace));
  if (answer.data() == nullptr) throw ServerGone(kNoAnswer);
  return answer;
}

// Piece by piece, so that the deadline is one of each.
void ServerLink::ReceiveBytes(std::span<std::byte> to) {
  if (stream_ == nullptr) throw DataLoss("a replay server sent rows by rings");
  while (!to.empty()) {
    const std::span<std::byte> piece = to.first(std::min(to.size(), kPieceBytes));
    if (!OrGone([&] { return stream_->ReceiveBytes(piece, Deadline::After(kRoomTime)); })) {
      throw ServerGone("the replay server sends no more of its answer");
    }
    to = to.subspan(piece.size());
  }
}

std::optional<Error> ErrorIn(std::span<const std::byte> answer) {
  PlainReader reader(answer);
  const auto done = reader.Take<DoneReply>();
  if (done.kind != ReplyKind::kDone) throw DataLoss("a replay server gave another answer");
  if (done.failed == 0) return std::nullopt;
  if (done.code > static_cast<std::uint32_t>(ErrorCode::kInternal)) {
    throw DataLoss("a replay server gave error {}", done.code);
  }
  return Error(static_cast<ErrorCode>(done.code), std::string(TextOf(answer.subspan(sizeof done))));
}

}  // namespace menger
