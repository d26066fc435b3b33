#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/sharing/message_channel.h"
#include "menger/base/sharing/segment.h"
#include "menger/base/sharing/stream_channel.h"
#include "menger/replay/chunks/chunk_view.h"
#include "menger/replay/protocol/messages.h"

namespace menger {

// The server has ended, or does not answer: what was asked may have been done or not. Whoever
// catches it connects again.
class ServerGone : public Error {
 public:
  explicit ServerGone(const std::string& why) : Error(ErrorCode::kUnavailable, why) {}
};

// The chunks of a replay server, mapped read-only. They stay readable after it has ended. Rows that
// were drawn stay as they are while `connection` is open, by which they were.
class ServerMemory {
 public:
  ServerMemory(const FileDescriptor& arena, const FileDescriptor& records,
               std::shared_ptr<const FileDescriptor> connection);

  const ChunkView& chunks() const { return view_; }

  // Whether the slice is of a chunk of such steps (none: of any), and lies in what is mapped.
  bool Has(const Slice& slice, std::optional<std::uint64_t> steps_id) const {
    if (slice.chunk >= records_.size() / sizeof(ChunkRecord)) return false;
    const ChunkRecord& record =
        reinterpret_cast<const ChunkRecord*>(records_.bytes().data())[slice.chunk];
    return (!steps_id || record.steps_id == *steps_id) &&
           slice.offset + slice.length <= record.capacity && record.bytes <= arena_.size() &&
           record.data_offset <= arena_.size() - record.bytes;
  }

 private:
  const std::shared_ptr<const FileDescriptor> connection_;
  const ReadableSegment arena_;
  const ReadableSegment records_;
  const ChunkView view_;
};

// One connection to a replay server, which is asked and answers in messages (protocol/messages.h):
// over rings, where its socket is a path ("unix:" may stand before it), over a stream where it is
// an address of TCP. One thread at a time.
class ServerLink {
 public:
  // Connects and is welcomed. Throws Unavailable where nobody listens or answers until the
  // deadline, and for a server that has too many clients; FailedPrecondition for another version,
  // DataLoss for what is no replay server, InvalidArgument for an address that cannot be one.
  ServerLink(const std::string& socket, bool wants_memory, std::size_t ring_bytes,
             const Deadline& deadline);
  ~ServerLink();  // It asks nothing more. What `memory` shows stays as long as that.
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  std::uint64_t server() const { return server_; }  // Another one after each of its starts.
  // Null where it was not wanted, or cannot be seen: samples then come with their rows.
  const std::shared_ptr<const ServerMemory>& memory() const { return memory_; }
  std::size_t entry_bytes_max() const { return channel_->entry_bytes_max(); }

  // True when it is asked for the first time: for who keeps what he has said on a connection.
  bool IsFirstUse() { return std::exchange(is_new_, false); }

  // Room for a request, its fields first: the rest is to be filled before the next call. Throws
  // InvalidArgument for more than entry_bytes_max, ServerGone.
  template <typename Request>
  std::span<std::byte> Begin(const Request& request, std::size_t more = 0) {
    static_assert(std::is_trivially_copyable_v<Request>);
    const std::span<std::byte> room = Reserve(sizeof request + more);
    std::memcpy(room.data(), &request, sizeof request);
    return room.subspan(sizeof request);
  }
  void Send();
  void Post();  // The server need not hurry.

  // An answer, in place until Release; null bytes at the deadline. Sends what was begun. Throws
  // ServerGone.
  std::span<const std::byte> Receive(const Deadline& deadline);
  void Release() { channel_->Release(); }

  // An answer to a call that ends by itself after `wait` at the latest: throws ServerGone where the
  // server then still says nothing.
  std::span<const std::byte> Answer(std::chrono::nanoseconds wait);

  // Fills `to` with bytes that follow an answer, which this releases. Throws ServerGone.
  void ReceiveBytes(std::span<std::byte> to);

 private:
  void GreetByRings(bool wants_memory, const Greeting& greeting, const Deadline& deadline);
  void GreetByStream(const Greeting& greeting, const Deadline& deadline);
  void TakeWelcome(std::span<const std::byte> message);
  std::span<std::byte> Reserve(std::size_t bytes);
  std::span<std::byte> AwaitRoom(std::size_t bytes);
  bool HasGone() const;

  const Deadline past_ = Deadline::After({});     // Made once: it asks the clock.
  std::shared_ptr<const FileDescriptor> socket_;  // Beside rings; null without.
  bool is_new_ = true;
  std::uint64_t server_ = 0;
  std::shared_ptr<const ServerMemory> memory_;
  std::unique_ptr<MessageChannel> channel_;
  StreamChannel* stream_ = nullptr;  // The channel, if it is one.
};

// What a Done answer says: nothing, or the error that the server met. Throws DataLoss for what is
// none.
std::optional<Error> ErrorIn(std::span<const std::byte> answer);

}  // namespace menger
