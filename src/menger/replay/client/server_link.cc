#include "menger/replay/client/server_link.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "menger/base/plain_bytes.h"
#include "menger/base/sharing/descriptors.h"
#include "menger/base/sharing/unix_socket.h"
#include "menger/replay/protocol/messages.h"

namespace menger {
namespace {

// How long it takes at most to see that a server has ended.
constexpr std::chrono::milliseconds kLook{50};
// How much longer than it said a server that lives may take.
constexpr std::chrono::seconds kGrace{10};
// A server that takes nothing for so long does not live.
constexpr std::chrono::seconds kRoomTime{60};

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A server that is stopped (by a debugger) has clients connect, and welcomes none.
DescriptorMessage ReceiveWelcome(const FileDescriptor& socket, const Deadline& deadline) {
  try {
    return ReceiveDescriptors(socket, kWelcomeBytesMax, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    throw Unavailable("the replay server does not answer");
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
                       const Deadline& deadline)
    : ServerLink(ConnectUnixSocket(socket, deadline), wants_memory, ring_bytes, deadline) {}

ServerLink::ServerLink(FileDescriptor socket, bool wants_memory, std::size_t ring_bytes,
                       const Deadline& deadline)
    : socket_(std::make_shared<const FileDescriptor>(std::move(socket))),
      channel_(Greet(wants_memory, ring_bytes, deadline, *this)) {}

ServerLink::~ServerLink() { SayTheEnd(*socket_); }

RingChannel ServerLink::Greet(bool wants_memory, std::size_t ring_bytes, const Deadline& deadline,
                              ServerLink& link) {
  const FileDescriptor& socket = *link.socket_;
  const Greeting greeting{.wants_memory = wants_memory ? 1U : 0U, .ring_bytes = ring_bytes};
  if (!TrySendDescriptors(socket, std::as_bytes(std::span(&greeting, 1)), {})) {
    throw Unavailable("the replay server has no room for a greeting");
  }
  DescriptorMessage message = ReceiveWelcome(socket, deadline);
  PlainReader reader(message.bytes);
  const auto welcome = reader.Take<Welcome>();
  if (welcome.magic != Greeting::kMagic) throw DataLoss("what listens there is no replay server");
  if (welcome.refused != 0) {
    const std::string_view why = TextOf(std::span(message.bytes).subspan(sizeof welcome));
    if (welcome.refused == static_cast<std::uint32_t>(Refusal::kFull)) throw Unavailable("{}", why);
    throw FailedPrecondition("{}", why);
  }
  if (message.descriptors.size() != (wants_memory ? 3U : 1U)) {
    throw DataLoss("a replay server sent {} descriptors", message.descriptors.size());
  }
  link.server_ = welcome.server;
  if (wants_memory) {
    link.memory_ = std::make_shared<ServerMemory>(message.descriptors[1], message.descriptors[2],
                                                  link.socket_);
  }
  return RingChannel(std::move(message.descriptors[0]));
}

std::span<std::byte> ServerLink::Reserve(std::size_t bytes) {
  const Deadline end = Deadline::After(kRoomTime);
  for (;;) {
    const Deadline look =
        Deadline::After(std::min<std::chrono::nanoseconds>(end.remaining(), kLook));
    const std::span<std::byte> room = channel_.Reserve(bytes, look);
    if (room.data() != nullptr) return room;
    if (HasHungUp(*socket_)) throw ServerGone("the replay server has ended");
    if (end.expired()) throw ServerGone("the replay server takes no requests");
  }
}

std::span<const std::byte> ServerLink::Receive(const Deadline& deadline) {
  Send();  // It may be what is to be answered.
  for (;;) {
    const Deadline look =
        Deadline::After(std::min<std::chrono::nanoseconds>(deadline.remaining(), kLook));
    const RingEntry entry = channel_.Receive(look);
    if (entry) return entry.bytes;
    if (HasHungUp(*socket_)) {
      // What it said last may still be there.
      if (const RingEntry last = channel_.Receive(Deadline::After({}))) return last.bytes;
      throw ServerGone("the replay server has ended");
    }
    if (deadline.expired()) return {};
  }
}

std::span<const std::byte> ServerLink::Answer(std::chrono::nanoseconds wait) {
  const std::span<const std::byte> answer = Receive(
      Deadline::After(std::min<std::chrono::nanoseconds>(wait, std::chrono::hours(24)) + kGrace));
  if (answer.data() == nullptr) throw ServerGone("the replay server does not answer");
  return answer;
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
